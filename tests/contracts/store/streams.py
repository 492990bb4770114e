"""An answer that is shown while it is written has one record, from its first words to its last."""

import pytest

from contracts.store.facts import NODE, T0, arrival, assistant, begin, duty, take, user, write
from hermes.errors import LeaseLost
from hermes.sessions.model import Delivery, Lease, NewDelivery, Outcome, Sending, Session, Settlement, TurnId
from hermes.sessions.ports import Store

ANSWER = "t1:answer"


def answer(markdown: str = "") -> NewDelivery:
    return NewDelivery(
        key=ANSWER, platform="telegram", chat_id="7", origin="{}", markdown=markdown, at=T0, turn=TurnId("t1")
    )


class StreamsContract:
    """The `Outbox` port, as far as it is about live answers."""

    async def test_an_answer_that_is_being_written_is_not_due_and_holds_nothing_up(self, store: Store) -> None:
        _, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await store.outbox.add([duty("d1")])
        assert (record.state, record.live_id) == (Sending.STREAMING, None)
        assert [owed.key for owed in await _due(store)] == ["d1"]
        assert await store.outbox.next_due(["telegram"], node=NODE) == 0.0
        assert await store.outbox.in_flight(["telegram"], node=NODE) == ()

    async def test_the_last_write_makes_it_due_with_the_message_that_shows_it(self, store: Store) -> None:
        session, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await store.outbox.live(lease, record.id, "55")
        await write(store, lease, session, assistant("done"), turn="t1", deliveries=(answer("done"),), ends="answered")
        (owed,) = await _due(store)
        assert (owed.id, owed.markdown, owed.live_id, owed.message_ids) == (record.id, "done", "55", ())

    async def test_asking_for_the_record_again_gives_the_one_there_is(self, store: Store) -> None:
        _, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await store.outbox.live(lease, record.id, "55")
        again = await store.outbox.stream(lease, answer())
        assert (again.id, again.live_id) == (record.id, "55")
        assert [found.live_id for found in await store.outbox.of_turn(TurnId("t1"))] == ["55"]

    async def test_an_answer_that_is_due_or_shown_is_not_written_anew(self, store: Store) -> None:
        _, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await store.outbox.add([answer("final")])
        await store.outbox.live(lease, record.id, "55")
        await store.outbox.add([answer("later")])
        (owed,) = await _due(store)
        assert (owed.markdown, owed.live_id) == ("final", None)
        await store.outbox.settle(owed.id, Sending.SENT, at=T0, message_ids=("9",))
        await store.outbox.add([answer("much later")])
        assert await _due(store) == ()

    async def test_a_turn_that_ends_without_words_leaves_no_open_record(self, store: Store) -> None:
        session, lease = await _thinking(store)
        await store.outbox.stream(lease, answer())
        await write(store, lease, session, turn="t1", ends="abandoned")
        assert await _books(store) == {"dead": 1}

    async def test_a_turn_that_is_set_aside_leaves_no_open_record(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        event = (await store.inbox.claim(arrival("m:1"))).row
        await write(store, lease, session, user("hi"), turn="t1", key=event.key, runs=(event.id,))
        await store.outbox.stream(lease, answer())
        await store.inbox.settle(Settlement(rows=(event.id,), outcome=Outcome.DEAD, why="bug"), at=T0)
        assert await _books(store) == {"dead": 1}

    async def test_a_turn_that_goes_on_keeps_its_record(self, store: Store) -> None:
        session, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await write(store, lease, session, assistant("step"), turn="t1")
        assert [found.id for found in await store.outbox.of_turn(TurnId("t1"))] == [record.id]
        assert await _books(store) == {"open": 1}

    async def test_who_lost_the_conversation_shows_nothing_any_more(self, store: Store) -> None:
        session, lease = await _thinking(store)
        record = await store.outbox.stream(lease, answer())
        await store.leases.release(lease)
        await take(store, session.conversation, owner="other")
        with pytest.raises(LeaseLost):
            await store.outbox.live(lease, record.id, "55")
        with pytest.raises(LeaseLost):
            await store.outbox.stream(lease, answer())


async def _thinking(store: Store) -> tuple[Session, Lease]:
    """A turn that has begun."""
    session, lease = await begin(store, "a")
    event = (await store.inbox.claim(arrival("m:1"))).row
    await write(store, lease, session, user("hi"), turn="t1", key=event.key, runs=(event.id,))
    return session, lease


async def _due(store: Store) -> tuple[Delivery, ...]:
    return await store.outbox.due(["telegram"], node=NODE, now=T0)


async def _books(store: Store) -> dict[str, int]:
    counts = (await store.counts()).outbound
    return {name: number for name, number in counts.items() if number and name != "created"}
