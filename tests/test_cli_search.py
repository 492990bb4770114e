"""`hermes search` and `hermes insights`: what a person finds, and what they see of what was spent."""

import asyncio
import json
from pathlib import Path

import pytest

from hermes.sessions.store import open_store
from worlds.archive import CHILD, fill
from worlds.shell import Shell


async def _fill(path: Path) -> None:
    store = await open_store(path)
    await fill(store)
    await store.close()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    asyncio.run(_fill(shell.home.database))
    return shell


def test_a_match_is_shown_with_its_conversation(shell: Shell) -> None:
    done = shell.hermes("search", "auth", "module")
    first, second, *_ = done.stdout.splitlines()
    assert first.endswith("· telegram · 20270115_080000_a · message 1")
    assert second == "  user: Fix the >>>auth<<< >>>module<<< 修复"
    assert done.returncode == 0


@pytest.mark.parametrize("query", ["修复", "修", "module 修复", "auth OR nothing", "fi*"])
def test_every_script_and_operator_finds_it(shell: Shell, query: str) -> None:
    assert "20270115_080000_a" in shell.hermes("search", query).stdout


@pytest.mark.parametrize(
    "query",
    ["C++", "it's", "gateway/run.py", "50%", "user@host", "#42", "NEAR(", '"unbalanced', "a" * 10_000, "x OR", "-x"],
)
def test_nothing_that_is_typed_breaks_it(shell: Shell, query: str) -> None:
    done = shell.hermes("search", "--", query)
    assert done.returncode in {0, 1}
    assert done.stderr == ""
    assert done.stdout


def test_a_query_without_a_word_is_told_so(shell: Shell) -> None:
    done = shell.hermes("search", "  ")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing to search for" in done.stderr


def test_tools_are_searched_on_demand_and_scripts_get_json(shell: Shell) -> None:
    assert shell.hermes("search", "login").returncode == 1
    facts = json.loads(shell.hermes("search", "login", "--role", "tool", "--json").stdout)
    (hit,) = facts["results"]
    assert hit["snippet"] == "def >>>login<<<(): ..."
    assert hit["session_id"] == "20270115_080000_a"
    assert hit["messages"][-1]["content"] == "and now the tests"
    found = json.loads(shell.hermes("search", "and OR fix", "--sort", "newest", "--json").stdout)
    assert found["results"][0]["session_id"] == CHILD


def test_insights_add_up(shell: Shell) -> None:
    page = shell.hermes("insights", "--days", "1").stdout
    assert "Tokens: 100 read, 20 written, $0.25" in page
    assert "  terminal" in page
    facts = json.loads(shell.hermes("insights", "--json").stdout)
    assert facts["usage"]["cost_usd"] == 0.25
    assert {one["name"]: one["sessions"] for one in facts["sources"]} == {"telegram": 2, "cli": 1}
    assert facts["tools"] == [["terminal", 1]]
    assert sum(facts["hours"].values()) == sum(facts["weekdays"].values()) == 6


def test_insights_of_an_empty_time_say_so(tmp_path: Path) -> None:
    empty = Shell(tmp_path)
    assert empty.hermes("insights").returncode == 1
    assert empty.hermes("chat", "-q", "hi").returncode == 0
    assert "Active in the last 1 days: 1 conversations" in empty.hermes("insights", "--days", "1").stdout
