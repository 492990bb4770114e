"""Finding what was said: rank ids, pick conversations, and read only what is shown of those.

Reading the surroundings of every candidate to show three of them would cost a hundred times the ranking (measured:
300 candidates, 1.2 ms against 29-191 ms). So ranked rows stream past until enough conversations are chosen.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import structlog

from hermes.errors import SessionNotFound
from hermes.sessions import dbapi, lookup
from hermes.sessions import scope as scoping
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import TABLES
from hermes.sessions.model import (
    MACHINE_SOURCES,
    ConversationId,
    Found,
    Hit,
    Kind,
    Message,
    Order,
    Query,
    Role,
    Scope,
    SessionId,
    Window,
)
from hermes.sessions.query import Expression, parse
from hermes.sessions.rows import SELECT_MESSAGES, marks, message
from hermes.sessions.snippet import snippet

log = structlog.get_logger(__name__)
T = TypeVar("T")

RANK_SECONDS = 0.04
"""What ranking may take: enough for all but the commonest words of a million messages."""
PASS_SECONDS = 0.3
"""What passing rows one by one may take."""
CHECK_EVERY = 1_000
"""Steps of SQLite's machine between two looks at the clock: well under a millisecond."""

TALK = "m.kind = 'talk' AND m.content <> '' AND m.undone_by IS NULL"
SAID_AND_DONE = "m.kind IN ('talk', 'tool') AND m.undone_by IS NULL"
NEWEST_ID = 2**63 - 1

_MACHINES = "', '".join(sorted(MACHINE_SOURCES))
BY_MACHINE = f"s.source IN ('{_MACHINES}') OR s.link IS 'delegate'"
INDEX_ORDER = {
    Order.RELEVANCE: ("rank", "rank"),
    Order.NEWEST: ("-m.id", "rowid DESC"),
    Order.OLDEST: ("m.id", "rowid"),
}
"""For each order a number that grows along it, and the order as FTS5 can stream it."""
ROLES_OF = {Kind.TALK: {Role.USER, Role.ASSISTANT}, Kind.TOOL: {Role.TOOL}}
"""Whose rows each index holds."""


class Readers(Protocol):
    """Threads with a read connection each."""

    async def run(self, work: Callable[[Connection], T]) -> T: ...


class SqliteSearch:
    """The `Search` port."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def discover(self, query: Query, scope: Scope) -> Found:
        return await self._readers.run(lambda connection: discover(connection, query, scope))

    async def scroll(self, session: SessionId, around: int, window: int, scope: Scope) -> Window:
        return await self._readers.run(lambda connection: scroll(connection, session, around, window, scope))


def discover(
    connection: Connection, query: Query, scope: Scope, *, monotonic: Callable[[], float] = time.monotonic
) -> Found:
    """Conversations that match, the best first, people's before machines'. No text and no damaged index raises."""
    expression = parse(query.text)
    if expression is None or not query.roles:
        return Found(hits=())
    picks = _Discovery(connection, expression, query, scope, monotonic).picks()
    hits = tuple(_hit(connection, message_id, expression, query, scope) for message_id in picks.ids)
    return Found(hits=hits, partial=picks.cut, hidden=int(picks.hidden))


def scroll(connection: Connection, session: SessionId, around: int, window: int, scope: Scope) -> Window:
    """Talk and tool rows around an anchor, over all segments of the session's conversation.

    Raises SessionNotFound when the reader may not see the session, or the anchor is no row of its conversation.
    """
    found = lookup.get(connection, session, scope)
    rows = _Rows(connection, found.conversation, scope, SAID_AND_DONE)
    anchor = rows.at(around)
    if anchor is None:
        raise SessionNotFound(f"{session} around {around}")
    before, after = rows.before(around, window), rows.after(around, window)
    return Window(
        session=found, anchor=around, messages=(*before, anchor, *after), before=len(before), after=len(after)
    )


class _OutOfTime(Exception):
    """A deadline passed between two rows."""


class _Deadline:
    """A moment on the monotonic clock, `seconds` from now."""

    def __init__(self, monotonic: Callable[[], float], seconds: float) -> None:
        self._monotonic = monotonic
        self._at = monotonic() + seconds

    def passed(self) -> bool:
        return self._monotonic() >= self._at

    def check(self) -> None:
        if self.passed():
            raise _OutOfTime

    @contextmanager
    def ending(self, connection: Connection) -> Iterator[None]:
        """Statements that are at work when the deadline passes are ended, with an OperationalError."""
        connection.set_progress_handler(self.passed, CHECK_EVERY)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)


Candidate = tuple[float, int, ConversationId, bool]
"""A matching row: its place in the order, its id, its conversation, and whether a machine holds that."""


@dataclass(slots=True)
class _Picks:
    """The first matching row of each conversation, in order, until there are enough of people's."""

    limit: int
    exclude: ConversationId | None
    hidden: bool = False
    """The asking conversation matches too."""
    cut: bool = False
    """Time ran out before there were enough."""
    _people: dict[ConversationId, int] = field(default_factory=dict)
    _machines: dict[ConversationId, int] = field(default_factory=dict)

    @property
    def ids(self) -> list[int]:
        return [*self._people.values(), *self._machines.values()][: self.limit]

    def take(self, candidates: Iterable[Candidate]) -> None:
        for _, message_id, conversation, by_machine in candidates:
            if conversation == self.exclude:
                self.hidden = True
                continue
            (self._machines if by_machine else self._people).setdefault(conversation, message_id)
            if len(self._people) >= self.limit:
                return


