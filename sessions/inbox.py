"""The durable queue of inbound events. A settled row keeps its id (so that a redelivery is known), not its body."""

from collections.abc import Sequence

from hermes.errors import TakenBack
from hermes.sessions import outbox
from hermes.sessions.dbapi import Connection
from hermes.sessions.leases import fence
from hermes.sessions.model import (
    Arrival,
    Claim,
    InboxRow,
    Lease,
    NewDelivery,
    Outcome,
    SessionId,
    SessionKey,
    Settlement,
    Step,
    TurnId,
    TurnRow,
)
from hermes.sessions.readers import Readers
from hermes.sessions.rows import Row, marks
from hermes.sessions.writer import Writer

SELECT = (
    "SELECT id, platform, chat_id, event_id, key, origin, payload, received_at, node, turn, outcome, why FROM inbox"
)
GONE = "connection gone"
TURN = "SELECT id, key, session_id, started_at, fruitless FROM turns"


def inbox_row(row: Row) -> InboxRow:
    """The value behind `SELECT`."""
    *facts, turn, outcome, why = row
    row_id, platform, chat_id, event_id, key, origin, payload, received_at, node = facts
    return InboxRow(
        id=row_id,
        platform=platform,
        chat_id=chat_id,
        event_id=event_id,
        key=key,
        origin=origin,
        payload=payload,
        received_at=received_at,
        node=node,
        turn=turn,
        outcome=None if outcome is None else Outcome(outcome),
        why=why,
    )


def turn_row(row: Row) -> TurnRow:
    """The value behind `TURN`."""
    turn, key, session, started_at, fruitless = row
    return TurnRow(
        id=TurnId(turn),
        key=SessionKey(key),
        session_id=SessionId(session),
        started_at=started_at,
        fruitless=fruitless,
    )


def settle(connection: Connection, settlement: Settlement, at: float) -> None:
    """Give open rows their outcome; settled ones stay as they are."""
    connection.execute(
        f"UPDATE inbox SET outcome = ?, why = ?, settled_at = ?, payload = NULL"
        f" WHERE outcome IS NULL AND id IN ({marks(settlement.rows)})",
        (settlement.outcome, settlement.why, at, *settlement.rows),
    )


def begin(connection: Connection, step: Step) -> None:
    """The turn's own row, with the first write of a turn."""
    connection.execute(
        "INSERT INTO turns (id, key, session_id, started_at, rows_at_start) VALUES (?, ?, ?, ?, ?)",
        (step.turn, step.key, step.session, step.at, len(step.messages)),
    )


def take_up(connection: Connection, turn: TurnId, rows: Sequence[int]) -> None:
    """The turn works on these rows. Raises TakenBack unless all of them are free."""
    if not rows:
        return
    taken = connection.execute(
        f"UPDATE inbox SET turn = ? WHERE outcome IS NULL AND turn IS NULL AND id IN ({marks(rows)})", (turn, *rows)
    ).rowcount
    if taken != len(rows):
        raise TakenBack("Some of these messages were taken back, or another turn has them.")


