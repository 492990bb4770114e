"""The log of Claude Code, read as conversations: what people and the model said, and nothing that the program adds."""

import json
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.sessions.database import open_readable, snapshot
from hermes.sessions.exports.document import Reading
from hermes.sessions.exports.trace import trace
from hermes.sessions.filters import Filter
from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.imports.claude import parcels
from hermes.sessions.model import OWNER, Kind, Message, Query, Role, Session, ToolCall, Usage
from hermes.sessions.store import SqliteStore, open_store

SESSION = "0340f328-33c2-42fb-b9fa-ae58a9d8a799"
T0 = 1_767_258_000.0
"""2026-01-01T09:00:00Z"""


def line(kind: str, content: Any = None, *, at: int = 0, **facts: Any) -> dict[str, Any]:
    message = facts.pop("message", {"role": kind, "content": content})
    return {
        "type": kind,
        "message": message,
        "sessionId": SESSION,
        "timestamp": f"2026-01-01T09:00:{at:02d}.250Z",
        "cwd": "/home/me/proj",
        "gitBranch": "main",
        "isSidechain": False,
    } | facts


def answer(*blocks: dict[str, Any], **facts: Any) -> dict[str, Any]:
    at, of = facts.pop("at", 0), facts.pop("of", "msg_1")
    spent = facts.pop("usage", {"input_tokens": 10, "output_tokens": 1})
    message = {"id": of, "role": "assistant", "model": "claude-9", "content": list(blocks), "usage": spent}
    return line("assistant", at=at, message=message, **facts)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": arguments}


def result(call: str | None, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": False}


LOG = [
    {"type": "summary", "summary": "A summary", "leafUuid": "u5"},
    {"type": "file-history-snapshot", "messageId": "x"},
    line("user", "Fix the login 修复登录", uuid="u1"),
    line("user", "be careful", uuid="u2", isMeta=True),
    answer({"type": "thinking", "thinking": "hm"}, at=1, uuid="u3"),
    answer(text("I look."), at=2, uuid="u4"),
    answer(use("t1", command="ls"), at=3, uuid="u5", usage={"input_tokens": 10, "output_tokens": 7}),
    line("user", "not for you", uuid="u6", isSidechain=True),
    line("user", [result("t1", [text("a.py"), {"type": "image", "source": {}}])], at=4, uuid="u7"),
    answer(text("Done."), at=5, of="msg_2", uuid="u8", usage={"input_tokens": 5, "cache_read_input_tokens": 3}),
    line("system", subtype="turn_duration", uuid="u9"),
    {"type": "something-new", "sessionId": SESSION},
]


def write(path: Path, lines: list[Any], end: str = "\n") -> Path:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines) + end)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / f"{SESSION}.jsonl", LOG)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(tmp_path / "state.db")
    yield store
    await store.close()


def alone(path: Path) -> tuple[Session, tuple[Message, ...]]:
    """The only segment of the only conversation."""
    ((segment,),) = [parcel.segments for parcel in parcels(path)]
    return segment[0].session, segment[1]


def said(tmp_path: Path, *lines: Any) -> list[tuple[str, str]]:
    _, rows = alone(write(tmp_path / "log.jsonl", list(lines)))
    return [(row.role.value, row.content) for row in rows]


# -- one log --------------------------------------------------------------------------------------------------------


