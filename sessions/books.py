"""Figures that add up: received = open + outcomes, created = open + ends, also after old rows are gone."""

from collections.abc import Sequence

from hermes.sessions.dbapi import Connection
from hermes.sessions.model import Counts

CHUNK = 2_000
"""Rows removed in one transaction, well below 300 ms of write lock."""


def counts(connection: Connection) -> Counts:
    """The books as they stand."""
    kept: dict[str, int] = dict(connection.execute("SELECT name, value FROM counters"))
    (messages,) = connection.execute("SELECT count(*) FROM messages WHERE kind IN ('talk', 'tool')").fetchone()
    return Counts(
        inbound=_book(connection, "inbox", "outcome", "received", kept),
        outbound=_book(connection, "outbox", "state", "created", kept),
        sessions=dict(
            connection.execute(
                "SELECT s.source, count(*) FROM sessions s JOIN conversations c ON c.tip = s.id GROUP BY s.source"
            )
        ),
        messages=messages,
    )


def _book(connection: Connection, table: str, column: str, total: str, kept: dict[str, int]) -> dict[str, int]:
    book: dict[str, int] = dict(
        connection.execute(f"SELECT iif(settled_at IS NULL, 'open', {column}), count(*) FROM {table} GROUP BY 1")
    )
    for name, value in kept.items():
        place, _, ending = name.partition(".")
        if place == table:
            book[ending] = book.get(ending, 0) + value
    return {total: sum(book.values()), "open": book.pop("open", 0), **book}


def purge(connection: Connection, before: float) -> int:
    """Remove one chunk of rows settled before then, and keep their counts; gives how many went."""
    gone = drop_settled(connection, "settled_at < ? ORDER BY settled_at LIMIT ?", (before, CHUNK))
    connection.execute(
        "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE ended_at < ? LIMIT ?)", (before, CHUNK)
    )
    return gone


def drop_settled(connection: Connection, which: str, facts: Sequence[object]) -> int:
    """Remove settled events and deliveries that meet the condition `which`, and keep their counts."""
    gone = 0
    for table, column in (("inbox", "outcome"), ("outbox", "state")):
        removed = connection.execute(
            f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {which}) RETURNING {column}", facts
        ).fetchall()
        connection.executemany(
            "INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
            [(f"{table}.{ending}",) for (ending,) in removed],
        )
        gone += len(removed)
    return gone