class SqliteInbox:
    """The `Inbox` port over SQLite."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def claim(
        self, arrival: Arrival, *, settle: Settlement | None = None, replies: Sequence[NewDelivery] = ()
    ) -> Claim:
        return await self._writer.submit(lambda connection: _claim(connection, arrival, settle, replies))

    async def find(self, platform: str, chat_id: str, event_id: str) -> InboxRow | None:
        return await self._readers.run(lambda connection: _find(connection, platform, chat_id, event_id))

    async def pending(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        return await self._readers.run(lambda connection: _open(connection, "turn IS NULL", key, limit))

    async def waiting(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        return await self._readers.run(lambda connection: _open(connection, "TRUE", key, limit))

    async def waiting_keys(self, platforms: Sequence[str], *, node: str) -> tuple[SessionKey, ...]:
        def work(connection: Connection) -> tuple[SessionKey, ...]:
            found = connection.execute(
                f"SELECT key FROM inbox WHERE outcome IS NULL AND platform IN ({marks(platforms)})"
                " AND (node IS NULL OR node = ?) GROUP BY key ORDER BY min(id)",
                (*platforms, node),
            )
            return tuple(SessionKey(key) for (key,) in found)

        return await self._readers.run(work)

    async def unfinished(self, key: SessionKey) -> tuple[TurnRow, tuple[InboxRow, ...]] | None:
        def work(connection: Connection) -> tuple[TurnRow, tuple[InboxRow, ...]] | None:
            found = connection.execute(
                f"{TURN} WHERE key = ? AND ended_at IS NULL AND EXISTS (SELECT 1 FROM inbox i WHERE i.key = turns.key"
                " AND i.turn = turns.id AND i.outcome IS NULL) ORDER BY started_at LIMIT 1",
                (key,),
            ).fetchone()
            if found is None:
                return None
            turn = turn_row(found)
            rows = connection.execute(
                f"{SELECT} WHERE turn = ? AND outcome IS NULL AND key = ? ORDER BY id", (turn.id, key)
            )
            return turn, tuple(map(inbox_row, rows))

        return await self._readers.run(work)

    async def restart(self, lease: Lease, turn: TurnId) -> TurnRow:
        def op(connection: Connection) -> TurnRow:
            fence(connection, lease)
            (rows,) = connection.execute("SELECT count(*) FROM messages WHERE turn = ?", (turn,)).fetchone()
            connection.execute(
                "UPDATE turns SET fruitless = iif(? > rows_at_start, 0, fruitless + 1), rows_at_start = ? WHERE id = ?",
                (rows, rows, turn),
            )
            return turn_row(connection.execute(f"{TURN} WHERE id = ?", (turn,)).fetchone())

        return await self._writer.submit(op)

    async def forgive(self, turn: TurnId) -> None:
        await self._writer.submit(
            lambda connection: connection.execute("UPDATE turns SET rows_at_start = -1 WHERE id = ?", (turn,))
        )

    async def take_back(self, platform: str, chat_id: str, event_id: str, *, why: str, at: float) -> InboxRow | None:
        def op(connection: Connection) -> InboxRow | None:
            row = _find(connection, platform, chat_id, event_id)
            if row is None or row.outcome is not None or row.turn is not None:
                return row
            settle(connection, Settlement(rows=(row.id,), outcome=Outcome.ABANDONED, why=why), at)
            return _find(connection, platform, chat_id, event_id)

        return await self._writer.submit(op)

    async def settle(self, settlement: Settlement, *, at: float, deliveries: Sequence[NewDelivery] = ()) -> None:
        def op(connection: Connection) -> None:
            settle(connection, settlement, at)
            outbox.insert(connection, deliveries)
            _end_turns(connection, settlement, at)
            outbox.drop_streams(connection, at)

        await self._writer.submit(op)

    async def connected(self) -> tuple[str, ...]:
        statement = (
            "SELECT node FROM inbox WHERE outcome IS NULL AND node IS NOT NULL"
            " UNION SELECT node FROM outbox WHERE settled_at IS NULL AND node IS NOT NULL ORDER BY node"
        )
        return await self._readers.run(lambda connection: tuple(node for (node,) in connection.execute(statement)))

    async def abandon(self, node: str, *, at: float) -> int:
        def op(connection: Connection) -> int:
            connection.execute(
                "UPDATE turns SET ended_at = ?, ending = 'abandoned' WHERE ended_at IS NULL AND id IN"
                " (SELECT turn FROM inbox WHERE outcome IS NULL AND node = ?)",
                (at, node),
            )
            connection.execute(
                "UPDATE outbox SET state = 'dead', why = ?, settled_at = ? WHERE settled_at IS NULL AND node = ?",
                (GONE, at, node),
            )
            return connection.execute(
                "UPDATE inbox SET outcome = 'abandoned', why = ?, settled_at = ?, payload = NULL"
                " WHERE outcome IS NULL AND node = ?",
                (GONE, at, node),
            ).rowcount

        return await self._writer.submit(op)


def _open(connection: Connection, condition: str, key: SessionKey, limit: int) -> tuple[InboxRow, ...]:
    found = connection.execute(
        f"{SELECT} WHERE key = ? AND outcome IS NULL AND {condition} ORDER BY id LIMIT ?", (key, limit)
    )
    return tuple(map(inbox_row, found))


def _end_turns(connection: Connection, settlement: Settlement, at: float) -> None:
    """A turn whose last event is settled from outside has ended."""
    connection.execute(
        "UPDATE turns SET ended_at = ?, ending = ? WHERE ended_at IS NULL"
        f" AND id IN (SELECT turn FROM inbox WHERE id IN ({marks(settlement.rows)}))"
        " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.key = turns.key AND i.turn = turns.id AND i.outcome IS NULL)",
        (at, settlement.outcome, *settlement.rows),
    )


def _find(connection: Connection, platform: str, chat_id: str, event_id: str) -> InboxRow | None:
    found = connection.execute(
        f"{SELECT} WHERE platform = ? AND chat_id = ? AND event_id = ?", (platform, chat_id, event_id)
    ).fetchone()
    return None if found is None else inbox_row(found)


def _claim(
    connection: Connection, arrival: Arrival, settlement: Settlement | None, replies: Sequence[NewDelivery]
) -> Claim:
    known = _find(connection, arrival.platform, arrival.chat_id, arrival.event_id)
    if known is not None:
        return Claim(row=known, fresh=False)
    connection.execute(
        "INSERT INTO inbox (platform, chat_id, event_id, key, origin, payload, received_at, node)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            arrival.platform,
            arrival.chat_id,
            arrival.event_id,
            arrival.key,
            arrival.origin,
            arrival.payload,
            arrival.at,
            arrival.node,
        ),
    )
    row = _find(connection, arrival.platform, arrival.chat_id, arrival.event_id)
    assert row is not None
    if settlement is not None:
        settle(connection, Settlement(rows=(row.id,), outcome=settlement.outcome, why=settlement.why), arrival.at)
        outbox.insert(connection, replies)
        row = _find(connection, arrival.platform, arrival.chat_id, arrival.event_id)
        assert row is not None
    return Claim(row=row, fresh=True)
