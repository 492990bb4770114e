"""Reading conversations as wholes: for filters, for bulk commands, and to see whether one has changed."""

from collections.abc import Iterator
from itertools import groupby

from hermes.sessions import scope as scoping
from hermes.sessions.dbapi import Connection
from hermes.sessions.filters import Filter, Lineage, Stamp
from hermes.sessions.lookup import visible_tip
from hermes.sessions.model import ConversationId, Scope, Session
from hermes.sessions.rows import SLIM_SESSIONS, session

FAMILY = """WITH RECURSIVE family (id) AS (
    SELECT ?1 UNION SELECT d.conversation FROM family CROSS JOIN sessions p ON p.conversation = family.id
    CROSS JOIN sessions d INDEXED BY sessions_parent ON d.parent = p.id AND d.link = 'delegate'
)"""
"""A conversation and the delegates that were sent out from it, and theirs. SQLite never turns a CROSS JOIN round: each
step is a look-up, however large the store is."""


def select(connection: Connection, wanted: Filter, scope: Scope) -> tuple[Lineage, ...]:
    """Conversations that meet `wanted`, the first begun first.

    SQL narrows by what the live segment shows; what decides is `Filter.holds`.
    """
    allowed, facts = scoping.condition(scope)
    bounds: list[tuple[str, str | float | None]] = [
        ("t.last_active >= ?", wanted.after),
        ("t.last_active < ?", wanted.before),
        ("t.source = ?", wanted.source),
    ]
    given = [(condition, bound) for condition, bound in bounds if bound is not None]
    narrow = " AND ".join(["TRUE", *(condition for condition, _ in given)])
    found = connection.execute(
        f"{SLIM_SESSIONS} JOIN sessions t ON t.id = c.tip WHERE {allowed} AND {narrow}"
        " ORDER BY s.conversation, s.started_at, s.rowid",
        (*facts, *(bound for _, bound in given)),
    )
    lineages = (one for one in _lineages(map(session, found), connection) if wanted.holds(one))
    return tuple(sorted(lineages, key=lambda one: (one.started_at, one.conversation)))


def lineage(connection: Connection, conversation: ConversationId, scope: Scope) -> Lineage:
    """One conversation as a whole. Raises SessionNotFound."""
    tip = visible_tip(connection, conversation, scope)
    return Lineage(segments(connection, conversation), tip)


def segments(connection: Connection, conversation: ConversationId) -> tuple[Session, ...]:
    """The sessions of a conversation, oldest first; none when it is not there."""
    found = connection.execute(
        f"{SLIM_SESSIONS} WHERE s.conversation = ? ORDER BY s.started_at, s.rowid", (conversation,)
    )
    return tuple(map(session, found))


def shown_besides(connection: Connection, conversation: ConversationId) -> list[ConversationId]:
    """Other conversations whose rows a view of this one shows: a branch shows its parent's beginning."""
    found = connection.execute(
        "SELECT DISTINCT own.conversation FROM sessions s CROSS JOIN views v ON v.session_id = s.id"
        " CROSS JOIN messages m ON m.id = v.message_id CROSS JOIN sessions own ON own.id = m.session_id"
        " WHERE s.conversation = ?1 AND own.conversation <> ?1 ORDER BY 1",
        (conversation,),
    )
    return [row[0] for row in found]


def totals(connection: Connection) -> tuple[tuple[str, int, int], ...]:
    """Source, conversations and messages, the largest source first."""
    found = connection.execute(
        "SELECT s.source, count(DISTINCT s.conversation), sum(s.message_count) FROM sessions s"
        f" WHERE {scoping.STANDING} GROUP BY s.source ORDER BY 2 DESC, 1"
    )
    return tuple(found.fetchall())


def family(connection: Connection, conversation: ConversationId) -> list[ConversationId]:
    """The conversation and its delegates, by id."""
    return [row[0] for row in connection.execute(f"{FAMILY} SELECT id FROM family ORDER BY id", (conversation,))]


def stamp(connection: Connection, conversation: ConversationId, scope: Scope) -> Stamp:
    """What the conversation with its delegates holds now. Raises SessionNotFound."""
    visible_tip(connection, conversation, scope)
    last, messages, undone = connection.execute(
        f"{FAMILY} SELECT coalesce(max(m.id), 0), count(*), count(m.undone_by) FROM family"
        " CROSS JOIN sessions s ON s.conversation = family.id CROSS JOIN messages m ON m.session_id = s.id",
        (conversation,),
    ).fetchone()
    facts = connection.execute(
        f"{FAMILY} SELECT s.id, s.title, s.ended_at FROM family CROSS JOIN sessions s ON s.conversation = family.id"
        " ORDER BY s.id",
        (conversation,),
    ).fetchall()
    return Stamp(
        conversations=tuple(family(connection, conversation)),
        last_message=last,
        messages=messages,
        undone=undone,
        facts=tuple(facts),
    )


def _lineages(segments: Iterator[Session], connection: Connection) -> Iterator[Lineage]:
    tips = dict(connection.execute("SELECT id, tip FROM conversations"))
    for conversation, group in groupby(segments, key=lambda one: one.conversation):
        members = tuple(group)
        tip = next((one for one in members if one.id == tips[conversation]), members[-1])
        yield Lineage(members, tip)
