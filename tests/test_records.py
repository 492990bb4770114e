"""A session as a line of JSON: nothing of it is lost, and nothing that is no session is taken for one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.sessions import titles
from hermes.sessions.model import (
    ConversationId,
    Kind,
    Message,
    Person,
    Role,
    Session,
    SessionId,
    SessionKey,
    ToolCall,
    TurnId,
    Usage,
    ViewEntry,
)
from hermes.sessions.records import Record, line, read
from hermes.text import one_line

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
MAYBE = st.none() | TEXT
AT = st.floats(0, 4e9, allow_nan=False)
COUNT = st.integers(0, 2**62)
NAME = st.from_regex(r"[\w:@+-][\w.:@+-]{0,20}", fullmatch=True).map(SessionId)
TITLE = TEXT.map(titles.clean)

SESSIONS = st.builds(
    Session,
    id=NAME,
    conversation=NAME.map(ConversationId),
    source=TEXT,
    started_at=AT,
    last_active=AT,
    key=st.none() | TEXT.map(SessionKey),
    user_id=MAYBE,
    title=st.none() | TITLE,
    title_by_person=st.booleans(),
    system_prompt=MAYBE,
    usage=st.builds(Usage, input_tokens=COUNT, cost_usd=AT),
    message_count=COUNT,
    preview=TEXT.map(lambda text: one_line(text, 60)),
    ended_at=st.none() | AT,
    archived=st.booleans(),
)
RECORDS = st.builds(
    Record,
    session=SESSIONS,
    tip=NAME,
    api_calls=COUNT,
    goal=MAYBE,
    cooldowns=MAYBE,
    view=st.lists(st.builds(ViewEntry, message_id=COUNT, replacement=MAYBE), max_size=3).map(tuple),
)
CALLS = st.lists(st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT), max_size=2).map(tuple)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(Role))
    return Message(
        id=draw(COUNT),
        session_id=SessionId("s"),
        role=role,
        kind=draw(st.sampled_from(Kind)),
        content=draw(TEXT),
        at=draw(AT),
        turn=draw(st.none() | TEXT.map(TurnId)),
        tool_calls=draw(CALLS) if role is Role.ASSISTANT else (),
        tool_call_id=draw(TEXT) if role is Role.TOOL else None,
        tool_name=draw(MAYBE),
        tokens=draw(st.none() | COUNT),
        finish_reason=draw(MAYBE),
        sender=draw(st.none() | st.builds(Person, id=TEXT, name=TEXT)),
        platform_message_ids=draw(st.lists(TEXT, max_size=2).map(tuple)),
        undone_by=draw(st.none() | COUNT),
    )


def test_titles_and_previews_are_cleaned() -> None:
    record, _ = read(json.dumps(facts(title="a\x1b]0;owned\x07b" + "x" * 500, preview="c\x1b[2J\nd")))
    assert record.session.title is not None
    assert record.session.title.startswith("a]0;ownedbxxx")
    assert len(record.session.title) <= 100
    assert "\x1b" not in record.session.preview


@given(RECORDS, st.lists(messages(), max_size=3))
def test_what_is_written_is_read_again(record: Record, rows: list[Message]) -> None:
    text = "".join(line(record, rows))
    assert text.count("\n") == 1
    again, back = read(text)
    assert again == record
    assert [(row.id, row.content, row.sender, row.tool_calls) for row in back] == [
        (row.id, row.content, row.sender, row.tool_calls) for row in rows
    ]
    assert "".join(line(again, back)) == text


def facts(**changes: Any) -> dict[str, Any]:
    whole = {
        "format": "hermes-session",
        "version": 1,
        "id": "s",
        "conversation": "s",
        "source": "cli",
        "started_at": 1.0,
        "last_active": 1.0,
        "tip": "s",
        "messages": [{"id": 1, "role": "user", "content": "hi", "at": 1.0}],
    }
    return whole | changes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("[]", "no session"),
        ('{"id": "x"}', "no session"),
        (json.dumps(facts(version=2)), "version 2"),
        (json.dumps(facts(version=None)), "version None"),
        (json.dumps(facts(id=7)), "id is 7"),
        (json.dumps(facts(started_at="yesterday")), "started_at"),
        (json.dumps(facts(archived=1)), "archived"),
        (json.dumps(facts(link="cousin", parent="p")), "cousin"),
        (json.dumps(facts(parent="p")), "given together"),
        (json.dumps(facts(id="../pwn")), "id is"),
        (json.dumps(facts(message_count=10**30)), "message_count"),
        (json.dumps(facts(started_at=1e15)), "no moment"),
        (json.dumps(facts(last_active=float("nan"))), "last_active"),
        ("[" * 100_000, "no JSON"),
        (json.dumps(facts(messages=[{"id": 1, "role": "user", "content": "x", "at": 1e18}])), "no moment"),
        (json.dumps(facts(messages=None)), "not what it should be"),
        (json.dumps(facts(messages=[{"id": True, "role": "user", "content": "x", "at": 1}])), "no whole number"),
        (json.dumps(facts(messages=[{"id": 2**70, "role": "user", "content": "x", "at": 1}])), "no whole number"),
        (json.dumps(facts(messages=[{"id": 1, "role": "boss", "content": "x", "at": 1}])), "boss"),
        (json.dumps(facts(messages=[{"id": 1, "role": "tool", "content": "x", "at": 1}])), "names its call"),
        (json.dumps(facts(messages=[{"id": 1, "role": "user", "content": None, "at": 1}])), "no text"),
    ],
)
def test_what_is_no_session_is_told(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        read(text)


def test_broken_letters_are_mended() -> None:
    broken = json.dumps(facts(title="a\ud83d", messages=[{"id": 1, "role": "user", "content": "x\0y", "at": 1}]))
    record, (row,) = read(broken)
    assert (record.session.title, row.content) == ("a\ufffd", "x\ufffdy")
