"""Taking conversations away: hidden at once, then removed in chunks that hold the write lock only for a moment.

A conversation goes as a whole, and the delegates that it sent out go with it. A branch is somebody else's: where it
still shows rows of the conversation, that stays.
"""

from hermes.errors import Changed, StillNeeded
from hermes.sessions import selecting
from hermes.sessions.dbapi import Connection
from hermes.sessions.filters import Stamp
from hermes.sessions.leases import refuse_if_busy
from hermes.sessions.lookup import visible_tip
from hermes.sessions.model import ConversationId, Scope
from hermes.sessions.rows import marks

CHUNK = 500
"""Rows removed in one transaction: their words leave the search index one by one."""


def doom(
    connection: Connection, conversation: ConversationId, scope: Scope, now: float, unchanged: Stamp | None
) -> None:
    """Hide the conversation and its delegates for good; routes and titles go at once, and leases on them hold no more.

    Raises SessionNotFound; LeaseBusy while a turn thinks about one of them; StillNeeded while a branch shows rows of
    it; Changed when it is not what it was at `unchanged`.
    """
    visible_tip(connection, conversation, scope)
    if unchanged is not None and selecting.stamp(connection, conversation, scope) != unchanged:
        raise Changed(conversation)
    gone = selecting.family(connection, conversation)
    for one in gone:
        refuse_if_busy(connection, one, now)
    _refuse_if_needed(connection, gone)
    these = marks(gone)
    connection.execute(f"DELETE FROM routes WHERE conversation IN ({these})", gone)
    connection.execute(f"UPDATE sessions SET title = NULL WHERE conversation IN ({these})", gone)
    connection.execute(
        f"UPDATE leases SET owner = NULL, generation = generation + 1 WHERE conversation IN ({these})", gone
    )
    connection.executemany("INSERT OR IGNORE INTO doomed VALUES (?)", [(one,) for one in gone])


def clear(connection: Connection) -> bool:
    """Remove one chunk of what is doomed; False when nothing is left."""
    found = connection.execute("SELECT conversation FROM doomed LIMIT 1").fetchone()
    if found is None:
        return False
    removed = connection.execute(
        "DELETE FROM messages WHERE id IN (SELECT m.id FROM sessions s CROSS JOIN messages m ON m.session_id = s.id"
        " WHERE s.conversation = ? LIMIT ?)",
        (*found, CHUNK),
    ).rowcount
    if removed < CHUNK:
        connection.execute("DELETE FROM conversations WHERE id = ?", found)
        connection.execute("DELETE FROM imports WHERE conversation = ?", found)
        connection.execute("DELETE FROM doomed WHERE conversation = ?", found)
    return True


def _refuse_if_needed(connection: Connection, gone: list[ConversationId]) -> None:
    """A branch's segments come from one of ours; only their views can show our rows."""
    these = marks(gone)
    found = connection.execute(
        "SELECT o.conversation FROM sessions child JOIN sessions p ON p.id = child.parent"
        " JOIN sessions o ON o.conversation = child.conversation JOIN views v ON v.session_id = o.id"
        " JOIN messages m ON m.id = v.message_id JOIN sessions own ON own.id = m.session_id"
        f" WHERE p.conversation IN ({these}) AND child.conversation NOT IN ({these})"
        f" AND own.conversation IN ({these}) LIMIT 1",
        (*gone, *gone, *gone),
    ).fetchone()
    if found is not None:
        raise StillNeeded(gone[0], found[0])