def test_a_session_is_read_with_what_it_says_of_itself(log: Path) -> None:
    (parcel,) = parcels(log)
    ((record, rows),) = parcel.segments
    session = record.session
    assert parcel.source == Source("claude", SESSION)
    assert (session.id, session.source) == ("20260101_090000_d86889a6", "claude")
    assert str(session.conversation) == record.tip == session.id
    assert (session.title, session.title_by_person, session.model) == ("A summary", False, "claude-9")
    assert (session.cwd, session.git_branch, session.preview) == ("/home/me/proj", "main", "Fix the login 修复登录")
    assert (session.message_count, session.tool_call_count, record.api_calls) == (5, 1, 2)
    assert session.usage == Usage(input_tokens=15, output_tokens=7, cache_read_tokens=3)
    assert (session.started_at, session.ended_at, session.end_reason) == (T0 + 0.25, T0 + 5.25, "imported")
    assert [(row.role, row.kind, row.content, row.at - T0) for row in rows] == [
        (Role.USER, Kind.TALK, "Fix the login 修复登录", 0.25),
        (Role.ASSISTANT, Kind.TALK, "I look.", 2.25),
        (Role.ASSISTANT, Kind.TALK, "", 3.25),
        (Role.TOOL, Kind.TOOL, "a.py\n[image]", 4.25),
        (Role.ASSISTANT, Kind.TALK, "Done.", 5.25),
    ]
    assert rows[2].tool_calls == (ToolCall(id="t1", name="Bash", arguments='{"command": "ls"}'),)
    assert (rows[3].tool_call_id, rows[3].tool_name) == ("t1", "Bash")


async def test_what_comes_in_is_read_found_and_comes_in_once(log: Path, store: SqliteStore) -> None:
    (parcel,) = parcels(log)
    receipt = await store.take_in(parcel, {}, at=T0)
    assert (receipt.fresh, receipt.messages) == (True, 5)
    rows = await store.history((await store.resolve("A summary", OWNER)).id)
    assert [row.content for row in rows] == ["Fix the login 修复登录", "I look.", "", "a.py\n[image]", "Done."]
    assert await store.transcript(receipt.conversation, OWNER) == rows
    (hit,) = (await store.search.discover(Query(text="登录"), OWNER)).hits
    assert hit.session.conversation == receipt.conversation
    write(log, [*LOG, line("user", "and it went on", uuid="u10", at=30)])
    (parcel,) = parcels(log)
    assert (await store.take_in(parcel, {}, at=T0)).fresh is False
    assert await store.transcript(receipt.conversation, OWNER) == rows


async def test_a_trace_of_ours_comes_back(log: Path, store: SqliteStore, tmp_path: Path) -> None:
    (parcel,) = parcels(log)
    await store.take_in(parcel, {}, at=T0)
    (lineage,) = await store.select(Filter(), OWNER)
    with closing(open_readable(tmp_path / "state.db")) as connection:
        shown = Reading(partial(snapshot, connection)).whole(lineage)
        back = tmp_path / "trace.jsonl"
        back.write_text("".join(trace(shown)))
    session, rows = alone(back)
    ((_, before),) = parcel.segments
    assert [(row.role, row.content, row.tool_calls, row.tool_name) for row in rows] == [
        (row.role, row.content, row.tool_calls, row.tool_name) for row in before
    ]
    assert (session.model, session.cwd, session.git_branch) == ("claude-9", "/home/me/proj", "main")


def test_a_resumed_log_holds_several_sessions_and_repeats_lines(tmp_path: Path) -> None:
    lines = [*LOG[2:7], *LOG[2:7], line("user", "more", sessionId="other", uuid="v1", at=9)]
    first, second = parcels(write(tmp_path / "log.jsonl", lines))
    assert (first.source, second.source) == (Source("claude", SESSION), Source("claude", "other"))
    assert [row.content for row in first.segments[0][1]] == ["Fix the login 修复登录", "I look.", ""]
    assert [(row.id, row.content) for row in second.segments[0][1]] == [(1, "more")]


def test_lines_without_a_session_belong_to_the_file(tmp_path: Path) -> None:
    lines = [{"type": "user", "message": "just words"}, {"type": "user", "message": {"content": "and more"}}]
    path = write(tmp_path / "abc.jsonl", lines)
    (parcel,) = parcels(path)
    assert parcel.source == Source("claude", "abc")
    session, rows = alone(path)
    assert [row.content for row in rows] == ["just words", "and more"]
    assert session.started_at == path.stat().st_mtime


