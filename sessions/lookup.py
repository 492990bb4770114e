"""Reading sessions: by name, in lists, and their rows. Every statement is a short read on an index."""

from hermes.errors import AmbiguousSession, SessionNotFound
from hermes.sessions import scope as scoping
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import (
    MACHINE_SOURCES,
    ConversationId,
    Message,
    Page,
    Scope,
    Session,
    SessionId,
    TurnId,
)
from hermes.sessions.rows import SELECT_MESSAGES, SELECT_SESSIONS, marks, message, session

TIPS = f"{SELECT_SESSIONS} AND c.tip = s.id"
NEWEST_TIPS = TIPS.replace("JOIN", "CROSS JOIN")
"""The same along the sessions' own index by time: SQLite never turns a CROSS JOIN round, so a page ends early."""
LISTED = "(s.message_count > 0 OR s.link = 'compression')"
"""A conversation without a word is not listed; a fresh child of a compression has none of its own yet."""
SPOKEN = "m.kind IN ('talk', 'tool') AND m.undone_by IS NULL"
LATEST = "latest"


def get(connection: Connection, session_id: SessionId, scope: Scope) -> Session:
    """Exactly this segment."""
    allowed, facts = scoping.condition(scope)
    found = connection.execute(f"{SELECT_SESSIONS} WHERE s.id = ? AND {allowed}", (session_id, *facts)).fetchone()
    if found is None:
        raise SessionNotFound(session_id)
    return session(found)


def tip_of(connection: Connection, conversation: ConversationId) -> Session:
    """The conversation's live segment."""
    found = connection.execute(f"{TIPS} WHERE c.id = ?", (conversation,)).fetchone()
    if found is None:
        raise SessionNotFound(conversation)
    return session(found)


def resolve(connection: Connection, reference: str, scope: Scope) -> Session:
    """The live tip behind an exact id, a title, a unique prefix of an id, or `latest`; in that order."""
    allowed, facts = scoping.condition(scope)
    for condition in ("s.id = ?", "s.title = ?"):
        found = connection.execute(
            f"SELECT s.conversation FROM sessions s WHERE {condition} AND {allowed}", (reference, *facts)
        ).fetchone()
        if found is not None:
            return tip_of(connection, found[0])
    if reference == LATEST:
        return latest(connection, None, scope)
    starts = connection.execute(
        f"SELECT min(s.id), s.conversation FROM sessions s WHERE s.id >= ? AND s.id < ? AND {allowed}"
        " GROUP BY s.conversation ORDER BY 1 LIMIT 20",
        (reference, reference + "\U0010ffff", *facts),
    ).fetchall()
    if not reference or not starts:
        raise SessionNotFound(reference)
    if len(starts) > 1:
        raise AmbiguousSession(reference, [first for first, _ in starts])
    return tip_of(connection, starts[0][1])


def latest(connection: Connection, source: str | None, scope: Scope) -> Session:
    """The tip that was last active, of one source or of all; archived ones are put away."""
    found = list_tips(connection, Page(limit=1, source=source), scope)
    if not found:
        raise SessionNotFound(LATEST if source is None else f"{LATEST} of {source}")
    return found[0]


def list_tips(connection: Connection, page: Page, scope: Scope) -> tuple[Session, ...]:
    """One row a conversation, last active first."""
    allowed, facts = scoping.condition(scope)
    conditions = [LISTED, allowed]
    values: list[str | float | None] = [*facts]
    if page.source is not None:
        conditions.append("s.source = ?")
        values.append(page.source)
    if page.workspace is not None:
        conditions.append("instr(lower(s.cwd), lower(?)) > 0")
        values.append(page.workspace)
    if page.before is not None:
        conditions.append("s.last_active < ?")
        values.append(page.before)
    if not page.include_archived:
        conditions.append("c.archived = 0")
    if not page.include_machines:
        conditions.append(f"s.source NOT IN ({marks(MACHINE_SOURCES)}) AND s.link IS NOT 'delegate'")
        values.extend(sorted(MACHINE_SOURCES))
    found = connection.execute(
        f"{NEWEST_TIPS} WHERE {' AND '.join(conditions)} ORDER BY s.last_active DESC, s.id DESC LIMIT ?",
        (*values, page.limit),
    )
    return tuple(map(session, found))


def transcript(
    connection: Connection, conversation: ConversationId, scope: Scope, after: int, limit: int
) -> tuple[Message, ...]:
    """What people said and got over all segments, by id."""
    allowed, facts = scoping.condition(scope)
    found = connection.execute(
        f"{SELECT_MESSAGES} WHERE m.session_id IN (SELECT s.id FROM sessions s WHERE s.conversation = ? AND {allowed})"
        f" AND m.id > ? AND {SPOKEN} ORDER BY m.id LIMIT ?",
        (conversation, *facts, after, limit),
    ).fetchall()
    if not found:
        visible_tip(connection, conversation, scope)  # silence is not the same as nothing to see
    return tuple(map(message, found))


def last_said(connection: Connection, conversation: ConversationId, limit: int) -> tuple[Message, ...]:
    """The last messages of a conversation over all its segments, oldest first."""
    found = connection.execute(
        f"{SELECT_MESSAGES} WHERE m.session_id IN (SELECT s.id FROM sessions s WHERE s.conversation = ?)"
        f" AND {SPOKEN} ORDER BY m.id DESC LIMIT ?",
        (conversation, limit),
    )
    return tuple(map(message, found))[::-1]


def visible_tip(connection: Connection, conversation: ConversationId, scope: Scope) -> Session:
    """The tip, for a reader who may see it; for others there is no such session."""
    tip = tip_of(connection, conversation)
    if not scope.allows(tip):
        raise SessionNotFound(conversation)
    return tip


def turn_messages(connection: Connection, turn: TurnId) -> tuple[Message, ...]:
    """All rows that a turn appended, in order."""
    return tuple(map(message, connection.execute(f"{SELECT_MESSAGES} WHERE m.turn = ? ORDER BY m.id", (turn,))))


def answer_of(connection: Connection, turn: TurnId) -> Message | None:
    """The last words of the assistant in a turn."""
    found = connection.execute(
        f"{SELECT_MESSAGES} WHERE m.turn = ? AND m.role = 'assistant' AND m.content <> '' ORDER BY m.id DESC LIMIT 1",
        (turn,),
    ).fetchone()
    return None if found is None else message(found)
