"""The log of the Codex CLI, read as a conversation: newer and older forms, and nothing that the program adds."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.imports.codex import parcels
from hermes.sessions.model import OWNER, Kind, Message, Query, Role, Session, ToolCall
from hermes.sessions.store import SqliteStore, open_store

SESSION = "019a0b1c-7d2e-7f00-8000-3b5c6d7e8f90"
T0 = 1_767_258_000.0
"""2026-01-01T09:00:00Z"""


def line(kind: str, at: int = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T09:00:{at:02d}.500Z", "type": kind, "payload": payload}


def item(kind: str, at: int = 0, **facts: Any) -> dict[str, Any]:
    return line("response_item", at, **{"type": kind, **facts})


def message(role: str, *parts: str, at: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", at, role=role, content=[{"type": kind, "text": part} for part in parts])


META = line(
    "session_meta",
    id=SESSION,
    timestamp="2026-01-01T09:00:00Z",
    cwd="/home/me/proj",
    originator="codex_cli_rs",
    model_provider="openai",
    git={"branch": "main", "commit_hash": "abc"},
)
LOG = [
    META,
    message("developer", "You may read."),
    message("user", "<environment_context>\n  <cwd>/home/me/proj</cwd>\n</environment_context>"),
    line("turn_context", cwd="/elsewhere", model="gpt-9-codex", approval_policy="never"),
    message("user", "# AGENTS.md instructions for /home/me/proj\n\nUse pytest.", "Fix the login 修复登录", at=1),
    line("event_msg", 1, type="user_message", message="Fix the login 修复登录"),
    item("reasoning", 2, summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="xyz"),
    message("assistant", "I look.", at=3),
    item("function_call", 4, name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
    item("function_call_output", 5, call_id="c1", output="a.py"),
    item("custom_tool_call", 6, name="apply_patch", input="*** Begin Patch", call_id="c2", status="completed"),
    item("custom_tool_call_output", 7, call_id="c2", output=[{"type": "input_text", "text": "Success"}]),
    item("local_shell_call", 8, call_id="c3", action={"type": "exec", "command": ["pwd"]}),
    item("function_call_output", 9, call_id="c3", output={"content": "/home", "success": True}),
    line("event_msg", 9, type="token_count", info=None),
    message("assistant", "Done.", at=10),
]
WORDS = ["Fix the login 修复登录", "I look.", "", "a.py", "", "Success", "", "/home", "Done."]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / f"rollout-2026-01-01T09-00-00-{SESSION}.jsonl", LOG)


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
    assert parcel.source == Source("codex", SESSION)
    assert (session.id, session.source) == ("20260101_090000_e6a464ec", "codex")
    assert str(session.conversation) == record.tip == session.id
    assert (session.title, session.model, session.provider) == (None, "gpt-9-codex", "openai")
    assert (session.cwd, session.git_branch, session.preview) == ("/home/me/proj", "main", "Fix the login 修复登录")
    assert (session.message_count, session.tool_call_count) == (9, 3)
    assert (session.started_at, session.ended_at, session.end_reason) == (T0, T0 + 10.5, "imported")
    assert [row.content for row in rows] == WORDS
    assert [row.at - T0 for row in rows] == [1.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5]
    assert [call for row in rows for call in row.tool_calls] == [
        ToolCall(id="c1", name="shell", arguments='{"command": ["ls"]}'),
        ToolCall(id="c2", name="apply_patch", arguments='{"input": "*** Begin Patch"}'),
        ToolCall(id="c3", name="local_shell", arguments='{"type": "exec", "command": ["pwd"]}'),
    ]
    assert [(row.kind, row.tool_call_id, row.tool_name) for row in rows if row.role is Role.TOOL] == [
        (Kind.TOOL, "c1", "shell"),
        (Kind.TOOL, "c2", "apply_patch"),
        (Kind.TOOL, "c3", "local_shell"),
    ]


async def test_what_comes_in_is_read_found_and_comes_in_once(log: Path, store: SqliteStore) -> None:
    (parcel,) = parcels(log)
    receipt = await store.take_in(parcel, {}, at=T0)
    assert (receipt.fresh, receipt.messages) == (True, 9)
    rows = await store.history((await store.latest("codex", OWNER)).id)
    assert [row.content for row in rows] == WORDS
    assert await store.transcript(receipt.conversation, OWNER) == rows
    (hit,) = (await store.search.discover(Query(text="登录"), OWNER)).hits
    assert hit.session.conversation == receipt.conversation
    write(log, [*LOG, message("user", "and it went on", at=20)])
    (parcel,) = parcels(log)
    assert (await store.take_in(parcel, {}, at=T0)).fresh is False
    assert await store.transcript(receipt.conversation, OWNER) == rows


def test_older_logs_have_the_bare_items(tmp_path: Path) -> None:
    bare = [one["payload"] for one in LOG if one["type"] == "response_item"]
    meta = {"id": SESSION, "timestamp": "2026-01-01T09:00:00.500Z", "instructions": None, "git": {"branch": "dev"}}
    lines = [meta, {"record_type": "state"}, *bare]
    path = write(tmp_path / "rollout.jsonl", lines)
    (parcel,) = parcels(path)
    assert parcel.source == Source("codex", SESSION)
    session, rows = alone(path)
    assert (session.id, session.git_branch, session.started_at) == ("20260101_090000_e6a464ec", "dev", T0 + 0.5)
    assert [row.content for row in rows] == WORDS
    assert {row.at for row in rows} == {T0 + 0.5}


def test_a_log_without_its_first_line_is_named_by_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-x.jsonl", [{"type": "message", "role": "user", "content": "just words"}])
    (parcel,) = parcels(path)
    assert parcel.source == Source("codex", "rollout-x")
    session, (row,) = alone(path)
    assert (row.content, session.started_at) == ("just words", path.stat().st_mtime)


def test_a_fork_is_about_itself(tmp_path: Path) -> None:
    ancestor = line("session_meta", id="ancestor", cwd="/old", timestamp="2025-01-01T00:00:00Z")
    session, _ = alone(write(tmp_path / "log.jsonl", [META, ancestor, message("user", "hi")]))
    assert (session.started_at, session.cwd) == (T0, "/home/me/proj")


# -- what a line may say --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "context",
    [
        "<environment_context>\n<cwd>/x</cwd>",
        "\n<user_instructions>\nbe kind",
        "# AGENTS.md instructions for /x",
        "<INSTRUCTIONS>",
        "<recommended_plugins>",
        "<turn_aborted>",
    ],
)
def test_the_programs_own_context_is_left_out(tmp_path: Path, context: str) -> None:
    assert said(
        tmp_path,
        message("user", context),
        message("user", context, "hello"),
        message("assistant", context),
        message("user", f"what is {context}?"),
        message("system", "no"),
    ) == [("user", "hello"), ("assistant", context), ("user", f"what is {context}?")]


def test_content_of_every_form(tmp_path: Path) -> None:
    assert said(
        tmp_path,
        item("message", role="user", content=[{"type": "input_text", "text": "look"}, {"type": "input_image"}]),
        item("message", role="user", content="broken \ud83d and \x00"),
        item("message", role="user", content=None),
        item("message", role="assistant", content=[{"type": "output_text", "text": ""}]),
        item("function_call_output", call_id="x", output=None),
        item("web_search_call", action={}),
    ) == [("user", "look\n[image]"), ("user", "broken \ufffd and \ufffd"), ("tool", "")]


def test_the_summary_of_a_compaction_is_no_talk(tmp_path: Path) -> None:
    lines = [line("compacted", message="so far"), line("compacted", message=""), message("user", "go on")]
    session, rows = alone(write(tmp_path / "log.jsonl", lines))
    assert [(row.kind, row.content) for row in rows] == [(Kind.SUMMARY, "so far"), (Kind.TALK, "go on")]
    assert (session.preview, session.message_count) == ("go on", 1)


async def test_calls_and_results_that_do_not_pair_up_come_in(tmp_path: Path, store: SqliteStore) -> None:
    lines = [
        item("function_call_output", call_id="gone", output="of nobody"),
        item("function_call", name="f", arguments="{}", call_id="c"),
        item("function_call", name="g", arguments="{}", call_id="c"),
        item("local_shell_call", id="lsh", call_id=None, action={}),
        item("function_call", arguments=None),
        *(item("function_call_output", call_id=call, output="") for call in ("c", "c", "lsh", None, None)),
    ]
    (parcel,) = parcels(write(tmp_path / "log.jsonl", lines))
    await store.take_in(parcel, {}, at=T0)
    rows = await store.history((await store.latest("codex", OWNER)).id)
    assert [(call.id, call.name) for row in rows for call in row.tool_calls] == [
        *(("c", "f"), ("c", "g"), ("lsh", "local_shell"), ("call_1", "unknown")),
    ]
    assert [(row.tool_call_id, row.tool_name) for row in rows if row.role is Role.TOOL] == [
        *(("gone", None), ("c", "g"), ("c", "g"), ("lsh", "local_shell"), ("call_1", "unknown"), ("call_2", None)),
    ]


# -- damage ---------------------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    whole = [json.dumps(one) for one in LOG]
    path = tmp_path / "log.jsonl"
    path.write_bytes("\n".join([whole[0], whole[4], whole[7][:50] + whole[9], whole[15]]).encode()[:-9] + b"\xe4")
    _, rows = alone(path)
    assert [row.content for row in rows] == ["Fix the login 修复登录"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"hello", b"\x00\xff" * 50, b"[1]\n7", b'{"type": ["message"]}', b"[" * 9999),
        *(b'{"type": "user", "message": {}}', b'{"session_id": "x", "ts": 1, "text": "hi"}'),
    ],
)
def test_what_is_no_log_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"log.jsonl is no log of the Codex CLI"):
        list(parcels(path))


@pytest.mark.parametrize("lines", [[], [META], LOG[:3], [LOG[5]]])
def test_a_log_without_a_word_brings_nothing(tmp_path: Path, lines: list[Any]) -> None:
    assert list(parcels(write(tmp_path / "log.jsonl", lines))) == []


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
    [
        "type",
        "role",
        "content",
        "id",
        "timestamp",
        "cwd",
        "call_id",
        "output",
        "name",
        "arguments",
        "message",
        "payload",
    ]
)
CHANGES = st.dictionaries(FIELDS, JSON, max_size=2)
ODD_LINE = st.one_of(
    st.builds(lambda one, change: one | change, st.sampled_from(LOG), CHANGES),
    st.builds(lambda one, change: one | {"payload": one["payload"] | change}, st.sampled_from(LOG), CHANGES),
    st.builds(lambda one, change: one["payload"] | change, st.sampled_from(LOG), CHANGES),
    JSON,
)


def survives(content: bytes) -> list[Parcel]:
    """The conversations; a log that is refused has none."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content)
        try:
            return list(parcels(path))
        except UserError:
            return []


@settings(deadline=None)
@given(st.permutations(LOG), st.integers(0, 4000))
def test_shuffled_and_cut_off_logs_are_read_or_refused(lines: list[Any], end: int) -> None:
    whole = "\n".join(json.dumps(one, ensure_ascii=False) for one in lines).encode()
    for parcel in survives(whole[:end]):
        assert {row.content for _, rows in parcel.segments for row in rows} <= set(WORDS)


@settings(deadline=None)
@given(st.lists(ODD_LINE, max_size=6))
def test_odd_lines_do_no_harm(lines: list[Any]) -> None:
    for parcel in survives("\n".join(map(json.dumps, lines)).encode()):
        ((record, rows),) = parcel.segments
        assert [row.id for row in rows] == list(range(1, len(rows) + 1))
        assert record.session.message_count == sum(row.kind is not Kind.SUMMARY for row in rows)
        assert record.session.ended_at == record.session.last_active >= record.session.started_at
        " ".join(row.content for row in rows).encode()


def test_the_same_file_gives_the_same_parcels(log: Path) -> None:
    assert list(parcels(log)) == list(parcels(log))
