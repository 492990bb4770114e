"""Chats that go on under another id: everything that is kept for one follows it in one transaction."""

import json

from hermes.sessions.dbapi import Connection
from hermes.sessions.model import Move, SessionKey
from hermes.sessions.readers import Readers
from hermes.sessions.writer import Writer


class SqliteChats:
    """The `Chats` port over SQLite."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def move(self, move: Move) -> tuple[SessionKey, ...]:
        return await self._writer.submit(lambda connection: _move(connection, move))

    async def aliases(self) -> tuple[tuple[str, str, str], ...]:
        return await self._readers.run(
            lambda connection: tuple(
                connection.execute("SELECT platform, chat_id, goes_on_as FROM aliases ORDER BY platform, chat_id")
            )
        )


def _move(connection: Connection, move: Move) -> tuple[SessionKey, ...]:
    connection.execute(
        "UPDATE aliases SET goes_on_as = ? WHERE platform = ? AND goes_on_as = ?",
        (move.to, move.platform, move.chat_id),
    )
    connection.execute(
        "INSERT INTO aliases VALUES (?, ?, ?, ?) ON CONFLICT (platform, chat_id) DO UPDATE SET"
        " goes_on_as = excluded.goes_on_as, at = excluded.at",
        (move.platform, move.chat_id, move.to, move.at),
    )
    _move_routes(connection, move)
    _move_homes(connection, move)
    _move_deliveries(connection, move)
    return _move_events(connection, move)


def _move_routes(connection: Connection, move: Move) -> None:
    """The conversation keeps its key's place: one that began under the new id in between is only left its history."""
    near = connection.execute("SELECT key, origin FROM routes WHERE instr(origin, ?) > 0", (_named(move),)).fetchall()
    for key, origin in near:
        moved = move.follow(origin)
        if moved is not None:
            connection.execute("DELETE FROM routes WHERE key = ?", (moved.key,))
            connection.execute("UPDATE routes SET key = ?, origin = ? WHERE key = ?", (moved.key, moved.origin, key))
            connection.execute("UPDATE sessions SET key = ?, chat_id = ? WHERE key = ?", (moved.key, move.to, key))


def _move_homes(connection: Connection, move: Move) -> None:
    found = connection.execute("SELECT origin FROM homes WHERE platform = ?", (move.platform,)).fetchone()
    moved = None if found is None else move.follow(found[0])
    if moved is not None:
        connection.execute("UPDATE homes SET origin = ? WHERE platform = ?", (moved.origin, move.platform))


def _move_deliveries(connection: Connection, move: Move) -> None:
    """Ids of messages mean nothing under the new id: nothing is edited or quoted there."""
    due = connection.execute(
        "SELECT id, origin FROM outbox WHERE settled_at IS NULL AND platform = ? AND chat_id = ?",
        (move.platform, move.chat_id),
    ).fetchall()
    for row, origin in due:
        moved = move.follow(origin)
        if moved is not None:
            connection.execute(
                "UPDATE outbox SET chat_id = ?, origin = ?, reply_to = NULL, live_id = NULL WHERE id = ?",
                (move.to, moved.origin, row),
            )


def _move_events(connection: Connection, move: Move) -> tuple[SessionKey, ...]:
    """Open events; gives their keys. An event keeps its chat's old id, which its redelivery would carry too."""
    waiting = connection.execute(
        "SELECT id, key, origin FROM inbox WHERE outcome IS NULL AND platform = ? AND instr(origin, ?) > 0 ORDER BY id",
        (move.platform, _named(move)),
    ).fetchall()
    keys: dict[SessionKey, None] = {}
    for row, key, origin in waiting:
        moved = move.follow(origin)
        if moved is not None:
            connection.execute("UPDATE inbox SET key = ?, origin = ? WHERE id = ?", (moved.key, moved.origin, row))
            connection.execute("UPDATE turns SET key = ? WHERE key = ? AND ended_at IS NULL", (moved.key, key))
            keys[moved.key] = None
    return tuple(keys)


def _named(move: Move) -> str:
    """The chat's id as every origin of it holds it: whoever does not hold it need not be read."""
    return json.dumps(move.chat_id, ensure_ascii=False)
