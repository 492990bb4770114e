"""What keeps a store in order over years: idle conversations closed, space given back, a person forgotten."""

import json
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from hermes.errors import LeaseBusy, SessionNotFound, StillNeeded
from hermes.sessions import optimise, removal
from hermes.sessions.books import drop_settled
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import OWNER, ConversationId, Forgotten
from hermes.sessions.writer import Lane, Writer

T = TypeVar("T")

CHUNK = 500
"""Rows changed in one transaction."""
PAGES = 2_000
"""Pages given back in one step: 35 ms of write lock on a store of 250 MB."""
MERGE_PAGES = 250
"""Pages of the search index that one step writes: 19 ms there."""
AT_WORK = 600.0
"""Seconds after which a job that was begun and never done is begun again."""
ERASED = "[erased]"
"""What stands where somebody's words stood in a conversation that others share."""

IDLE = """SELECT c.tip FROM conversations c JOIN sessions s ON s.id = c.tip
    WHERE s.ended_at IS NULL AND s.last_active < ? AND NOT EXISTS (
        SELECT 1 FROM leases l WHERE l.conversation = c.id AND l.owner IS NOT NULL AND l.expires_at > ?
    ) LIMIT ?"""


class Readers(Protocol):
    """Threads with a read connection each."""

    async def run(self, work: Callable[[Connection], T]) -> T: ...


class SqliteUpkeep:
    """The `Upkeep` port: everything in small transactions of the writer's second lane."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def claim(self, job: str, *, now: float, every: float) -> bool:
        return await self._quietly(lambda connection: _claim(connection, job, now, every))

    async def done(self, job: str, *, now: float) -> None:
        await self._quietly(lambda connection: _done(connection, job, now))

    async def close_idle(self, *, before: float, now: float) -> int:
        closed = 0
        while some := await self._quietly(lambda connection: _close_idle(connection, before, now)):
            closed += some
        return closed

    async def clear(self) -> None:
        while await self._quietly(removal.clear):
            pass

    async def shrink(self) -> int:
        freed = 0
        while some := await self._quietly(lambda connection: optimise.shrink(connection, PAGES)):
            freed += some
        return freed

    async def forget(self, platform: str, source: str, user_id: str, *, now: float) -> Forgotten:
        chats = await self._readers.run(lambda connection: _chats(connection, source, user_id))
        theirs = await self._readers.run(lambda connection: _theirs(connection, source, user_id))
        kept = [one for one in theirs if not await self._delete(one, now)]
        shared = 0
        while some := await self._quietly(lambda connection: _erase(connection, source, user_id)):
            shared += some
        await self._quietly(lambda connection: _drop(connection, platform, user_id, chats))
        await self._merge()
        self._writer.empty_log()
        return Forgotten(conversations=len(theirs) - len(kept), shared=shared, kept=tuple(kept))

    async def _delete(self, conversation: ConversationId, now: float) -> bool:
        """Whether it is gone; not while a turn thinks about it, or somebody else's branch shows rows of it."""
        try:
            await self._quietly(lambda connection: removal.doom(connection, conversation, OWNER, now, None))
        except SessionNotFound:
            return True  # a delegate of one that went before it
        except (LeaseBusy, StillNeeded):
            return False
        await self.clear()
        return True

    async def _merge(self) -> None:
        """The index keeps words of deleted rows until its parts are merged."""
        pages = -MERGE_PAGES
        while await self._quietly(partial(optimise.merge, pages=pages)):
            pages = MERGE_PAGES

    async def _quietly(self, op: Callable[[Connection], T]) -> T:
        return await self._writer.submit(op, lane=Lane.MAINTENANCE)


def _claim(connection: Connection, job: str, now: float, every: float) -> bool:
    return (
        connection.execute(
            "INSERT INTO jobs (name, ran_at) VALUES (?1, ?3) ON CONFLICT (name) DO UPDATE SET ran_at = ?3"
            " WHERE ran_at IS NULL OR ran_at <= ?2 RETURNING name",
            (job, now - every, now - every + min(every, AT_WORK)),
        ).fetchone()
        is not None
    )


def _done(connection: Connection, job: str, now: float) -> None:
    connection.execute("UPDATE jobs SET ran_at = ? WHERE name = ?", (now, job))


def _close_idle(connection: Connection, before: float, now: float) -> int:
    return connection.execute(
        f"UPDATE sessions SET ended_at = ?, end_reason = 'idle' WHERE id IN ({IDLE})", (now, before, now, CHUNK)
    ).rowcount


def _theirs(connection: Connection, source: str, user_id: str) -> list[ConversationId]:
    """Their conversations, the youngest first: a branch goes before what it shows of its parent."""
    found = connection.execute(
        "SELECT conversation FROM sessions WHERE source = ? AND user_id = ? GROUP BY conversation"
        " ORDER BY min(started_at) DESC",
        (source, user_id),
    )
    return [row[0] for row in found]


def _chats(connection: Connection, source: str, user_id: str) -> list[str]:
    """The chats in which nobody else is."""
    found = connection.execute(
        "SELECT DISTINCT chat_id FROM sessions WHERE source = ? AND user_id = ? AND chat_kind = 'dm'"
        " AND chat_id IS NOT NULL",
        (source, user_id),
    )
    return [row[0] for row in found]


def _erase(connection: Connection, source: str, user_id: str) -> int:
    """Their words in conversations that a room shares, with what they got for an answer: answers quote.

    A name that was made of them goes too; gives how many of their rows it were.
    """
    rows = connection.execute(
        "UPDATE messages SET content = ?, search_text = NULL, sender_id = NULL, sender_name = NULL WHERE id IN ("
        " SELECT m.id FROM sessions s CROSS JOIN messages m ON m.session_id = s.id"
        " WHERE s.source = ? AND s.user_id IS NULL AND m.sender_id = ? LIMIT ?) RETURNING session_id, turn",
        (ERASED, source, user_id, CHUNK),
    ).fetchall()
    for turn in sorted({row[1] for row in rows if row[1] is not None}):
        connection.execute(
            "UPDATE messages SET content = ?, tool_calls = NULL, search_text = NULL"
            " WHERE turn = ? AND role = 'assistant' AND content <> ?",
            (ERASED, turn, ERASED),
        )
        connection.execute("DELETE FROM messages WHERE turn = ? AND role = 'tool'", (turn,))
    touched = sorted({row[0] for row in rows})
    connection.executemany(
        "UPDATE sessions SET preview = ?, title = iif(title_by_person, title, NULL) WHERE id = ?",
        [(ERASED, session) for session in touched],
    )
    return len(rows)


def _drop(connection: Connection, platform: str, user_id: str, chats: list[str]) -> None:
    """What is settled in their own chats or was said by them elsewhere, and what they may do."""
    for chat in chats:
        drop_settled(connection, "settled_at IS NOT NULL AND platform = ? AND chat_id = ?", (platform, chat))
    said = "settled_at IS NOT NULL AND platform = ? AND instr(origin, ?) > 0 AND json_extract(origin, '$.user_id') = ?"
    drop_settled(connection, said, (platform, json.dumps(user_id)[1:-1], user_id))
    for table in ("roles", "pairing_requests"):
        connection.execute(f"DELETE FROM {table} WHERE platform = ? AND user_id = ?", (platform, user_id))
