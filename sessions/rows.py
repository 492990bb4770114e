"""How rows become values, and lists become the JSON that a column holds. Pure."""

import json
from collections.abc import Collection, Sequence
from typing import Any

from hermes.sessions.model import (
    Kind,
    Link,
    Message,
    NewMessage,
    Person,
    Role,
    Session,
    SessionId,
    ToolCall,
    TurnId,
    Usage,
)

Row = Sequence[Any]
"""One row as a driver gives it: by position, of the types that the columns declare."""

_MESSAGE_FIELDS = (
    *("id", "session_id", "turn", "role", "kind", "content", "tool_calls", "tool_call_id", "tool_name"),
    *("tokens", "finish_reason", "at", "sender_id", "sender_name", "platform_message_ids", "undone_by"),
)
_SESSION_FIELDS = (
    *("id", "conversation", "source", "started_at", "last_active", "key", "parent", "link", "user_id", "chat_id"),
    *("chat_kind", "thread_id", "title", "title_by_person", "model", "provider", "model_config", "system_prompt"),
    *("tools", "message_count", "tool_call_count", "preview", "cwd", "git_branch", "ended_at", "end_reason"),
)
_USAGE_FIELDS = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd"),
)
_ROLES = {role.value: role for role in Role}
_KINDS = {kind.value: kind for kind in Kind}

MESSAGE_COLUMNS = ", ".join(f"m.{name}" for name in _MESSAGE_FIELDS)
"""What `message` reads, of `messages m`."""
SELECT_MESSAGES = f"SELECT {MESSAGE_COLUMNS} FROM messages m"
"""A statement to go on with: `WHERE m.id = ?`."""

SESSION_COLUMNS = ", ".join((*(f"s.{name}" for name in _SESSION_FIELDS + _USAGE_FIELDS), "c.archived"))
"""What `session` reads, of `sessions s` and its `conversations c`."""
_FROM_SESSIONS = (
    "FROM sessions s JOIN conversations c ON c.id = s.conversation AND c.id NOT IN (SELECT conversation FROM doomed)"
)
SELECT_SESSIONS = f"SELECT {SESSION_COLUMNS} {_FROM_SESSIONS}"
"""A statement to go on with: `WHERE s.id = ?`. What is being deleted is not there."""
SLIM_SESSIONS = f"SELECT {SESSION_COLUMNS} {_FROM_SESSIONS}".replace("s.system_prompt, s.tools", "NULL, NULL")
"""The same without the long texts that lists and filters never show."""


_SLOTS = tuple(
    getattr(Message, name).__set__
    for name in (
        *("id", "session_id", "turn", "role", "kind", "content", "tool_calls", "tool_call_id", "tool_name"),
        *("tokens", "finish_reason", "at", "undone_by", "sender", "platform_message_ids"),
    )
)


def message(row: Row) -> Message:
    """The message behind `MESSAGE_COLUMNS`; columns behind those are the caller's own.

    Histories have thousands of rows, and a frozen dataclass spends most of their time in its `__init__`. What is in the
    store was valid when it was written, so the slots are filled directly.
    """
    row_id, session_id, turn, role, kind, content, calls, call_id, tool, *rest = row
    tokens, finish_reason, at, sender_id, sender_name, platform_ids, undone_by = rest[:7]
    made = object.__new__(Message)
    values = (
        *(row_id, session_id, turn, _ROLES[role], _KINDS[kind], content),
        *(read_tool_calls(calls), call_id, tool, tokens, finish_reason, at, undone_by),
        None if sender_id is None else Person(id=sender_id, name=sender_name or ""),
        read_strings(platform_ids),
    )
    for fill, value in zip(_SLOTS, values, strict=True):
        fill(made, value)
    return made


def appended(new: NewMessage, row_id: int, session: SessionId, turn: TurnId | None) -> Message:
    """What `message` would read of a row that was just made of `new`."""
    return Message(
        id=row_id,
        session_id=session,
        turn=turn,
        role=new.role,
        kind=new.kind,
        content=new.content,
        tool_calls=new.tool_calls,
        tool_call_id=new.tool_call_id,
        tool_name=new.tool_name,
        tokens=new.tokens,
        finish_reason=new.finish_reason,
        at=new.at,
        sender=new.sender,
        platform_message_ids=new.platform_message_ids,
    )


def session(row: Row) -> Session:
    """The session behind `SESSION_COLUMNS`; columns behind those are the caller's own."""
    facts = dict(zip((*_SESSION_FIELDS, *_USAGE_FIELDS, "archived"), row, strict=False))
    usage = Usage(**{name: facts.pop(name) for name in _USAGE_FIELDS})
    facts["link"] = None if facts["link"] is None else Link(facts["link"])
    facts["title_by_person"] = bool(facts["title_by_person"])
    facts["archived"] = bool(facts["archived"])
    return Session(usage=usage, **facts)


def write_tool_calls(calls: Sequence[ToolCall]) -> str | None:
    """The column `messages.tool_calls`; NULL for none."""
    facts = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return json.dumps(facts, ensure_ascii=False) if facts else None


def read_tool_calls(column: str | None) -> tuple[ToolCall, ...]:
    """The reverse of `write_tool_calls`."""
    return tuple(ToolCall(**facts) for facts in json.loads(column)) if column else ()


def write_strings(strings: Sequence[str]) -> str | None:
    """A column that holds a list of strings, such as `platform_message_ids`; NULL for none."""
    return json.dumps(list(strings), ensure_ascii=False) if strings else None


def read_strings(column: str | None) -> tuple[str, ...]:
    """The reverse of `write_strings`."""
    return tuple(json.loads(column)) if column else ()


def marks(values: Collection[object]) -> str:
    """The parameter marks of an `IN (…)` list."""
    return ", ".join("?" * len(values))
