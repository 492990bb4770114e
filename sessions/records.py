"""A session as a line of JSON: everything that is kept of it, and back again. Pure.

The format `hermes-session` 1 is one object a session. Fields that have their default are left out, so that equal
sessions give equal lines. `conversation` names the lineage, whose own facts every segment repeats.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from hermes.errors import UserError
from hermes.sessions import titles
from hermes.sessions.model import (
    ConversationId,
    Kind,
    Link,
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
from hermes.sessions.turns import PREVIEW
from hermes.text import one_line, repair

FORMAT, VERSION = "hermes-session", 1

_ID = re.compile(r"(?!\.)[\w.:@+-]{1,200}")
"""Ids become parts of file names."""
_LARGEST = 2**63
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One segment with what its conversation has besides; its messages come separately."""

    session: Session
    tip: SessionId
    """The live segment of the conversation."""
    api_calls: int = 0
    predecessor: ConversationId | None = None
    goal: str | None = None
    model_override: str | None = None
    pins: str | None = None
    cooldowns: str | None = None
    view: tuple[ViewEntry, ...] = ()


_USAGE = tuple(fact.name for fact in fields(Usage))
_SESSION = tuple(fact.name for fact in fields(Session) if fact.name != "usage")
_BESIDES = ("tip", "api_calls", "predecessor", "goal", "model_override", "pins", "cooldowns")
_DEFAULTS: Mapping[str, object] = {
    fact.name: fact.default for kind in (Session, Usage, Record) for fact in fields(kind)
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("message_count", "tool_call_count", "api_calls", *_USAGE), int),
    **dict.fromkeys(("started_at", "last_active", "ended_at", "cost_usd"), (int, float)),
    **dict.fromkeys(("title_by_person", "archived"), bool),
}
"""What a field may be, where it is not a string."""


def line(record: Record, messages: Iterable[Message]) -> Iterator[str]:
    """The line of a session in pieces, its line break included; messages are read as they are written."""
    yield f"{_json(_head(record))[:-1]}, " + '"messages": ['
    for number, row in enumerate(messages):
        yield f"{', ' if number else ''}{_json(message_facts(row))}"
    yield "]}\n"


def message_facts(row: Message) -> dict[str, Any]:
    """A message as JSON has it."""
    facts: dict[str, Any] = {"id": row.id, "role": row.role.value, "content": row.content, "at": row.at}
    sender = row.sender
    optional: dict[str, Any] = {
        "kind": None if row.kind is Kind.TALK else row.kind.value,
        "turn": row.turn,
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in row.tool_calls],
        "tool_call_id": row.tool_call_id,
        "tool_name": row.tool_name,
        "tokens": row.tokens,
        "finish_reason": row.finish_reason,
        "sender": None if sender is None else {"id": sender.id, **({"name": sender.name} if sender.name else {})},
        "platform_message_ids": list(row.platform_message_ids),
        "undone_by": row.undone_by,
    }
    return facts | {name: value for name, value in optional.items() if value is not None and value != []}


def read(text: str) -> tuple[Record, tuple[Message, ...]]:
    """The session behind a line. Raises UserError that says what is wrong with it."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"it is no JSON ({error})") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise UserError(f'it is no session: a line starts with {{"format": "{FORMAT}"')
    if facts.get("version") != VERSION:
        raise UserError(f"it has version {facts.get('version')!r} of the format; this Hermes knows {VERSION}")
    try:
        record = _record(facts)
        rows = tuple(_message(row, record.session.id) for row in facts["messages"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"a field is missing or not what it should be: {error}") from error
    return record, rows


def _head(record: Record) -> dict[str, Any]:
    session = record.session
    named = {name: getattr(session, name) for name in _SESSION}
    spent = {name: getattr(session.usage, name) for name in _USAGE}
    besides = {name: getattr(record, name) for name in _BESIDES}
    facts = {
        name: value
        for name, value in (named | spent | besides).items()
        if value is not None and value != _DEFAULTS[name]
    }
    view = [[entry.message_id, *(() if entry.replacement is None else (entry.replacement,))] for entry in record.view]
    return {"format": FORMAT, "version": VERSION, **facts, **({"view": view} if view else {})}


def _record(facts: Mapping[str, Any]) -> Record:
    for name in (*_SESSION, *_USAGE, *_BESIDES):
        if name in facts and not _fits(facts[name], _TYPES.get(name, str)):
            raise TypeError(f"{name} is {facts[name]!r}")
    usage = Usage(**{name: facts[name] for name in _USAGE if name in facts})
    besides = {name: _clean(facts[name]) for name in _BESIDES if name in facts}
    view = tuple(
        ViewEntry(message_id=_number(entry[0]), replacement=_text(entry[1]) if len(entry) > 1 else None)
        for entry in facts.get("view", ())
    )
    return Record(session=Session(usage=usage, **_session(facts)), view=view, **besides)


def _session(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a session other than its usage, each as the store would have made it."""
    known: dict[str, Any] = {name: _clean(facts[name]) for name in _SESSION if name in facts}
    if ("parent" in known) != ("link" in known):
        raise ValueError("parent and link are given together, or neither")
    for name in {"id", "conversation", "parent"} & known.keys():
        if _ID.fullmatch(known[name]) is None:
            raise ValueError(f"{name} is {known[name]!r}")
    for name in {"started_at", "last_active", "ended_at"} & known.keys():
        known[name] = _moment(known[name])
    makers: Mapping[str, Callable[[Any], Any]] = {"link": Link, "key": SessionKey, "title": _title}
    made = {name: make(known[name]) for name, make in makers.items() if name in known}
    return known | made | {"preview": one_line(known.get("preview", ""), PREVIEW)}


def _message(facts: Mapping[str, Any], session: SessionId) -> Message:
    sender = facts.get("sender")
    calls = facts.get("tool_calls", ())
    return Message(
        id=_number(facts["id"]),
        session_id=session,
        role=Role(facts["role"]),
        kind=Kind(facts.get("kind", Kind.TALK)),
        content=_text(facts["content"]),
        at=_moment(facts["at"]),
        turn=None if facts.get("turn") is None else TurnId(_text(facts["turn"])),
        tool_calls=tuple(ToolCall(**{name: _text(one[name]) for name in ("id", "name", "arguments")}) for one in calls),
        tool_call_id=_optional(facts, "tool_call_id"),
        tool_name=_optional(facts, "tool_name"),
        tokens=None if facts.get("tokens") is None else _number(facts["tokens"]),
        finish_reason=_optional(facts, "finish_reason"),
        sender=None if sender is None else Person(id=_text(sender["id"]), name=_text(sender.get("name", ""))),
        platform_message_ids=tuple(map(_text, facts.get("platform_message_ids", ()))),
        undone_by=None if facts.get("undone_by") is None else _number(facts["undone_by"]),
    )


def _fits(value: object, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, int | float) and kind is not bool and not abs(value) < _LARGEST:
        return False  # neither are NaN and the infinities
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _moment(value: object) -> float:
    """Seconds since the epoch, of a year that calendars know."""
    if not _fits(value, (int, float)) or not _FIRST <= float(value) <= _LAST:  # type: ignore[arg-type]
        raise TypeError(f"{value!r} is no moment")
    return float(value)  # type: ignore[arg-type]


def _title(text: str) -> str | None:
    try:
        return titles.clean(text)
    except UserError:
        return titles.clean(text[: titles.LIMIT])


def _clean(value: Any) -> Any:
    return repair(value) if isinstance(value, str) else value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return repair(value)


def _optional(facts: Mapping[str, Any], name: str) -> str | None:
    return None if facts.get(name) is None else _text(facts[name])


def _number(value: object) -> int:
    if not _fits(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False)