@dataclass(frozen=True, slots=True)
class _Discovery:
    """Three ways to find rows, from the best to the surest."""

    connection: Connection
    expression: Expression
    query: Query
    scope: Scope
    monotonic: Callable[[], float]

    def picks(self) -> _Picks:
        """The rows to show, out of the first way that has any.

        Where ranking takes too long, the words are so common that the newest rows are as good a guess.
        """
        ranked = self.query.order is Order.RELEVANCE
        picks = self._by_index(self.query.order, RANK_SECONDS if ranked else PASS_SECONDS)
        if picks.cut and ranked:
            picks = self._by_index(Order.NEWEST, PASS_SECONDS)
        if picks.ids:
            return picks
        scanned = self._collect(self._scanned, PASS_SECONDS)
        scanned.hidden |= picks.hidden
        return scanned

    def _by_index(self, order: Order, seconds: float) -> _Picks:
        try:
            return self._collect(lambda _: self._indexed(order), seconds)
        except dbapi.Error as error:
            log.warning("search.index_unusable", reason=str(error))
            return _Picks(self.query.limit, self.query.exclude)

    def _collect(self, candidates: Callable[[_Deadline], Iterator[Candidate]], seconds: float) -> _Picks:
        picks = _Picks(self.query.limit, self.query.exclude)
        deadline = _Deadline(self.monotonic, seconds)
        try:
            with deadline.ending(self.connection):
                picks.take(candidates(deadline))
        except _OutOfTime:
            picks.cut = True
        except dbapi.OperationalError:
            if not deadline.passed():
                raise
            picks.cut = True
        return picks

    def _indexed(self, order: Order) -> Iterator[Candidate]:
        """Matching rows of the indexes that hold the wanted roles, in order."""
        match = self.expression.match
        tables = [TABLES[kind] for kind, roles in ROLES_OF.items() if roles & self.query.roles]
        return heapq.merge(*(self._ranked(table, match, order) for table in tables)) if match else iter(())

    def _ranked(self, table: str, match: str, order: Order) -> Iterator[Candidate]:
        """The index drives; the joins only look up."""
        place, sorting = INDEX_ORDER[order]
        wanted, facts = self._wanted()
        yield from self.connection.execute(
            f"SELECT {place}, m.id, s.conversation, {BY_MACHINE} FROM {table}"
            f" CROSS JOIN messages m ON m.id = {table}.rowid CROSS JOIN sessions s ON s.id = m.session_id"
            f" WHERE {table} MATCH ? AND {wanted} ORDER BY {table}.{sorting}",
            (match, *facts),
        )

    def _scanned(self, deadline: _Deadline) -> Iterator[Candidate]:
        """Rows that hold the text itself: the newest first, unless the oldest are wanted."""
        direction = "ASC" if self.query.order is Order.OLDEST else "DESC"
        wanted, facts = self._wanted()
        rows = self.connection.execute(
            f"SELECT m.id, s.conversation, {BY_MACHINE}, m.content FROM messages m"
            f" CROSS JOIN sessions s ON s.id = m.session_id WHERE {wanted} ORDER BY m.id {direction}",
            facts,
        )
        for message_id, conversation, by_machine, content in rows:
            deadline.check()
            if self.expression.holds(content):
                yield message_id, message_id, conversation, by_machine

    def _wanted(self) -> tuple[str, tuple[str | None, ...]]:
        """The condition over `messages m` and `sessions s` that holds for every way, and its parameters."""
        allowed, facts = scoping.condition(self.scope)
        condition = f"m.role IN ({marks(self.query.roles)}) AND {SAID_AND_DONE} AND {allowed}"
        return condition, (*self.query.roles, *facts)


