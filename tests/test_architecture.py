"""The shape of the code, checked like any other behaviour."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT: dict[str, set[str]] = {
    "kernel": set(),
    "adapters": {"kernel"},
    "sessions": {"kernel"},
    "compression": {"kernel", "sessions"},
    "agent": {"kernel", "sessions", "compression"},
    "gateway": {"kernel", "sessions", "adapters", "compression", "agent"},
    "cli": {"kernel", "sessions", "adapters", "compression", "agent", "gateway"},
}

MAY_CATCH_ALL = {
    "agent/tools/registry.py",  # one tool call
    "gateway/delivery.py",  # one delivery
    "gateway/presence.py",  # what a chat sees of one turn
    "gateway/http/server.py",  # one request
    "gateway/supervise.py",  # one adapter
    "gateway/titling.py",  # one conversation's name
    "gateway/turn.py",  # one turn
    "sessions/writer.py",  # one operation
}
"""Where a handler catches everything and goes on: one failure there must not end its siblings."""

LONGEST_FUNCTION = 60
"""Lines. Nine in ten are under 30."""


def sources() -> list[Path]:
    folders = ("src/hermes", "adapters", "sessions", "compression", "agent", "gateway", "cli")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def package_of(path: Path) -> str:
    top = path.relative_to(ROOT).parts[0]
    return "kernel" if top == "src" else top


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_packages(path: Path) -> set[str]:
    packages = set()
    for module in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
        head, _, rest = module.partition(".")
        assert head not in MAY_IMPORT, f"{path}: import hermes.{module}, not {module}"
        if head == "hermes":
            part = rest.partition(".")[0]
            packages.add(part if part in MAY_IMPORT else "kernel")
    return packages


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_imports_run_downward(path: Path) -> None:
    package = package_of(path)
    if path.name == "__main__.py":
        return  # the door of the house
    assert imported_packages(path) <= MAY_IMPORT[package] | {package}


def test_compression_sees_the_values_of_sessions_only() -> None:
    for path in (ROOT / "compression").rglob("*.py"):
        for module in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
            if module.startswith("hermes.sessions"):
                assert module.startswith("hermes.sessions.model"), path


def test_one_module_names_the_sqlite_library() -> None:
    users = {
        name_of(path)
        for path in sources()
        for module in imported_modules(ast.parse(path.read_text(encoding="utf-8")))
        if module.split(".")[0] in {"sqlite3", "pysqlite3"}
    }
    assert users == {"sessions/dbapi.py"}


def catches_all(node: ast.AST) -> bool:
    """A broad handler that does not end by raising."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
    return broad and not isinstance(node.body[-1], ast.Raise)


def orphans_a_task(node: ast.AST) -> bool:
    """asyncio.create_task: a task nobody owns. Use a TaskGroup's."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in {"create_task", "ensure_future"}
        and isinstance(node.value, ast.Name)
        and node.value.id == "asyncio"
    )


def test_nothing_is_swallowed_and_no_task_is_orphaned() -> None:
    nodes = [(name_of(path), node) for path in sources() for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    assert {name for name, node in nodes if catches_all(node)} == MAY_CATCH_ALL
    assert [name for name, node in nodes if orphans_a_task(node)] == []


def test_functions_can_be_seen_whole() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_compression_stays_a_namespace() -> None:
    """An __init__.py here would shadow the standard library's `compression` (3.14+)."""
    assert not (ROOT / "compression/__init__.py").exists()


def test_the_table_of_stops_names_files_that_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:adapters|sessions|compression|agent|gateway|cli)/[\w/]+\.(?:py|sql))`", page)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []
