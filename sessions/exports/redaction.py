"""Secrets taken out of what an export prints: of every text in it, whatever its place. Pure."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from hermes.redact import Redactor
from hermes.sessions.exports.document import Document
from hermes.sessions.model import Message, Person, Session, ToolCall, ViewEntry
from hermes.sessions.records import Record

Facts = TypeVar("Facts", Session, Message, Record, Person)

NAMES = frozenset({"id", "session_id", "conversation", "parent", "tip", "predecessor", "turn", "tool_call_id"})
"""Ids that lines refer to each other by."""


def document(shown: Document, redactor: Redactor) -> Document:
    """The document without secrets."""
    return Document(session(shown.session, redactor), shown.lineage, lambda: messages(shown.pages(), redactor))


def record(kept: Record, redactor: Redactor) -> Record:
    """The record without secrets."""
    view = tuple(
        ViewEntry(message_id=entry.message_id, replacement=entry.replacement and redactor.text(entry.replacement))
        for entry in kept.view
    )
    return replace(_texts(kept, redactor), session=session(kept.session, redactor), view=view)


def session(kept: Session, redactor: Redactor) -> Session:
    """The session without secrets. Of a preview that was cut the last word goes: it may be the half of one."""
    whole = kept.preview.rpartition(" ")[0] + "…" if kept.preview.endswith("…") else kept.preview
    return _texts(replace(kept, preview=whole), redactor)


def messages(rows: Iterable[Message], redactor: Redactor) -> Iterator[Message]:
    """The messages without secrets; arguments of tools are looked into as the JSON that they are."""
    for row in rows:
        calls = tuple(_call(call, redactor) for call in row.tool_calls)
        sender = None if row.sender is None else _texts(row.sender, redactor)
        yield replace(_texts(row, redactor), tool_calls=calls, sender=sender)


def _call(call: ToolCall, redactor: Redactor) -> ToolCall:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):  # no JSON, or deeper than anybody looks
        return replace(call, name=redactor.text(call.name), arguments=redactor.text(call.arguments))
    clean = redactor.value(arguments)
    text = call.arguments if clean == arguments else json.dumps(clean, ensure_ascii=False)
    return replace(call, name=redactor.text(call.name), arguments=redactor.text(text))


def _texts(facts: Facts, redactor: Redactor) -> Facts:
    """The value with its own strings redacted, ids aside."""
    held = {fact.name: getattr(facts, fact.name) for fact in fields(facts) if fact.name not in NAMES}
    clean: dict[str, Any] = {name: redactor.text(text) for name, text in held.items() if isinstance(text, str)}
    return replace(facts, **{name: text for name, text in clean.items() if text != held[name]})
