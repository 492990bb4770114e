"""Conversations as a store keeps them: sound ones, and the broken ones that real life leaves behind."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

from hermes.compression.pipeline import Compressed, Fitted, Pruned
from hermes.sessions.model import Kind, Message, NewMessage, Role, SessionId, ToolCall, ViewEntry

SESSION = SessionId("20270115_080000_abcdef12")
AT = 1_800_000_000.0


def row(number: int, new: NewMessage) -> Message:
    """`new` as it stands in the store."""
    fields = {each.name: getattr(new, each.name) for each in dataclasses.fields(new)}
    return Message(id=number, session_id=SESSION, **fields)


def numbered(rows: Sequence[NewMessage]) -> tuple[Message, ...]:
    return tuple(row(number, new) for number, new in enumerate(rows, start=1))


def user(text: str) -> NewMessage:
    return NewMessage(role=Role.USER, content=text, at=AT)


def assistant(text: str, *calls: ToolCall) -> NewMessage:
    return NewMessage(role=Role.ASSISTANT, content=text, at=AT, tool_calls=calls)


def call(reference: str, name: str = "read_file", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=reference, name=name, arguments=arguments)


def result(reference: str, text: str, name: str = "read_file") -> NewMessage:
    return NewMessage(role=Role.TOOL, kind=Kind.TOOL, content=text, at=AT, tool_call_id=reference, tool_name=name)


def talk(turns: int, *, words: int = 60) -> list[NewMessage]:
    """Plain questions and answers."""
    rows = []
    for turn in range(turns):
        rows += [user(f"question {turn} " + "why " * words), assistant(f"answer {turn} " + "because " * words)]
    return rows


def work(rounds: int, *, characters: int, start: int = 0) -> list[NewMessage]:
    """Rounds of two parallel tool calls each."""
    rows = []
    for at in range(start, start + rounds):
        ids = (f"c{at}a", f"c{at}b")
        rows.append(assistant("", *(call(one, arguments=f'{{"path": "src/m{at}.py"}}') for one in ids)))
        rows += [result(one, f"out {at} " + "x" * characters) for one in ids]
    return rows


def sound(rows: Sequence[NewMessage]) -> bool:
    """The pairing rules of OpenAI and Anthropic: calls and results side by side, one for one, ids used once."""
    due: set[str] = set()
    used: set[str] = set()
    for one in rows:
        if one.role is Role.TOOL:
            if one.tool_call_id not in due:
                return False
            due.remove(one.tool_call_id)
            continue
        ids = [each.id for each in one.tool_calls]
        if due or used.intersection(ids) or len(set(ids)) < len(ids):
            return False
        used.update(ids)
        due.update(ids)
    return not due


def resolved(history: Sequence[Message], fitted: Fitted) -> tuple[Message, ...]:
    """What the store would give back as history after `fitted`."""
    if isinstance(fitted, Pruned):
        return _shown(history, fitted.view)
    if isinstance(fitted, Compressed):
        summary = row(max(one.id for one in history) + 1, fitted.summary)
        return (*_shown(history, fitted.head), summary, *_shown(history, fitted.tail))
    return tuple(history)


def _shown(history: Sequence[Message], view: Sequence[ViewEntry]) -> tuple[Message, ...]:
    rows = {one.id: one for one in history}
    return tuple(
        rows[entry.message_id]
        if entry.replacement is None
        else replace(rows[entry.message_id], content=entry.replacement)
        for entry in view
    )


unhurried = settings(deadline=None)
"""A busy machine is no failure."""

texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", "option 2", "请看 src/main.py", "抱歉", "## Goal", "\ud83d", "🎩" * 50, "a-" * 100]),
    st.builds(lambda piece, times: piece * times, st.sampled_from(["word ", "压缩", "x", "é"]), st.integers(1, 9000)),
)
ids = st.sampled_from(["", "call_0", "call_1", "call_2", "call_0_2", "toolu_9"])
calls = st.builds(ToolCall, id=ids, name=st.sampled_from(["read_file", "web_fetch"]), arguments=texts)
broken = st.lists(
    st.one_of(
        st.builds(user, texts),
        st.builds(assistant, texts),
        st.builds(lambda text, made: assistant(text, *made), texts, st.lists(calls, min_size=1, max_size=4)),
        st.builds(result, ids, texts),
        st.builds(result, ids, texts),
    ),
    max_size=30,
).map(numbered)
"""Histories with any mixture of calls and results: lost, doubled, late, interleaved, with ids used again."""
