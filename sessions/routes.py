"""The routing index: which conversation a key leads to. A split moves the conversation's tip, never a route."""

from dataclasses import replace

from hermes.sessions import naming
from hermes.sessions.dbapi import Connection
from hermes.sessions.leases import fence
from hermes.sessions.lookup import tip_of
from hermes.sessions.model import Birth, ConversationId, Lease, Link, RouteRow, Session, SessionId, SessionKey


def open_route(connection: Connection, key: SessionKey, birth: Birth) -> Session:
    """The live session behind `key`, made from `birth` if there is none."""
    found = connection.execute("SELECT conversation, origin FROM routes WHERE key = ?", (key,)).fetchone()
    if found is None:
        title = None if birth.title is None else naming.free(connection, birth.title)
        return _begin(connection, key, birth, title=title)
    conversation, origin = found
    if origin != birth.origin:
        connection.execute("UPDATE routes SET origin = ?, updated_at = ? WHERE key = ?", (birth.origin, birth.at, key))
    return _reopened(connection, ConversationId(conversation))


def find(connection: Connection, key: SessionKey) -> Session | None:
    """The live session behind `key`, if there is one."""
    found = connection.execute("SELECT conversation FROM routes WHERE key = ?", (key,)).fetchone()
    return None if found is None else tip_of(connection, ConversationId(found[0]))


def bind(connection: Connection, key: SessionKey, conversation: ConversationId, origin: str, at: float) -> Session:
    """Lead `key` to an existing conversation."""
    session = _reopened(connection, conversation)
    connection.execute(
        "INSERT INTO routes VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
        " conversation = excluded.conversation, origin = excluded.origin, updated_at = excluded.updated_at",
        (key, conversation, origin, at),
    )
    return session


def start_over(connection: Connection, lease: Lease, key: SessionKey, birth: Birth, reason: str) -> Session:
    """End the live session and lead `key` to a new conversation that knows its predecessor."""
    fence(connection, lease)
    old = tip_of(connection, lease.conversation)
    if birth.title is not None:
        naming.refuse_if_taken(connection, birth.title, but_for=None)
    end(connection, old.id, reason, birth.at)
    successor = replace(birth, parent=old.id, link=Link.RESET)
    return _begin(connection, key, successor, title=birth.title, predecessor=old.conversation)


def end(connection: Connection, session: SessionId, reason: str, at: float) -> None:
    """Close a session; the first reason stays."""
    connection.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL", (at, reason, session)
    )


def index(connection: Connection) -> tuple[RouteRow, ...]:
    """The whole index, by key."""
    found = connection.execute(
        "SELECT r.key, c.tip, r.origin, r.updated_at FROM routes r JOIN conversations c ON c.id = r.conversation"
        " ORDER BY r.key"
    )
    return tuple(
        RouteRow(key=SessionKey(key), session=SessionId(tip), origin=origin, updated_at=at)
        for key, tip, origin, at in found
    )


def key_of(connection: Connection, conversation: ConversationId) -> tuple[SessionKey, str] | None:
    """The key that last led to the conversation, and its origin."""
    found = connection.execute(
        "SELECT key, origin FROM routes WHERE conversation = ? ORDER BY updated_at DESC LIMIT 1", (conversation,)
    ).fetchone()
    return None if found is None else (SessionKey(found[0]), found[1])


def _begin(
    connection: Connection,
    key: SessionKey,
    birth: Birth,
    *,
    title: str | None,
    predecessor: ConversationId | None = None,
) -> Session:
    conversation = ConversationId(birth.id)
    connection.execute(
        "INSERT INTO conversations (id, tip, predecessor) VALUES (?, ?, ?)", (conversation, birth.id, predecessor)
    )
    connection.execute(
        "INSERT INTO sessions (id, conversation, parent, link, source, key, user_id, chat_id, chat_kind, thread_id,"
        " title, title_by_person, cwd, git_branch, started_at, last_active)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            birth.id,
            conversation,
            birth.parent,
            birth.link,
            birth.source,
            key,
            birth.user_id,
            birth.chat_id,
            birth.chat_kind,
            birth.thread_id,
            title,
            title is not None,
            birth.cwd,
            birth.git_branch,
            birth.at,
            birth.at,
        ),
    )
    return bind(connection, key, conversation, birth.origin, birth.at)


def _reopened(connection: Connection, conversation: ConversationId) -> Session:
    """The tip; a conversation that had ended goes on when somebody speaks in it again."""
    session = tip_of(connection, conversation)
    if session.ended_at is None:
        return session
    connection.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", (session.id,))
    return tip_of(connection, conversation)
