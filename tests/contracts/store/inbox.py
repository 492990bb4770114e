"""Every event is recorded once and ends in exactly one outcome."""

import pytest

from contracts.store.facts import (
    HOUR,
    NODE,
    T0,
    arrival,
    assistant,
    begin,
    duty,
    key_of,
    take,
    user,
    write,
)
from hermes.errors import LeaseLost, TakenBack
from hermes.sessions.model import InboxRow, Lease, Outcome, Sending, Session, Settlement, TurnId
from hermes.sessions.ports import Store

KEY = key_of("a")
TURN = TurnId("turn-1")


class InboxContract:
    """The `Inbox` port."""

    async def test_a_claimed_event_is_kept_whole(self, store: Store) -> None:
        claim = await store.inbox.claim(arrival("m:1", node=NODE))
        assert claim.fresh
        assert claim.row == InboxRow(
            id=claim.row.id,
            platform="telegram",
            chat_id="7",
            event_id="m:1",
            key=KEY,
            origin='{"chat": "7"}',
            payload='{"event": "m:1"}',
            received_at=T0,
            node=NODE,
        )
        assert await store.inbox.find("telegram", "7", "m:1") == claim.row
        assert await store.inbox.pending(KEY) == (claim.row,)

    async def test_a_repeat_shows_the_row_that_was_there_and_changes_nothing(self, store: Store) -> None:
        first = await store.inbox.claim(arrival("m:1"))
        rejected = Settlement(rows=(), outcome=Outcome.REJECTED)
        again = await store.inbox.claim(arrival("m:1", name="b", at=T0 + 9), settle=rejected, replies=(duty("d1"),))
        assert (again.row, again.fresh) == (first.row, False)
        assert await store.inbox.pending(KEY) == (first.row,)
        assert await store.outbox.due(["telegram"], node=NODE, now=T0 + 9) == ()

    async def test_the_same_id_in_another_chat_is_another_event(self, store: Store) -> None:
        await store.inbox.claim(arrival("m:1", chat="7"))
        assert (await store.inbox.claim(arrival("m:1", chat="8"))).fresh
        assert await store.inbox.find("telegram", "9", "m:1") is None
        assert await store.inbox.find("slack", "7", "m:1") is None

    async def test_an_event_can_be_settled_as_it_comes(self, store: Store) -> None:
        settlement = Settlement(rows=(), outcome=Outcome.REJECTED, why="not paired")
        claim = await store.inbox.claim(arrival("m:1"), settle=settlement, replies=(duty("d1"),))
        assert (claim.row.outcome, claim.row.why, claim.row.payload) == (Outcome.REJECTED, "not paired", None)
        assert await store.inbox.pending(KEY) == ()
        assert [owed.key for owed in await store.outbox.due(["telegram"], node=NODE, now=T0)] == ["d1"]

    async def test_pending_events_come_in_order_of_arrival(self, store: Store) -> None:
        for event in ("m:3", "m:1", "m:2"):
            await store.inbox.claim(arrival(event))
        await store.inbox.claim(arrival("m:4", name="b"))
        assert [row.event_id for row in await store.inbox.pending(KEY)] == ["m:3", "m:1", "m:2"]
        assert [row.event_id for row in await store.inbox.pending(KEY, limit=2)] == ["m:3", "m:1"]

    async def test_settling_gives_the_outcome_and_drops_the_payload(self, store: Store) -> None:
        row = (await store.inbox.claim(arrival("m:1"))).row
        await store.inbox.settle(_ended(row, Outcome.COMMAND, "/new"), at=T0 + 1, deliveries=(duty("d1"),))
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert (found.outcome, found.why, found.payload) == (Outcome.COMMAND, "/new", None)
        assert [owed.key for owed in await store.outbox.due(["telegram"], node=NODE, now=T0)] == ["d1"]

    async def test_a_settled_event_stays_as_it_is(self, store: Store) -> None:
        row = (await store.inbox.claim(arrival("m:1"))).row
        await store.inbox.settle(_ended(row, Outcome.ANSWERED), at=T0)
        await store.inbox.settle(_ended(row, Outcome.DEAD, "late"), at=T0 + 1)
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert (found.outcome, found.why) == (Outcome.ANSWERED, "")

    async def test_settling_nothing_is_fine(self, store: Store) -> None:
        row = (await store.inbox.claim(arrival("m:1"))).row
        await store.inbox.settle(Settlement(rows=(), outcome=Outcome.DEAD), at=T0)
        assert await store.inbox.pending(KEY) == (row,)

    async def test_keys_wait_while_they_have_open_events(self, store: Store) -> None:
        open_row = (await store.inbox.claim(arrival("m:1", name="a"))).row
        settled = (await store.inbox.claim(arrival("m:2", name="b"))).row
        await store.inbox.claim(arrival("m:3", name="a"))
        await store.inbox.settle(_ended(settled, Outcome.ANSWERED), at=T0)
        assert await store.inbox.waiting_keys(["telegram"], node=NODE) == (KEY,)
        assert await store.inbox.waiting_keys(["slack"], node=NODE) == ()
        assert await store.inbox.waiting_keys([], node=NODE) == ()
        assert open_row.outcome is None

    async def test_events_of_another_nodes_connection_do_not_wait_here(self, store: Store) -> None:
        await store.inbox.claim(arrival("m:1", name="a", node=NODE))
        await store.inbox.claim(arrival("m:2", name="b", node="node-2"))
        await store.inbox.claim(arrival("m:3", name="c"))
        assert set(await store.inbox.waiting_keys(["telegram"], node=NODE)) == {KEY, key_of("c")}

    async def test_a_key_waits_for_the_end_of_a_turn_that_was_cut_off(self, store: Store) -> None:
        await _started(store)
        assert await store.inbox.waiting_keys(["telegram"], node=NODE) == (KEY,)

    async def test_events_wait_until_their_outcome_whoever_took_them_up(self, store: Store) -> None:
        _, _, first = await _started(store)
        second, third = [(await store.inbox.claim(arrival(f"m:{n}"))).row for n in (2, 3)]
        await store.inbox.settle(Settlement(rows=(third.id,), outcome=Outcome.DEAD), at=T0)
        assert [row.id for row in await store.inbox.waiting(KEY)] == [first.id, second.id]
        assert [row.turn for row in await store.inbox.waiting(KEY, limit=1)] == [TURN]

    async def test_events_that_a_turn_took_up_are_pending_no_more(self, store: Store) -> None:
        session, lease, row = await _started(store)
        later = (await store.inbox.claim(arrival("m:2"))).row
        assert await store.inbox.pending(KEY) == (later,)
        await write(store, lease, session, user("and this"), runs=(later.id,))
        assert await store.inbox.pending(KEY) == ()
        found = await store.inbox.unfinished(KEY)
        assert found is not None
        assert [taken.id for taken in found[1]] == [row.id, later.id]

    async def test_a_step_that_takes_up_what_another_turn_has_is_not_written(self, store: Store) -> None:
        session, lease, row = await _started(store)
        before = await store.history(session.id)
        with pytest.raises(TakenBack):
            await write(store, lease, session, user("again"), turn="turn-2", key=KEY, runs=(row.id,))
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert found.turn == TURN
        assert await store.history(session.id) == before
        unfinished = await store.inbox.unfinished(KEY)
        assert unfinished is not None
        assert unfinished[0].id == TURN

    async def test_a_step_that_takes_up_what_was_settled_leaves_no_turn_behind(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        row = (await store.inbox.claim(arrival("m:1"))).row
        await store.inbox.settle(_ended(row, Outcome.ABANDONED), at=T0)
        with pytest.raises(TakenBack):
            await write(store, lease, session, user("hi"), key=KEY, runs=(row.id,))
        assert await store.inbox.unfinished(KEY) is None

    async def test_an_event_is_taken_back_unless_a_turn_has_it(self, store: Store) -> None:
        _, _, begun = await _started(store)
        free = (await store.inbox.claim(arrival("m:2"))).row
        back = [
            await store.inbox.take_back("telegram", "7", event, why="hung up", at=T0) for event in ("m:1", "m:2", "m:3")
        ]
        assert [row and row.outcome for row in back] == [None, Outcome.ABANDONED, None]
        assert (back[0] and back[0].id, back[1] and back[1].why, back[2]) == (begun.id, "hung up", None)
        assert await store.inbox.take_back("telegram", "7", "m:2", why="again", at=T0) == back[1]
        assert (await store.inbox.find("telegram", "7", "m:2")) == back[1]
        assert free.outcome is None

    async def test_an_unfinished_turn_is_found_with_its_open_events(self, store: Store) -> None:
        session, lease, row = await _started(store)
        merged = (await store.inbox.claim(arrival("m:2"))).row
        await write(store, lease, session, runs=(merged.id,), settles=(_ended(merged, Outcome.MERGED),))
        found = await store.inbox.unfinished(KEY)
        assert found is not None
        turn, rows = found
        assert (turn.id, turn.key, turn.session_id, turn.started_at, turn.fruitless) == (TURN, KEY, session.id, T0, 0)
        assert [(taken.id, taken.turn, taken.payload) for taken in rows] == [(row.id, TURN, '{"event": "m:1"}')]
        assert await store.inbox.unfinished(key_of("b")) is None

    async def test_an_ended_turn_is_finished(self, store: Store) -> None:
        session, lease, row = await _started(store)
        await write(store, lease, session, assistant("bye"), settles=(_ended(row, Outcome.ANSWERED),), ends="done")
        assert await store.inbox.unfinished(KEY) is None
        assert await store.inbox.waiting_keys(["telegram"], node=NODE) == ()

    async def test_a_turn_whose_events_are_all_settled_has_ended(self, store: Store) -> None:
        session, lease, first = await _started(store)
        second = (await store.inbox.claim(arrival("m:2"))).row
        await write(store, lease, session, runs=(second.id,))
        await store.inbox.settle(_ended(first, Outcome.DEAD), at=T0)
        assert await store.inbox.unfinished(KEY) is not None
        await store.inbox.settle(_ended(second, Outcome.DEAD), at=T0)
        assert await store.inbox.unfinished(KEY) is None

    async def test_starts_that_add_no_row_are_counted(self, store: Store) -> None:
        _, lease, _ = await _started(store)
        counts = [(await store.inbox.restart(lease, TURN)).fruitless for _ in range(3)]
        assert counts == [1, 2, 3]
        found = await store.inbox.unfinished(KEY)
        assert found is not None
        assert found[0].fruitless == 3

    async def test_a_start_that_added_a_row_makes_good_for_all_before(self, store: Store) -> None:
        session, lease, _ = await _started(store)
        await store.inbox.restart(lease, TURN)
        await store.inbox.restart(lease, TURN)
        await write(store, lease, session, assistant("step"))
        assert (await store.inbox.restart(lease, TURN)).fruitless == 0
        assert (await store.inbox.restart(lease, TURN)).fruitless == 1

    async def test_rows_of_other_turns_make_nothing_good(self, store: Store) -> None:
        session, lease, _ = await _started(store)
        await write(store, lease, session, assistant("elsewhere"), turn="turn-2")
        assert (await store.inbox.restart(lease, TURN)).fruitless == 1

    async def test_a_start_that_was_asked_to_stop_never_counts(self, store: Store) -> None:
        _, lease, _ = await _started(store)
        for _ in range(3):
            await store.inbox.forgive(TURN)
            assert (await store.inbox.restart(lease, TURN)).fruitless == 0
        assert (await store.inbox.restart(lease, TURN)).fruitless == 1

    async def test_a_lost_lease_starts_nothing_again(self, store: Store) -> None:
        session, lease, _ = await _started(store)
        await take(store, session.conversation, owner="another", now=T0 + HOUR)
        with pytest.raises(LeaseLost):
            await store.inbox.restart(lease, TURN)
        found = await store.inbox.unfinished(KEY)
        assert found is not None
        assert found[0].fruitless == 0

    async def test_what_gone_connections_left_open_is_abandoned(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        row = (await store.inbox.claim(arrival("m:1", node="host:old"))).row
        await write(store, lease, session, user("hi"), key=KEY, runs=(row.id,))
        await store.outbox.add([duty("d1", node="host:old")])
        assert await _abandon(store) > 0
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert (found.outcome, found.payload) == (Outcome.ABANDONED, None)
        assert found.why
        assert await store.inbox.unfinished(KEY) is None
        assert await store.outbox.due(["telegram"], node="host:old", now=T0 + HOUR) == ()
        assert (await store.counts()).outbound.get(Sending.DEAD) == 1

    @pytest.mark.parametrize("node", [None, "host:new", "host:ol", "host:old2", "HOST:OLD"])
    async def test_what_lives_or_belongs_to_others_is_left_alone(self, store: Store, node: str | None) -> None:
        row = (await store.inbox.claim(arrival("m:1", node=node))).row
        await store.outbox.add([duty("d1", node=node)])
        assert await _abandon(store) == 0
        assert await store.inbox.find("telegram", "7", "m:1") == row
        assert len(await store.outbox.due(["telegram"], node=node or NODE, now=T0)) == 1

    async def test_nodes_with_something_open_are_known(self, store: Store) -> None:
        settled = (await store.inbox.claim(arrival("m:1", node="host:done"))).row
        await store.inbox.settle(_ended(settled, Outcome.ANSWERED), at=T0)
        await store.inbox.claim(arrival("m:2", node="host:b"))
        await store.inbox.claim(arrival("m:3"))
        await store.outbox.add([duty("d1", node="host:a"), duty("d2", node="host:b"), duty("d3")])
        assert await store.inbox.connected() == ("host:a", "host:b")

    async def test_settled_events_of_gone_connections_keep_their_outcome(self, store: Store) -> None:
        row = (await store.inbox.claim(arrival("m:1", node="host:old"))).row
        await store.inbox.settle(_ended(row, Outcome.ANSWERED), at=T0)
        assert await _abandon(store) == 0
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert found.outcome is Outcome.ANSWERED


async def _started(store: Store) -> tuple[Session, Lease, InboxRow]:
    """A turn that took up one event and then fell silent."""
    session, lease = await begin(store, "a")
    row = (await store.inbox.claim(arrival("m:1"))).row
    await write(store, lease, session, user("hi"), key=KEY, runs=(row.id,))
    return session, lease, row


async def _abandon(store: Store) -> int:
    return await store.inbox.abandon("host:old", at=T0 + HOUR)


def _ended(row: InboxRow, outcome: Outcome, why: str = "") -> Settlement:
    return Settlement(rows=(row.id,), outcome=outcome, why=why)