@pytest.mark.parametrize(
    ("lines", "title", "by_person"),
    [
        ([{"type": "summary", "summary": "x" * 300}], "x" * 99 + "…", False),
        ([{"type": "summary", "summary": "of another log", "leafUuid": "elsewhere"}], "of another log", False),
        (
            [
                {"type": "summary", "summary": "mine", "leafUuid": "u1"},
                {"type": "summary", "summary": "of another log", "leafUuid": "elsewhere"},
            ],
            "mine",
            False,
        ),
        (
            [
                {"type": "ai-title", "aiTitle": "first", "sessionId": SESSION},
                {"type": "ai-title", "aiTitle": "second", "sessionId": SESSION},
                {"type": "summary", "summary": "sum", "leafUuid": "u1"},
            ],
            "second",
            False,
        ),
        (
            [
                {"type": "custom-title", "customTitle": "my own", "sessionId": SESSION},
                {"type": "ai-title", "aiTitle": "made", "sessionId": SESSION},
                {"type": "custom-title", "customTitle": " \u200b ", "sessionId": SESSION},
            ],
            "my own",
            True,
        ),
        ([{"type": "custom-title", "customTitle": "of a stranger", "sessionId": "stranger"}], None, False),
        ([{"type": "summary", "summary": 5}], None, False),
    ],
)
def test_the_best_title_counts(tmp_path: Path, lines: list[Any], title: str | None, by_person: bool) -> None:
    session, _ = alone(write(tmp_path / "log.jsonl", [*lines, line("user", "hi", uuid="u1")]))
    assert (session.title, session.title_by_person) == (title, by_person)


# -- what a line may say --------------------------------------------------------------------------------------------


def test_content_of_every_form(tmp_path: Path) -> None:
    assert said(
        tmp_path,
        line("user", [text("look"), {"type": "image", "source": {}}, {"type": "document"}]),
        line("user", [text("and this"), result(None, None), result("x", "alone")]),
        line("user", None),
        line("user", []),
        line("assistant", "plain words"),
        answer({"type": "redacted_thinking"}, {"type": "server_tool_use"}),
        line("user", "broken \ud83d and \x00"),
    ) == [
        ("user", "look\n[image]\n[document]"),
        ("tool", ""),
        ("tool", "alone"),
        ("user", "and this"),
        ("assistant", "plain words"),
        ("assistant", "[server_tool_use]"),
        ("user", "broken \ufffd and \ufffd"),
    ]


def test_commands_are_what_was_typed(tmp_path: Path) -> None:
    wrapped = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    assert said(
        tmp_path,
        line("user", f"{wrapped}\n<command-args>the tests </command-args>"),
        line("user", "<command-name>/clear</command-name>"),
        line("user", "<local-command-stdout>cleared</local-command-stdout>"),
        line("user", f"what does {wrapped} mean?"),
        line("user", "<command-name> is never closed"),
    ) == [
        ("user", "/review the tests"),
        ("user", "/clear"),
        ("user", f"what does {wrapped} mean?"),
        ("user", "<command-name> is never closed"),
    ]


def test_the_summary_of_a_compaction_is_no_talk(tmp_path: Path) -> None:
    lines = [line("user", "so far", isCompactSummary=True), line("user", "go on"), answer(text("ok"))]
    session, rows = alone(write(tmp_path / "log.jsonl", lines))
    assert [row.kind for row in rows] == [Kind.SUMMARY, Kind.TALK, Kind.TALK]
    assert (session.preview, session.message_count) == ("go on", 2)


