"""The `Inbox` and `Outbox` ports of the twin."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from hermes.errors import TakenBack
from hermes.sessions.memory.leases import fence
from hermes.sessions.memory.tables import Tables
from hermes.sessions.model import (
    Arrival,
    Claim,
    Delivery,
    InboxRow,
    Lease,
    NewDelivery,
    Outcome,
    Sending,
    SessionKey,
    Settlement,
    TurnId,
    TurnRow,
)

_GONE = "connection gone"


def settle(tables: Tables, settlement: Settlement, at: float) -> None:
    """Give open events their outcome; settled ones stay as they are."""
    for row_id in settlement.rows:
        row = tables.inbox.get(row_id)
        if row is not None and row.outcome is None:
            tables.inbox[row_id] = replace(row, outcome=settlement.outcome, why=settlement.why, payload=None)
            tables.inbox_ends[row_id] = at


def take_up(tables: Tables, turn: TurnId, rows: Sequence[int]) -> None:
    """The turn works on these events. Raises TakenBack, with nothing changed, unless all of them are free."""
    events = [tables.inbox[row_id] for row_id in rows]
    if any(row.outcome is not None or row.turn is not None for row in events):
        raise TakenBack("Some of these messages were taken back, or another turn has them.")
    for row in events:
        tables.inbox[row.id] = replace(row, turn=turn)


def add_deliveries(tables: Tables, deliveries: Sequence[NewDelivery]) -> None:
    """Record duties. A key that is there already is left as it is, unless its words are still being written."""
    known = {delivery.key: delivery for delivery in tables.outbox.values()}
    for new in deliveries:
        before = known.get(new.key)
        if before is None:
            known[new.key] = add_delivery(tables, new, Sending.DUE)
        elif before.state is Sending.STREAMING and before.id not in tables.outbox_ends:
            tables.outbox[before.id] = replace(
                before,
                state=Sending.DUE,
                markdown=new.markdown,
                session=new.session,
                input_tokens=new.input_tokens,
                output_tokens=new.output_tokens,
            )


def add_delivery(tables: Tables, new: NewDelivery, state: Sending) -> Delivery:
    """A new record."""
    number = next(tables.ids)
    facts = {fact.name: getattr(new, fact.name) for fact in fields(NewDelivery)}
    tables.outbox[number] = Delivery(id=number, state=state, attempts=0, not_before=0.0, **facts)
    return tables.outbox[number]


def drop_streams(tables: Tables, at: float) -> None:
    """An answer that is still being written by a turn that has ended: there is nothing more to come."""
    for delivery in open_deliveries(tables):
        turn = None if delivery.turn is None else tables.turns.get(delivery.turn)
        if delivery.state is Sending.STREAMING and turn is not None and turn.ended:
            tables.outbox[delivery.id] = replace(delivery, state=Sending.DEAD, why="never finished")
            tables.outbox_ends[delivery.id] = at


class MemoryInbox:
    """The queue of events."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def claim(
        self, arrival: Arrival, *, settle: Settlement | None = None, replies: Sequence[NewDelivery] = ()
    ) -> Claim:
        known = await self.find(arrival.platform, arrival.chat_id, arrival.event_id)
        if known is not None:
            return Claim(row=known, fresh=False)
        row = InboxRow(
            id=next(self._tables.ids),
            platform=arrival.platform,
            chat_id=arrival.chat_id,
            event_id=arrival.event_id,
            key=arrival.key,
            origin=arrival.origin,
            payload=arrival.payload,
            received_at=arrival.at,
            node=arrival.node,
        )
        self._tables.inbox[row.id] = row
        if settle is not None:
            await self.settle(replace(settle, rows=(row.id,)), at=arrival.at, deliveries=replies)
        return Claim(row=self._tables.inbox[row.id], fresh=True)

    async def find(self, platform: str, chat_id: str, event_id: str) -> InboxRow | None:
        event = (platform, chat_id, event_id)
        rows = self._tables.inbox.values()
        return next((row for row in rows if (row.platform, row.chat_id, row.event_id) == event), None)

    async def pending(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        return tuple(row for row in self._open() if row.key == key and row.turn is None)[:limit]

    async def waiting(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        return tuple(row for row in self._open() if row.key == key)[:limit]

    async def waiting_keys(self, platforms: Sequence[str], *, node: str) -> tuple[SessionKey, ...]:
        mine = (row for row in self._open() if row.platform in platforms and row.node in {None, node})
        return tuple(dict.fromkeys(row.key for row in mine))

    async def unfinished(self, key: SessionKey) -> tuple[TurnRow, tuple[InboxRow, ...]] | None:
        for turn in self._tables.turns.values():
            events = tuple(row for row in self._open() if row.turn == turn.row.id)
            if turn.row.key == key and not turn.ended and events:
                return turn.row, events
        return None

    async def restart(self, lease: Lease, turn: TurnId) -> TurnRow:
        fence(self._tables, lease)
        started = self._tables.turns[turn]
        rows = len(self._tables.rows_of_turn(turn))
        fruitless = 0 if rows > started.rows_at_start else started.row.fruitless + 1
        started.row = replace(started.row, fruitless=fruitless)
        started.rows_at_start = rows
        return started.row

    async def forgive(self, turn: TurnId) -> None:
        if turn in self._tables.turns:
            self._tables.turns[turn].rows_at_start = -1  # whatever comes of it, the next start will see more rows

    async def take_back(self, platform: str, chat_id: str, event_id: str, *, why: str, at: float) -> InboxRow | None:
        row = await self.find(platform, chat_id, event_id)
        if row is None or row.outcome is not None or row.turn is not None:
            return row
        settle(self._tables, Settlement(rows=(row.id,), outcome=Outcome.ABANDONED, why=why), at)
        return self._tables.inbox[row.id]

    async def settle(self, settlement: Settlement, *, at: float, deliveries: Sequence[NewDelivery] = ()) -> None:
        settle(self._tables, settlement, at)
        add_deliveries(self._tables, deliveries)
        working = {row.turn for row in self._open()}
        for row_id in settlement.rows:
            turn = self._tables.inbox[row_id].turn if row_id in self._tables.inbox else None
            if turn is not None and turn not in working:
                self._tables.turns[turn].ended = True
        drop_streams(self._tables, at)

    async def connected(self) -> tuple[str, ...]:
        nodes = {row.node for row in self._open()} | {delivery.node for delivery in open_deliveries(self._tables)}
        return tuple(sorted(node for node in nodes if node is not None))

    async def abandon(self, node: str, *, at: float) -> int:
        events = [row for row in self._open() if row.node == node]
        settle(self._tables, Settlement(rows=tuple(row.id for row in events), outcome=Outcome.ABANDONED, why=_GONE), at)
        for row in events:
            if row.turn is not None:
                self._tables.turns[row.turn].ended = True
        for delivery in open_deliveries(self._tables):
            if delivery.node == node:
                self._tables.outbox[delivery.id] = replace(delivery, state=Sending.DEAD, why=_GONE)
                self._tables.outbox_ends[delivery.id] = at
        return len(events)

    def _open(self) -> list[InboxRow]:
        return [row for row in self._tables.inbox.values() if row.outcome is None]


def open_deliveries(tables: Tables) -> list[Delivery]:
    """Duties that are not settled, oldest first."""
    return [delivery for number, delivery in tables.outbox.items() if number not in tables.outbox_ends]


class MemoryOutbox:
    """The duties to show words."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def add(self, deliveries: Sequence[NewDelivery]) -> None:
        add_deliveries(self._tables, deliveries)

    async def stream(self, lease: Lease, duty: NewDelivery) -> Delivery:
        fence(self._tables, lease)
        known = next((one for one in self._tables.outbox.values() if one.key == duty.key), None)
        return known or add_delivery(self._tables, duty, Sending.STREAMING)

    async def live(self, lease: Lease, delivery: int, message_id: str) -> None:
        fence(self._tables, lease)
        if self._tables.outbox[delivery].state is Sending.STREAMING:
            self._change(delivery, live_id=message_id)

    async def due(self, platforms: Sequence[str], *, node: str, now: float, limit: int = 100) -> tuple[Delivery, ...]:
        held_up: set[tuple[str, str]] = set()
        found = []
        for delivery in _finished(self._tables):
            chat = (delivery.platform, delivery.chat_id)
            if delivery.state is not Sending.DUE or delivery.not_before > now:
                held_up.add(chat)
            elif chat not in held_up and _is_mine(delivery, platforms, node):
                found.append(delivery)
        return tuple(found[:limit])

    async def next_due(self, platforms: Sequence[str], *, node: str) -> float | None:
        heads: dict[tuple[str, str], Delivery] = {}
        for delivery in _finished(self._tables):
            heads.setdefault((delivery.platform, delivery.chat_id), delivery)
        due = (head for head in heads.values() if head.state is Sending.DUE and _is_mine(head, platforms, node))
        return min((head.not_before for head in due), default=None)

    async def take_off(self, delivery: int) -> None:
        self._change(delivery, state=Sending.IN_FLIGHT)

    async def shown(self, delivery: int, message_ids: Sequence[str]) -> None:
        self._change(delivery, message_ids=tuple(message_ids))

    async def settle(
        self, delivery: int, state: Sending, *, at: float, message_ids: Sequence[str] = (), why: str = ""
    ) -> None:
        ids = tuple(message_ids) or self._tables.outbox[delivery].message_ids
        self._change(delivery, state=state, message_ids=ids, why=why)
        self._tables.outbox_ends.setdefault(delivery, at)
        turn = self._tables.outbox[delivery].turn
        answer = None if turn is None else self._tables.answer_of(turn)
        if answer is not None and message_ids:
            self._tables.messages[answer.id] = replace(answer, platform_message_ids=tuple(message_ids))

    async def postpone(self, delivery: int, *, until: float, why: str) -> None:
        attempts = self._tables.outbox[delivery].attempts + 1
        self._change(delivery, state=Sending.DUE, not_before=until, why=why, attempts=attempts)

    async def of_turn(self, turn: TurnId) -> tuple[Delivery, ...]:
        return tuple(delivery for delivery in self._tables.outbox.values() if delivery.turn == turn)

    async def in_flight(self, platforms: Sequence[str], *, node: str) -> tuple[Delivery, ...]:
        mine = (d for d in open_deliveries(self._tables) if _is_mine(d, platforms, node))
        return tuple(delivery for delivery in mine if delivery.state is Sending.IN_FLIGHT)

    def _change(self, delivery: int, **changes: Any) -> None:
        """Settled duties stay as they are."""
        if delivery not in self._tables.outbox_ends:
            self._tables.outbox[delivery] = replace(self._tables.outbox[delivery], **changes)


def _finished(tables: Tables) -> list[Delivery]:
    """Open duties whose words are all there."""
    return [delivery for delivery in open_deliveries(tables) if delivery.state is not Sending.STREAMING]


def _is_mine(delivery: Delivery, platforms: Sequence[str], node: str) -> bool:
    return delivery.platform in platforms and delivery.node in {None, node}


def drop_settled(tables: Tables, gone: Callable[[InboxRow | Delivery, float], bool]) -> int:
    """Remove settled events and deliveries for which `gone` says so of row and moment; their counts stay."""
    events = [number for number, at in tables.inbox_ends.items() if gone(tables.inbox[number], at)]
    for number in events:
        tables.purged_inbox[str(tables.inbox.pop(number).outcome)] += 1
        del tables.inbox_ends[number]
    deliveries = [number for number, at in tables.outbox_ends.items() if gone(tables.outbox[number], at)]
    for number in deliveries:
        tables.purged_outbox[str(tables.outbox.pop(number).state)] += 1
        del tables.outbox_ends[number]
    return len(events) + len(deliveries)
