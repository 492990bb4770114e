"""`hermes sessions list`: two layouts, and nothing heavy on the way to them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.cli.columns import columns_of
from hermes.cli.listing import ago, table
from hermes.sessions.model import ConversationId, Session, SessionId
from worlds.shell import Shell, command

NOW = 1_800_000_000.0
HEAVY = {"pydantic", "pydantic_core", "aiohttp", "openai", "anthropic", "structlog", "prometheus_client", "asyncio"}
LOADED = "import sys; from hermes.cli.main import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"


def session(number: int, preview: str, *, age: float, source: str = "cli", title: str | None = None) -> Session:
    name = f"20250305_09152{number}_a1b2c3d4"
    return Session(
        id=SessionId(name),
        conversation=ConversationId(name),
        source=source,
        started_at=NOW - age,
        last_active=NOW - age,
        title=title,
        preview=preview,
    )


def test_with_titles_the_list_shows_title_preview_activity_and_id() -> None:
    found = table(
        [
            session(1, "Help me refactor the auth module please", age=7300, title="refactoring auth"),
            session(2, "What's the weather in Las Vegas?", age=3 * 86400, source="telegram"),
        ],
        now=NOW,
    )
    assert found == [
        "Title                  Preview                                  Last Active   ID",
        "─" * 102,
        "refactoring auth       Help me refactor the auth module please  2h ago        20250305_091521_a1b2c3d4",
        "—                      What's the weather in Las Vegas?         3d ago        20250305_091522_a1b2c3d4",
    ]


def test_without_titles_the_list_shows_preview_activity_source_and_id() -> None:
    found = table(
        [
            session(1, "Help me refactor the auth module please", age=7300),
            session(2, "What's the weather in Las Vegas?", age=3 * 86400, source="telegram"),
        ],
        now=NOW,
    )
    assert found == [
        "Preview                                            Last Active   Src    ID",
        "─" * 96,
        "Help me refactor the auth module please            2h ago        cli    20250305_091521_a1b2c3d4",
        "What's the weather in Las Vegas?                   3d ago        tele   20250305_091522_a1b2c3d4",
    ]


@pytest.mark.parametrize(
    "preview", ["帮我重构一下认证模块好吗，谢谢你" * 3, "🎉👩\u200d👩\u200d👧 party " * 9, "short"]
)
def test_the_id_stands_in_its_column_whatever_stands_before_it(preview: str) -> None:
    *_, line = table([session(1, preview, age=1, title=preview)], now=NOW)
    assert columns_of(line[: line.index("20250305")]) == 23 + 41 + 14


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1m ago"),
        (3599, "59m ago"),
        (7200, "2h ago"),
        (86400, "yesterday"),
        (3 * 86400, "3d ago"),
    ],
)
def test_ages_are_told_in_words(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_the_list_is_written_without_the_libraries_of_the_gateway(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.hermes("chat", "-q", "Hello")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "sessions", "list"], env=shell.environment, capture_output=True, text=True
    )
    assert "Hello" in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stderr.split()}


def test_scripts_get_json_people_a_hint_and_a_pipe_that_closes_no_traceback(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for line in ("first", "second"):
        shell.hermes("chat", "-q", line)
    shell.hermes("chat", "-q", "other", "--source", "notes")

    listed = json.loads(shell.hermes("sessions", "list", "--json").stdout)
    assert [(one["preview"], one["source"]) for one in listed] == [
        ("other", "notes"),
        ("second", "cli"),
        ("first", "cli"),
    ]
    shown = shell.hermes("sessions", "list", "--source", "cli", "--limit", "1").stdout
    assert "second" in shown
    assert "--limit 2" in shown
    assert "No conversations came through 'slack'" in shell.hermes("sessions", "list", "--source", "slack").stdout

    with subprocess.Popen(
        command("sessions", "list"), env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # as `head` does when it has seen enough
        assert process.stderr.read() == b""
