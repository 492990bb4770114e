"""The duty to show words, kept until it is done."""

from collections.abc import Sequence

from hermes.sessions.dbapi import Connection
from hermes.sessions.leases import fence
from hermes.sessions.model import Delivery, Lease, NewDelivery, Sending, TurnId
from hermes.sessions.readers import Readers
from hermes.sessions.rows import Row, marks, read_strings, write_strings
from hermes.sessions.writer import Writer

SELECT = (
    "SELECT id, key, platform, chat_id, origin, markdown, created_at, reply_to, answers, session_id, turn, node,"
    " input_tokens, output_tokens, state, attempts, not_before, message_ids, why, live_id FROM outbox o"
)
MINE = "o.settled_at IS NULL AND o.platform IN ({}) AND (o.node IS NULL OR o.node = ?)"


def delivery(row: Row) -> Delivery:
    """The value behind `SELECT`."""
    row_id, key, platform, chat_id, origin, markdown, created_at, *rest = row
    reply_to, answers, session, turn, node, tokens_in, tokens_out, state, attempts, not_before, ids, why, live = rest
    return Delivery(
        id=row_id,
        key=key,
        platform=platform,
        chat_id=chat_id,
        origin=origin,
        markdown=markdown,
        at=created_at,
        reply_to=reply_to,
        answers=answers,
        session=session,
        turn=turn,
        node=node,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        state=Sending(state),
        attempts=attempts,
        not_before=not_before,
        message_ids=read_strings(ids),
        why=why,
        live_id=live,
    )


INSERT = (
    "INSERT INTO outbox (key, platform, chat_id, origin, markdown, created_at, reply_to, answers, session_id, turn,"
    " node, input_tokens, output_tokens, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO "
)


def insert(connection: Connection, deliveries: Sequence[NewDelivery]) -> None:
    """Record duties. A key that is there already is left as it is, unless its words are still being written."""
    connection.executemany(
        f"{INSERT} UPDATE SET state = 'due', markdown = excluded.markdown, session_id = excluded.session_id,"
        " input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens"
        " WHERE outbox.state = 'streaming' AND outbox.settled_at IS NULL",
        ((*_columns(duty), Sending.DUE) for duty in deliveries),
    )


def drop_streams(connection: Connection, at: float) -> None:
    """An answer that is still being written by a turn that has ended: there is nothing more to come."""
    connection.execute(
        "UPDATE outbox SET state = 'dead', why = 'never finished', settled_at = ? WHERE settled_at IS NULL"
        " AND state = 'streaming'"
        " AND EXISTS (SELECT 1 FROM turns t WHERE t.id = outbox.turn AND t.ended_at IS NOT NULL)",
        (at,),
    )


def _columns(duty: NewDelivery) -> tuple[str | float | None, ...]:
    where = (duty.key, duty.platform, duty.chat_id, duty.origin)
    words = (duty.markdown, duty.at, duty.reply_to, duty.answers)
    return (*where, *words, duty.session, duty.turn, duty.node, duty.input_tokens, duty.output_tokens)


