"""Reading the state.db of hermes-agent as conversations: without a write, also while that program runs.

A conversation there is a chain of sessions, each ended by a compression and continued by a child. Where a compression
kept the session instead, its archived rows become a segment of their own before it, `<id>_before`: the model sees the
live rows alone, and searches find both.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Self

from hermes.errors import UserError
from hermes.sessions import dbapi
from hermes.sessions.database import cause
from hermes.sessions.dbapi import Connection
from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.imports.building import (
    IMPORTED,
    Calls,
    amount,
    counted,
    flat,
    from_json,
    mapping,
    moment,
    name,
    number,
    numbered,
    title,
)
from hermes.sessions.model import (
    ConversationId,
    Kind,
    Link,
    Message,
    NewMessage,
    Role,
    Session,
    SessionId,
    SessionKey,
    ToolCall,
    Usage,
)
from hermes.sessions.records import Record

PROGRAM = "hermes-agent"
BUSY_SECONDS = 5.0
"""How long a read waits for somebody who writes; with a write-ahead log it never has to."""

_COMPRESSION = "compression"
_NODE = ("id", "parent_session_id", "source", "started_at", "ended_at", "end_reason", "model_config")
_SESSION = (
    *("id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "model", "system_prompt"),
    *("started_at", "ended_at", "end_reason", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "cwd", "git_branch", "billing_provider", "estimated_cost_usd"),
    *("actual_cost_usd", "title", "api_call_count", "archived"),
)
_MESSAGE = (
    *("id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "token_count"),
    *("finish_reason", "platform_message_id", "active", "compacted"),
)
_ROUTE = ("session_key", "entry_json", "updated_at")
_TABLES = ("sessions", "messages", "gateway_routing")
_NEEDED = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"id", "session_id", "role", "content", "timestamp"},
}

_ROLES = {role.value: role for role in Role}
_PARTS = "\x00json:"
"""What content that is no plain text starts with."""
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
"""How the summary of a compression starts, in all versions."""
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
"""Stands before a summary that shares a row with the words before it."""

_KEY = re.compile(r"agent:([^:]+):([^:]+):(dm|group|channel|thread):(.+)", re.DOTALL)
_UNSAFE = re.compile(r"[:%\s\x00-\x1f\x7f-\x9f]")

Facts = Mapping[str, Any]
Piece = tuple[Record, tuple[Message, ...]]


def parcels(path: Path) -> Iterator[Parcel]:
    """The conversations of a state.db, the first begun first, each read when its turn comes.

    Raises UserError when the file is no such database or cannot be read. Only SQLite opens it, for reading.
    """
    try:
        with closing(_connect(path)) as connection:
            columns = {table: _columns(connection, table) for table in _TABLES}
            if any(not needed <= columns[table] for table, needed in _NEEDED.items()):
                raise UserError(
                    f"{path} is a database, but none of {PROGRAM}, which keeps a state.db in its home folder."
                )
            yield from _Foreign(connection, columns).parcels()
    except dbapi.Error as error:
        raise UserError(f"{path} cannot be read as a database of {PROGRAM}: {error}. {_advice(error)}") from error


def _advice(error: dbapi.Error) -> str:
    if cause(error) == "SQLITE_NOTADB":
        return "Name the state.db in its home folder."
    if cause(error) in {"SQLITE_CANTOPEN", "SQLITE_READONLY"}:
        return "If its folder is read-only, copy the file to another one, with the -wal beside it if there is one."
    return "Stop that program and try again, or import a copy of the file."


def _connect(path: Path) -> Connection:
    connection = dbapi.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=BUSY_SECONDS
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _columns(connection: Connection, table: str) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A session as the tree of all sessions needs it."""

    id: str
    parent: str | None
    source: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    branched_from: str | None
    delegated_from: str | None

    @classmethod
    def of(cls, facts: Facts) -> Self:
        marks = mapping(from_json(_text(facts["model_config"])))
        branched_from, delegated_from = name(marks.get("_branched_from")), name(marks.get("_delegate_from"))
        return cls(
            id=_text(facts["id"]),
            parent=name(facts["parent_session_id"]) or branched_from or delegated_from,
            source=name(facts["source"]),
            started_at=moment(facts["started_at"]) or 0.0,
            ended_at=moment(facts["ended_at"]),
            end_reason=name(facts["end_reason"]),
            branched_from=branched_from,
            delegated_from=delegated_from,
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, and where it stands: live, archived by a compression, or undone."""

    id: int
    said: NewMessage
    live: bool
    archived: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A key in our own spelling, and whether everybody in the chat shares what it leads to."""

    key: SessionKey
    shared: bool
    origin: str
    """Where its answers go, as the JSON that routes keep: until somebody writes there again, which renews it."""


class _Foreign:
    """The database. Every statement is a read of its own, so that nobody there ever waits for an import to end."""

    def __init__(self, connection: Connection, columns: Mapping[str, set[str]]) -> None:
        self._connection = connection
        self._columns = columns
        self._nodes = {node.id: node for node in map(_Node.of, self._read("sessions", _NODE))}
        self._next = self._continuations()
        self._before = {after: before for before, after in self._next.items()}
        self._routes = dict(self._routed())

    def parcels(self) -> Iterator[Parcel]:
        """The conversations, one at a time; one that was deleted in the meantime is left out."""
        for chain in self._chains():
            pieces = self._pieces(chain)
            if pieces:
                place = self._place_of(chain)
                route = None if place is None else (place.key, place.origin)
                yield Parcel(tuple(self._joined(chain, pieces)), Source(PROGRAM, chain[0].id), route)

    # -- the tree of sessions -----------------------------------------------------------------------------------------

    def _continuations(self) -> dict[str, str]:
        """From each session that a compression ended to the one that goes on with it."""
        children: defaultdict[str, list[_Node]] = defaultdict(list)
        for node in self._nodes.values():
            parent = self._nodes.get(node.parent or "")
            marked = node.branched_from or node.delegated_from or node.source == "tool"
            if parent is not None and parent.end_reason == _COMPRESSION and not marked:
                children[parent.id].append(node)
        return {parent: max(found, key=self._promise).id for parent, found in children.items()}

    def _promise(self, node: _Node) -> tuple[int, float, float, str]:
        """How likely a child is the one in which people went on: races there leave stale ones beside it."""
        standing = 2 if node.end_reason == _COMPRESSION else 1 if node.ended_at is None else 0
        (last,) = self._connection.execute(
            "SELECT max(timestamp) FROM messages WHERE session_id = ?", (node.id,)
        ).fetchone()
        return standing, moment(last) or node.started_at, node.started_at, node.id

    def _chains(self) -> Iterator[list[_Node]]:
        """Every session once, together with those that go on with it; of a damaged ring, the first begun is first."""
        seen: set[str] = set()
        for first in sorted(self._nodes.values(), key=lambda one: (one.id in self._before, one.started_at, one.id)):
            chain: list[_Node] = []
            node: _Node | None = first
            while node is not None and node.id not in seen:
                seen.add(node.id)
                chain.append(node)
                node = self._nodes.get(self._next.get(node.id, ""))
            if chain:
                yield chain

    def _origin(self, node: _Node) -> tuple[SessionId | None, Link | None]:
        """Where the first session of a conversation comes from."""
        if node.parent is None or node.parent == node.id or node.id in self._before:
            return None, None
        if node.branched_from or self._is_branch(node, self._nodes.get(node.parent)):
            return SessionId(node.parent), Link.BRANCH
        return SessionId(node.parent), Link.DELEGATE if node.delegated_from else Link.RESET

    def _is_branch(self, node: _Node, parent: _Node | None) -> bool:
        """Older versions left no mark on a branch; and a second child of a compression shares the history before it."""
        if parent is None or node.delegated_from or node.source == "tool":
            return False
        if parent.end_reason == "branched":
            return node.started_at >= (parent.ended_at or 0.0)
        return parent.end_reason == _COMPRESSION

    def _conversation(self, session: str) -> ConversationId:
        """The conversation that one of theirs belongs to: the id of its first segment."""
        seen: set[str] = set()
        while session in self._before and session not in seen:
            seen.add(session)
            session = self._before[session]
        return ConversationId(_older(session) if self._has_archived(session) else session)

    # -- one conversation ---------------------------------------------------------------------------------------------

    def _pieces(self, chain: Sequence[_Node]) -> list[Piece]:
        """Segments that do not know each other yet, their rows numbered over all of them."""
        numbers, calls, pieces = count(1), Calls(), list[Piece]()
        for node in chain:
            for facts in self._read("sessions", _SESSION, "WHERE id = ?", node.id):
                pieces += _segments(facts, self._rows(node.id, calls), numbers)
        return pieces

    def _joined(self, chain: Sequence[_Node], pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The segments, each as the child of the one before, with what the conversation has as a whole."""
        first, tip = pieces[0][0].session, pieces[-1][0].session
        place = self._place_of(chain)
        parent, link = self._origin(chain[0])
        is_reset = link is Link.RESET and parent in self._nodes
        predecessor = self._conversation(parent) if is_reset and parent is not None else None
        preview = ""
        for record, rows in pieces:
            preview = preview or record.session.preview
            session = replace(
                record.session,
                conversation=ConversationId(first.id),
                parent=parent,
                link=link,
                preview=preview,
                archived=tip.archived,
                key=None if place is None else place.key,
                user_id=None if place is not None and place.shared else record.session.user_id,
            )
            yield replace(record, session=session, tip=tip.id, predecessor=predecessor), rows
            parent, link = session.id, Link.COMPRESSION

    def _place_of(self, chain: Sequence[_Node]) -> _Place | None:
        """The newest key that leads to one of the sessions."""
        routed = [self._routes[node.id] for node in chain if node.id in self._routes]
        return max(routed, key=lambda known: known[0])[1] if routed else None

    def _rows(self, session: str, calls: Calls) -> list[_Row]:
        found = self._read("messages", _MESSAGE, "WHERE session_id = ? ORDER BY id", session)
        return [_row(facts, _ROLES[facts["role"]], calls) for facts in found if facts["role"] in _ROLES]

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read(self, table: str, wanted: Sequence[str], rest: str = "", *values: str) -> list[Facts]:
        """Rows of a table; columns that an older version did not have are None."""
        shown = ", ".join(one if one in self._columns[table] else f"NULL AS {one}" for one in wanted)
        found = self._connection.execute(f"SELECT {shown} FROM {table} {rest}", values).fetchall()
        return [dict(zip(wanted, row, strict=True)) for row in found]

    def _has_archived(self, session: str) -> bool:
        if not {"active", "compacted"} <= self._columns["messages"]:
            return False
        found = self._connection.execute(
            "SELECT 1 FROM messages WHERE session_id = ? AND active = 0 AND compacted = 1"
            " AND role IN ('user', 'assistant', 'tool') LIMIT 1",
            (session,),
        )
        return found.fetchone() is not None

    def _routed(self) -> Iterator[tuple[str, tuple[float, _Place]]]:
        """From sessions to the key that leads to them and the time of that; the newest key of a session comes last."""
        if not set(_ROUTE) <= self._columns["gateway_routing"]:
            return
        for facts in self._read("gateway_routing", _ROUTE, "ORDER BY updated_at"):
            entry = mapping(from_json(_text(facts["entry_json"])))
            session = name(entry.get("session_id"))
            place = _place(_text(facts["session_key"]), mapping(entry.get("origin")))
            if session is not None and place is not None:
                yield session, (moment(facts["updated_at"]) or 0.0, place)


def _older(session: str) -> SessionId:
    """The id of the segment that holds what a compression in place has archived."""
    return SessionId(f"{session}_before")


def _segments(facts: Facts, rows: Sequence[_Row], numbers: Iterator[int]) -> Iterator[Piece]:
    """A session as one segment, or as two: what a compression in place has archived, and what goes on after it."""
    session = _session(facts)
    last_archived = max((row.id for row in rows if row.archived), default=0)
    older = [row for row in rows if not row.live and row.id <= last_archived]
    if older:
        bare = replace(
            session, id=_older(session.id), title=None, title_by_person=False, system_prompt=None, usage=Usage()
        )
        before, messages = _filled(bare, older, numbers)
        before = replace(before, ended_at=before.last_active, end_reason=_COMPRESSION)
        yield Record(session=before, tip=before.id), messages
        session = replace(session, started_at=before.last_active)
    live = [row for row in rows if row.live or row.id > last_archived]
    session, messages = _filled(session, live, numbers)
    session = replace(
        session,
        ended_at=session.last_active if session.ended_at is None else session.ended_at,
        end_reason=session.end_reason or IMPORTED,
    )
    yield Record(session=session, tip=session.id, api_calls=number(facts["api_call_count"])), messages


def _filled(session: Session, rows: Sequence[_Row], numbers: Iterator[int]) -> tuple[Session, tuple[Message, ...]]:
    messages = tuple(
        message if row.live or row.archived else replace(message, undone_by=message.id)
        for row, message in zip(rows, numbered(session.id, [row.said for row in rows], numbers), strict=True)
    )
    return counted(session, messages), messages


def _session(facts: Facts) -> Session:
    started_at = moment(facts["started_at"]) or 0.0
    source = name(facts["source"]) or "unknown"
    called = title(facts["title"])
    place = _place(_text(facts["session_key"]), facts)
    actual = facts["actual_cost_usd"]
    session = _text(facts["id"])
    return Session(
        id=SessionId(session),
        conversation=ConversationId(session),
        source="api-server" if source == "api_server" else source,
        started_at=started_at,
        last_active=started_at,
        user_id=None if place is not None and place.shared else name(facts["user_id"]),
        chat_id=name(facts["chat_id"]),
        chat_kind=name(facts["chat_type"]),
        thread_id=name(facts["thread_id"]),
        title=called,
        title_by_person=called is not None,
        model=name(facts["model"]),
        provider=name(facts["billing_provider"]),
        system_prompt=name(facts["system_prompt"]),
        usage=Usage(
            input_tokens=number(facts["input_tokens"]),
            output_tokens=number(facts["output_tokens"]),
            cache_read_tokens=number(facts["cache_read_tokens"]),
            cache_write_tokens=number(facts["cache_write_tokens"]),
            reasoning_tokens=number(facts["reasoning_tokens"]),
            cost_usd=amount(facts["estimated_cost_usd"] if actual is None else actual),
        ),
        cwd=name(facts["cwd"]),
        git_branch=name(facts["git_branch"]),
        ended_at=moment(facts["ended_at"]),
        end_reason=name(facts["end_reason"]),
        archived=bool(facts["archived"]),
    )


def _row(facts: Facts, role: Role, calls: Calls) -> _Row:
    content = _content(facts["content"])
    call, tool = calls.answered(facts["tool_call_id"]) if role is Role.TOOL else (None, None)
    platform_id = name(facts["platform_message_id"])
    said = NewMessage(
        role=role,
        content=content,
        at=moment(facts["timestamp"]) or 0.0,
        kind=_kind(role, content),
        tool_calls=_tool_calls(_text(facts["tool_calls"]), calls) if role is Role.ASSISTANT else (),
        tool_call_id=call,
        tool_name=(name(facts["tool_name"]) or tool) if role is Role.TOOL else None,
        tokens=None if facts["token_count"] is None else number(facts["token_count"]),
        finish_reason=name(facts["finish_reason"]),
        platform_message_ids=() if platform_id is None else (platform_id,),
    )
    live = facts["active"] != 0
    return _Row(number(facts["id"]), said, live, archived=not live and facts["compacted"] == 1)


def _kind(role: Role, content: str) -> Kind:
    if role is Role.TOOL:
        return Kind.TOOL
    _, _, merged = content.partition(_MERGED)
    is_summary = content.lstrip().startswith(_SUMMARY) or merged.lstrip().startswith(_SUMMARY)
    return Kind.SUMMARY if is_summary else Kind.TALK


def _content(stored: object) -> str:
    text = _text(stored)
    if not text.startswith(_PARTS):
        return flat(text)
    coded = text.removeprefix(_PARTS)
    parts = from_json(coded)
    return flat(coded if parts is None else parts)


def _tool_calls(column: str, calls: Calls) -> tuple[ToolCall, ...]:
    """The calls of a row, in the form of OpenAI or flat; a list that cannot be read is none, as in that program."""
    parsed = from_json(column)
    listed = parsed if isinstance(parsed, list) else [parsed]
    return tuple(_tool_call(one, calls) for one in listed if isinstance(one, dict))


def _tool_call(one: Facts, calls: Calls) -> ToolCall:
    function = mapping(one.get("function")) or one
    arguments = function.get("arguments", function.get("input"))
    return calls.asked(one.get("call_id") or one.get("id"), function.get("name"), arguments)


def _text(stored: object) -> str:
    """What a column holds, as text: SQLite keeps any type in any of them."""
    if isinstance(stored, bytes):
        return stored.decode("utf-8", "replace")
    return "" if stored is None else str(stored)


def _place(key: str, origin: Facts) -> _Place | None:
    """Where a key leads, in our own spelling; None for one that has no such shape.

    Their keys do not escape the colons that ids may hold, so a key is believed where `origin` says the same, or where
    there is only one way to read it.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    profile, platform, kind, rest = match.groups()
    thread = name(origin.get("thread_id"))
    parts = next((one for one in _endings(kind, origin) if ":".join(one) == rest), None)
    if parts is None and ":" not in rest:
        parts = (rest,)
    in_thread = kind != "dm" and thread is not None and parts is not None and len(parts) > 1
    if parts is None or (kind == "thread" and not in_thread):
        return None
    shape = ("thread" if in_thread else kind, *parts)
    spelled = ":".join(("agent", *map(_spelled, (profile, platform, *shape))))
    facts = {
        "platform": platform,
        "chat_id": parts[0],
        "kind": "group" if kind == "thread" else kind,
        "thread_id": thread,
        "user_id": name(origin.get("user_id")),
    }
    shared = kind != "dm" and len(parts) == (2 if in_thread else 1)
    return _Place(SessionKey(spelled), shared, json.dumps(facts, ensure_ascii=False))


def _endings(kind: str, origin: Facts) -> Iterator[tuple[str, ...]]:
    """What may follow the kind in a key of `origin`."""
    chat, thread = name(origin.get("chat_id")), name(origin.get("thread_id"))
    people = [one for one in (name(origin.get("user_id_alt")), name(origin.get("user_id"))) if one is not None]
    if chat is None:
        return
    yield (chat,)
    if thread is not None:
        yield chat, thread
    if kind != "dm":
        middle = () if thread is None else (thread,)
        yield from ((chat, *middle, one) for one in people)


def _spelled(part: str) -> str:
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), part)
