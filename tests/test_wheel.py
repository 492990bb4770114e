"""What is shipped: the archives hold every part and nothing else, and the wheel works where it is installed."""

import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from hermes import __version__

ROOT = Path(__file__).parent.parent
PACKAGES = ("adapters", "agent", "cli", "compression", "gateway", "sessions")
DATA = {".sql", ".html", ".css", ".js", ".yaml"}
"""Suffixes of what is shipped beside the modules."""

FOR_BUILDING = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "src", "tests", *PACKAGES)

LOOK = """
import json
from importlib.metadata import entry_points, version
import hermes
from hermes.adapters.web.page import assemble
from hermes.sessions.database import migrations
from hermes.texts import catalogue
platforms = {one.name: type(one.load()).__name__ for one in entry_points(group="hermes.platforms")}
print(json.dumps({
    "file": hermes.__file__,
    "version": version("hermes-gateway"),
    "platforms": platforms,
    "migrations": len(migrations()),
    "texts": len(catalogue()),
    "page": len(assemble("web").body),
}))
"""
"""Run by the Python that has the wheel: what an installation must be able to do."""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shipped() -> set[str]:
    """Every file that belongs into the wheel, by its name there."""
    real = {"src/hermes": "hermes", **{name: f"hermes/{name}" for name in PACKAGES}}
    return {
        f"{inside}/{path.relative_to(ROOT / folder)}"
        for folder, inside in real.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", *DATA} or path.name == "py.typed"
    }


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel that was built from it."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in FOR_BUILDING:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, tree)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, tree)
    return out


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    (found,) = archives.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh Python with the wheel; the libraries are borrowed from the one that runs the tests."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    fresh = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", fresh, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return fresh


def test_the_wheel_holds_every_module_and_its_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == shipped()


def test_the_wheel_carries_the_licence_and_says_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
        licences = [name for name in archive.namelist() if name.endswith("/LICENSE")]
    assert len(licences) == 1
    assert "Requires-Python: >=3.11" in metadata
    assert "Requires-Dist: aiohttp" in metadata


def test_the_source_archive_leaves_the_tests_out(archives: Path) -> None:
    (found,) = archives.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        parts = [name.split("/")[1:] for name in archive.getnames()]
    assert not any(part[:1] == ["tests"] for part in parts)
    assert ["LICENSE"] in parts


def test_an_installed_hermes_says_its_version(python: Path, tmp_path: Path) -> None:
    assert run(python, "-m", "hermes", "--version", cwd=tmp_path) == f"hermes {__version__}\n"
    assert run(python.with_name("hermes"), "--version", cwd=tmp_path) == f"hermes {__version__}\n"


def test_an_installed_hermes_finds_its_platforms_and_its_data(python: Path, tmp_path: Path) -> None:
    found = json.loads(run(python, "-c", LOOK, cwd=tmp_path))
    assert Path(found["file"]).is_relative_to(python.parent.parent)
    assert set(found["platforms"]) >= {"api_server", "loopback", "web"}
    assert set(found["platforms"].values()) == {"Platform"}
    assert found["version"] == __version__
    assert found["migrations"] >= 1
    assert found["texts"] > 10
    assert found["page"] > 10_000