async def test_calls_and_results_that_do_not_pair_up_come_in(tmp_path: Path, store: SqliteStore) -> None:
    nameless = {"type": "tool_use", "input": {"a": [1]}}
    lines = [
        line("user", [result("gone", "of nobody")]),
        answer(use("t1"), use("t1"), nameless),
        line("user", [result("t1", "1"), result("t1", "2"), result(None, "3"), result(None, "4")]),
    ]
    (parcel,) = parcels(write(tmp_path / "log.jsonl", lines))
    await store.take_in(parcel, {}, at=T0)
    _, asked, *_ = rows = await store.history((await store.latest("claude", OWNER)).id)
    assert [(call.id, call.name) for call in asked.tool_calls] == [
        ("t1", "Bash"),
        ("t1", "Bash"),
        ("call_1", "unknown"),
    ]
    assert [(row.tool_call_id, row.tool_name) for row in rows if row.role is Role.TOOL] == [
        *(("gone", None), ("t1", "Bash"), ("t1", "Bash"), ("call_1", "unknown"), ("call_2", None)),
    ]


# -- damage ---------------------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    whole = [json.dumps(one) for one in LOG]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(one.encode() for one in [whole[2], whole[4][:40] + whole[5], whole[9]])[:-9] + b"\xe4")
    _, rows = alone(path)
    assert [row.content for row in rows] == ["Fix the login 修复登录"]


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"\x00\xff" * 50,
        b'{"type": "session_meta", "payload": {}}',
        b"[1]\n7",
        b'{"type": ["user"]}',
        b"[" * 9999,
    ],
)
def test_what_is_no_log_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"log.jsonl is no log of Claude Code"):
        list(parcels(path))


@pytest.mark.parametrize("depth", [100, 400, 900, 990, 100_000])
def test_nesting_of_any_depth_does_no_harm(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    lines = [json.dumps(answer(use("t1", a="HERE"))), json.dumps(line("user", [result("t1", ["HERE"])]))]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(one.replace('"HERE"', deep) for one in [*lines, json.dumps(line("user", "hi"))]))
    _, rows = alone(path)
    assert rows[-1].content == "hi"


@pytest.mark.parametrize("content", ["", "\n \n", json.dumps(LOG[7]), json.dumps(LOG[1]), json.dumps(LOG[0])])
def test_a_log_without_a_word_brings_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(content)
    assert list(parcels(path)) == []


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(UserError, match=r"cannot be read: (Is a|No such)"):
            list(parcels(path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["type", "message", "uuid", "sessionId", "timestamp", "cwd", "isMeta", "leafUuid", "summary", "isCompactSummary"]
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"]) | JSON},
    optional=dict.fromkeys(("text", "id", "name", "input", "content", "tool_use_id"), JSON),
)
ODD_LINE = st.one_of(
    st.builds(lambda one, change: one | change, st.sampled_from(LOG), st.dictionaries(FIELDS, JSON, max_size=2)),
    st.builds(line, st.sampled_from(["user", "assistant"]), st.lists(BLOCK, max_size=3)),
    JSON,
)


def survives(content: str | bytes) -> list[Parcel]:
    """The conversations; a log that is refused has none."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            return list(parcels(path))
        except UserError:
            return []


@settings(deadline=None)
@given(st.permutations(LOG), st.integers(0, 4000))
def test_shuffled_and_cut_off_logs_are_read_or_refused(lines: list[Any], end: int) -> None:
    whole = "\n".join(json.dumps(one, ensure_ascii=False) for one in lines).encode()
    for parcel in survives(whole[:end]):
        assert {row.content for _, rows in parcel.segments for row in rows} <= {
            *("Fix the login 修复登录", "I look.", "", "a.py\n[image]", "Done."),
        }


@settings(deadline=None)
@given(st.lists(ODD_LINE, max_size=6))
def test_odd_lines_do_no_harm(lines: list[Any]) -> None:
    for parcel in survives("\n".join(map(json.dumps, lines))):
        ((record, rows),) = parcel.segments
        assert [row.id for row in rows] == list(range(1, len(rows) + 1))
        assert record.session.message_count == sum(row.kind is not Kind.SUMMARY for row in rows)
        assert record.session.ended_at == record.session.last_active >= record.session.started_at
        " ".join(row.content for row in rows).encode()


def test_the_same_file_gives_the_same_parcels(log: Path) -> None:
    assert list(parcels(log)) == list(parcels(log))