def _hit(connection: Connection, message_id: int, expression: Expression, query: Query, scope: Scope) -> Hit:
    """What is shown of a conversation around its best row."""
    anchor = message(connection.execute(f"{SELECT_MESSAGES} WHERE m.id = ?", (message_id,)).fetchone())
    session = lookup.get(connection, anchor.session_id, scope)
    talk = _Rows(connection, session.conversation, scope, TALK)
    before, after = talk.before(message_id, query.window), talk.after(message_id, query.window)
    shown = (*before, anchor, *after)
    return Hit(
        session=session,
        snippet=snippet(anchor.content, expression),
        window=Window(session=session, anchor=message_id, messages=shown, before=len(before), after=len(after)),
        bookend_start=tuple(row for row in talk.after(0, query.bookends) if row.id < shown[0].id),
        bookend_end=tuple(row for row in talk.before(NEWEST_ID, query.bookends) if row.id > shown[-1].id),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a conversation that a reader may see, over all its segments, by id.

    `shown` is a condition over `messages m`. Each segment gives its nearest few by its own index, so that neither
    a long conversation nor a busy store makes a page dearer.
    """

    connection: Connection
    conversation: ConversationId
    scope: Scope
    shown: str

    def at(self, anchor: int) -> Message | None:
        """The row itself, if it is one of these."""
        found = self._read("=", "ASC", anchor, 1)
        return found[0] if found else None

    def before(self, anchor: int, limit: int) -> tuple[Message, ...]:
        """The nearest rows before `anchor`, oldest first."""
        return self._read("<", "DESC", anchor, limit)[::-1]

    def after(self, anchor: int, limit: int) -> tuple[Message, ...]:
        """The nearest rows after `anchor`, oldest first."""
        return self._read(">", "ASC", anchor, limit)

    def _read(self, side: str, direction: str, anchor: int, limit: int) -> tuple[Message, ...]:
        allowed, facts = scoping.condition(self.scope)
        found = self.connection.execute(
            f"{SELECT_MESSAGES} WHERE m.id IN ("
            " SELECT near.id FROM sessions s CROSS JOIN messages near ON near.id IN ("
            f" SELECT m.id FROM messages m WHERE m.session_id = s.id AND m.id {side} ? AND {self.shown}"
            f" ORDER BY m.id {direction} LIMIT ?)"
            f" WHERE s.conversation = ? AND {allowed})"
            f" ORDER BY m.id {direction} LIMIT ?",
            (anchor, limit, self.conversation, *facts, limit),
        )
        return tuple(map(message, found))
