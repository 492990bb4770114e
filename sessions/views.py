"""What the model is shown. Compression never copies or destroys a row: it leaves a view behind.

A session's history is its view's entries in order (rows of ancestors, a summary, rows of its own that a pruning
covered), followed by its own rows that the view does not name.
"""

from collections.abc import Sequence
from dataclasses import replace

from hermes.sessions import naming
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import Indexer
from hermes.sessions.leases import fence
from hermes.sessions.lookup import get, tip_of
from hermes.sessions.model import OWNER, Lease, Message, Session, SessionId, Split, ViewEntry
from hermes.sessions.rows import MESSAGE_COLUMNS, SELECT_MESSAGES, message
from hermes.sessions.turns import append, take_snapshot


def history(connection: Connection, session_id: SessionId) -> tuple[Message, ...]:
    """The view resolved, then the session's own rows; undone rows are gone."""
    seen = connection.execute(
        f"SELECT {MESSAGE_COLUMNS}, v.replacement FROM views v JOIN messages m ON m.id = v.message_id"
        " WHERE v.session_id = ? AND m.undone_by IS NULL ORDER BY v.position",
        (session_id,),
    )
    own = connection.execute(
        f"{SELECT_MESSAGES} WHERE m.session_id = ? AND m.undone_by IS NULL AND m.id NOT IN"
        " (SELECT message_id FROM views WHERE session_id = ?) ORDER BY m.id",
        (session_id, session_id),
    )
    return (*(_resolved(message(row), row[-1]) for row in seen), *map(message, own))


def _resolved(row: Message, replacement: str | None) -> Message:
    return row if replacement is None else replace(row, content=replacement)


def split(connection: Connection, indexer: Indexer, lease: Lease, parent_id: SessionId, split: Split) -> Session:
    """Close the parent, make its child with the view and the summary, and move the tip."""
    fence(connection, lease, parent_id)
    parent = get(connection, parent_id, OWNER)
    connection.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?", (split.at, parent.id)
    )
    title = None if parent.title is None else naming.free(connection, parent.title)
    connection.execute(
        "INSERT INTO sessions (id, conversation, parent, link, source, key, user_id, chat_id, chat_kind, thread_id,"
        " title, title_by_person, model, provider, model_config, preview, cwd, git_branch, started_at, last_active)"
        " SELECT ?, conversation, id, 'compression', source, key, user_id, chat_id, chat_kind, thread_id,"
        " ?, title_by_person, model, provider, model_config, preview, cwd, git_branch, ?, last_active"
        " FROM sessions WHERE id = ?",
        (split.child, title, split.at, parent.id),
    )
    if split.snapshot is not None:
        take_snapshot(connection, split.child, split.snapshot)
    summary: tuple[ViewEntry, ...] = ()
    if split.summary is not None:
        (row,) = append(connection, indexer, split.child, None, [split.summary])
        summary = (ViewEntry(message_id=row),)
    _write_view(connection, split.child, (*split.head, *summary, *split.tail))
    connection.execute("UPDATE conversations SET tip = ? WHERE id = ?", (split.child, parent.conversation))
    return tip_of(connection, parent.conversation)


def replace_view(connection: Connection, lease: Lease, session_id: SessionId, view: Sequence[ViewEntry]) -> None:
    """Persist a pruned view of the session, without a split."""
    fence(connection, lease, session_id)
    connection.execute("DELETE FROM views WHERE session_id = ?", (session_id,))
    _write_view(connection, session_id, view)


def mark_undone(connection: Connection, lease: Lease, session_id: SessionId, first: int, by: int) -> int:
    """Take the conversation's rows from `first` to before `by` out of it, over all segments; summaries stay."""
    fence(connection, lease, session_id)
    return connection.execute(
        "UPDATE messages SET undone_by = ? WHERE id >= ? AND id < ? AND undone_by IS NULL AND kind <> 'summary'"
        " AND session_id IN (SELECT id FROM sessions WHERE conversation = ?)",
        (by, first, by, lease.conversation),
    ).rowcount


def _write_view(connection: Connection, session_id: SessionId, view: Sequence[ViewEntry]) -> None:
    connection.executemany(
        "INSERT INTO views VALUES (?, ?, ?, ?)",
        [(session_id, position, entry.message_id, entry.replacement) for position, entry in enumerate(view)],
    )