class SqliteOutbox:
    """The `Outbox` port over SQLite."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, deliveries: Sequence[NewDelivery]) -> None:
        await self._writer.submit(lambda connection: insert(connection, deliveries))

    async def stream(self, lease: Lease, duty: NewDelivery) -> Delivery:
        def op(connection: Connection) -> Delivery:
            fence(connection, lease)
            connection.execute(f"{INSERT} NOTHING", (*_columns(duty), Sending.STREAMING))
            return delivery(connection.execute(f"{SELECT} WHERE o.key = ?", (duty.key,)).fetchone())

        return await self._writer.submit(op)

    async def live(self, lease: Lease, delivery: int, message_id: str) -> None:
        def op(connection: Connection) -> None:
            fence(connection, lease)
            connection.execute(
                "UPDATE outbox SET live_id = ? WHERE id = ? AND state = 'streaming'", (message_id, delivery)
            )

        await self._writer.submit(op)

    async def due(self, platforms: Sequence[str], *, node: str, now: float, limit: int = 100) -> tuple[Delivery, ...]:
        statement = (
            f"{SELECT} WHERE {MINE.format(marks(platforms))} AND o.state = 'due' AND o.not_before <= ? AND NOT EXISTS"
            " (SELECT 1 FROM outbox b WHERE b.settled_at IS NULL AND b.platform = o.platform AND b.chat_id = o.chat_id"
            " AND b.id < o.id AND b.state <> 'streaming' AND (b.state <> 'due' OR b.not_before > ?))"
            " ORDER BY o.id LIMIT ?"
        )
        facts = (*platforms, node, now, now, limit)
        return await self._readers.run(lambda connection: tuple(map(delivery, connection.execute(statement, facts))))

    async def next_due(self, platforms: Sequence[str], *, node: str) -> float | None:
        statement = (
            f"SELECT min(o.not_before) FROM outbox o WHERE {MINE.format(marks(platforms))} AND o.state = 'due'"
            " AND NOT EXISTS (SELECT 1 FROM outbox b WHERE b.settled_at IS NULL AND b.platform = o.platform"
            " AND b.chat_id = o.chat_id AND b.id < o.id AND b.state <> 'streaming')"
        )

        def work(connection: Connection) -> float | None:
            found: tuple[float | None] = connection.execute(statement, (*platforms, node)).fetchone()
            return found[0]

        return await self._readers.run(work)

    async def take_off(self, delivery: int) -> None:
        await self._writer.submit(
            lambda connection: connection.execute(
                "UPDATE outbox SET state = 'in_flight' WHERE id = ? AND settled_at IS NULL", (delivery,)
            )
        )

    async def shown(self, delivery: int, message_ids: Sequence[str]) -> None:
        await self._writer.submit(
            lambda connection: connection.execute(
                "UPDATE outbox SET message_ids = ? WHERE id = ?", (write_strings(message_ids) or "[]", delivery)
            )
        )

    async def settle(
        self, delivery: int, state: Sending, *, at: float, message_ids: Sequence[str] = (), why: str = ""
    ) -> None:
        ids = write_strings(message_ids)

        def op(connection: Connection) -> None:
            connection.execute(
                "UPDATE outbox SET state = ?, settled_at = ?, why = ?, message_ids = coalesce(?, message_ids)"
                " WHERE id = ? AND settled_at IS NULL",
                (state, at, why, ids, delivery),
            )
            if ids is not None:
                connection.execute(
                    "UPDATE messages SET platform_message_ids = ? WHERE id = (SELECT max(m.id) FROM messages m"
                    " JOIN outbox o ON o.turn = m.turn WHERE o.id = ? AND m.role = 'assistant' AND m.content <> '')",
                    (ids, delivery),
                )

        await self._writer.submit(op)

    async def postpone(self, delivery: int, *, until: float, why: str) -> None:
        await self._writer.submit(
            lambda connection: connection.execute(
                "UPDATE outbox SET state = 'due', not_before = ?, why = ?, attempts = attempts + 1"
                " WHERE id = ? AND settled_at IS NULL",
                (until, why, delivery),
            )
        )

    async def of_turn(self, turn: TurnId) -> tuple[Delivery, ...]:
        return await self._readers.run(
            lambda connection: tuple(
                map(delivery, connection.execute(f"{SELECT} WHERE o.turn = ? ORDER BY o.id", (turn,)))
            )
        )

    async def in_flight(self, platforms: Sequence[str], *, node: str) -> tuple[Delivery, ...]:
        statement = f"{SELECT} WHERE {MINE.format(marks(platforms))} AND o.state = 'in_flight' ORDER BY o.id"
        return await self._readers.run(
            lambda connection: tuple(map(delivery, connection.execute(statement, (*platforms, node))))
        )
