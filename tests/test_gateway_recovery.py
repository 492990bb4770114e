"""What a process leaves behind, another one finishes: once, in order, and without doing anything twice."""

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import VirtualClock
from hermes.adapters.base import Hangup, Lifetime, Standing
from hermes.errors import RateLimited, Unreachable
from hermes.gateway.app import FLUSH_SECONDS
from hermes.gateway.turn import LOOK_AHEAD
from hermes.sessions import backup, dbapi
from hermes.sessions.model import Kind, Outcome
from worlds.hand import HandModel
from worlds.house import House, both_stores, house
from worlds.scripts import echo


async def photograph(folder: Path, name: str) -> Path:
    """A home with the store as it is on disk at this moment: what a process that is killed now leaves behind."""
    target = folder / name
    target.mkdir()

    def copy() -> None:
        with closing(dbapi.connect(folder / "state.db")) as source:
            backup.copy(source, target / "state.db")

    await asyncio.to_thread(copy)
    return target


async def dies_thinking(folder: Path, *texts: str) -> Path:
    """Messages in one chat, the first being thought about when the process dies."""
    model = HandModel()
    async with house(folder, model=model) as h:
        await h.say(texts[0])
        question = await model.question()
        question.say("half an ans")
        await question.taken()
        for text in texts[1:]:
            await h.say(text)
        h.crashed = True
        return await photograph(folder, "left")


class TestQuestions:
    async def test_those_in_every_state_are_answered_exactly_once(self, tmp_path: Path) -> None:
        left = await dies_thinking(tmp_path, "running", "received")
        async with house(left, model=echo()) as h:
            (answer,) = await h.room.shows(1)  # the second message joins the turn that is taken up
            await h.quiet()
            assert h.room.texts() == [answer]
            assert "received" in answer
            books = await h.balanced()
            assert (books.inbound["answered"], books.inbound["merged"]) == (1, 1)
            rows = [line for line in await h.transcript() if line.startswith("user: ")]
            assert rows == ["user: running", "user: received"]

    @both_stores
    async def test_a_dropped_gateway_is_followed_by_one_that_goes_on(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as first:
            for chat in ("c1", "c2"):
                await first.say(f"hello from {chat}", chat=chat)
                await model.question()
            first.crashed = True
            store = first.store if kind == "memory" else None
        async with house(tmp_path, kind=kind, store=store, model=echo()) as h:
            await h.room.shows(2)
            await h.quiet()
            assert (len(h.room.texts("c1")), len(h.room.texts("c2"))) == (1, 1)
            assert (await h.balanced()).inbound["answered"] == 2

    async def test_one_that_was_only_received_is_taken_up(self, tmp_path: Path) -> None:
        async with house(tmp_path, gateway={"max_concurrent_turns": 1}) as h:
            await h.say("busy", chat="c1")
            await h.say("waits for a place", chat="c2")
            h.crashed = True
            left = await photograph(tmp_path, "left")
        async with house(left, model=echo()) as h:
            await h.room.shows(2)
            await h.quiet()
            assert (await h.balanced()).inbound["answered"] == 2

    async def test_a_repeat_after_the_restart_is_known(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=echo()) as h:
            packet = await h.say("hello")
            await h.quiet()
            h.crashed = True
        async with house(tmp_path, model=echo()) as h:
            await h.say("hello", id=packet.id)
            await h.quiet()
            assert h.room.texts() == []
            assert (await h.balanced()).inbound["received"] == 1

    async def test_a_repeat_wakes_what_was_recorded_and_left(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=echo()) as h:
            event = h.event("left lying")
            key = h.app.intake._doorman.key(event.origin)
            await h.store.inbox.claim(
                h.app.intake._arrival(event, key, chat_id=event.origin.chat_id)
            )  # and whoever did it was cut off
            assert (await h.hand(event)).standing is Standing.PENDING
            assert "left lying" in (await h.room.shows(1))[0]

    async def test_more_than_is_looked_at_together_needs_no_second_wake_up(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=echo(), gateway={"busy_input_mode": "queue"}) as h:
            event = h.event("0")
            key = h.app.intake._doorman.key(event.origin)
            for number in range(LOOK_AHEAD + 1):
                one = replace(event, event_id=f"m:many-{number}", text=f"word {number}")
                await h.store.inbox.claim(h.app.intake._arrival(one, key, chat_id=one.origin.chat_id))
            h.app.mailboxes.wake(key)
            await h.room.shows(2)
            await h.quiet()
            assert h.room.texts()[1].endswith(f"word {LOOK_AHEAD}")

    async def test_a_round_of_housekeeping_wakes_it_too(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=echo()) as h:
            event = h.event("left lying")
            key = h.app.intake._doorman.key(event.origin)
            await h.store.inbox.claim(h.app.intake._arrival(event, key, chat_id=event.origin.chat_id))
            await h.app.wake()
            assert "left lying" in (await h.room.shows(1))[0]


class TestTools:
    async def test_a_call_without_a_result_is_not_made_again(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("remember tea")
            question = await model.question()
            question.call("memory", action="add", content="tea")
            await model.question()
            left = await photograph(tmp_path, "left")
            forget_result(left)
            h.crashed = True
        model = HandModel()
        async with house(left, model=model) as h:
            question = await model.question()
            assert question.results == ["interrupted, outcome unknown"]
            assert not (left / "memory").exists()
            question.answer("I am not sure that I did")
            assert await h.room.shows(1) == ["I am not sure that I did"]
            await h.quiet()
            assert (await h.balanced()).inbound["answered"] == 1


def forget_result(home: Path) -> None:
    """As if the process had died before the tool's result was written."""
    with closing(dbapi.connect(home / "state.db")) as connection:
        gone = connection.execute("DELETE FROM messages WHERE role = 'tool'").rowcount
        connection.commit()
    assert gone == 1


class TestParking:
    async def test_a_turn_that_gets_nowhere_twice_is_put_aside_and_the_chat_goes_on(self, tmp_path: Path) -> None:
        left = await dies_thinking(tmp_path, "poison")
        async with house(left, model=(model := HandModel())) as h:
            await model.question()
            h.crashed = True
            left = await photograph(left, "again")
        async with house(left, model=(model := HandModel())) as h:
            assert "started twice and made no progress" in (await h.room.shows(1))[0]
            await h.quiet()
            assert model.is_unasked
            assert (await h.balanced()).inbound["dead"] == 1
            await h.say("another")
            (await model.question()).answer("gladly")
            assert (await h.room.shows(2))[1] == "gladly"

    async def test_one_that_got_a_step_further_is_not(self, tmp_path: Path) -> None:
        left = await dies_thinking(tmp_path, "long work")
        for _ in range(3):
            async with house(left, model=(model := HandModel())) as h:
                (await model.question()).call("session_search", query="x")
                await model.question()
                h.crashed = True
                left = await photograph(left, "again")
        async with house(left, model=(model := HandModel())) as h:
            (await model.question()).answer("done")
            assert await h.room.shows(1) == ["done"]

    @both_stores
    async def test_a_stop_that_was_asked_for_never_counts(self, tmp_path: Path, kind: str) -> None:
        store = None
        for _ in range(4):
            async with house(tmp_path, kind=kind, store=store, model=(model := HandModel())) as h:
                if store is None and kind == "memory":
                    store = h.store
                if not await asked_before(h):
                    await h.say("patience")
                await model.question()
        async with house(tmp_path, kind=kind, store=store, model=(model := HandModel())) as h:
            (await model.question()).answer("thank you for waiting")
            assert await h.room.shows(1) == ["thank you for waiting"]
            await h.quiet()
            assert (await h.balanced()).inbound["answered"] == 1


async def asked_before(h: House) -> bool:
    return (await h.store.counts()).inbound["received"] > 0


class TestStopping:
    @both_stores
    async def test_a_turn_that_ends_within_the_drain_is_shown_before_the_end(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, drain=10) as h:
            packet = await h.say("quick one")
            question = await model.question()
            async with asyncio.TaskGroup() as group:
                group.create_task(h.app.stop(10))
                await asyncio.sleep(0)
                question.answer("just in time")
            assert h.room.texts() == ["just in time"]
            assert (await h.row(packet)).outcome is Outcome.ANSWERED

    async def test_what_arrives_while_stopping_waits_for_the_next_start(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=HandModel()) as h:
            await h.app.stop(0)
            await h.hand(h.event("late"))
        async with house(tmp_path, model=echo()) as h:
            assert "late" in (await h.room.shows(1))[0]

    async def test_a_turn_that_is_put_aside_says_nothing_and_goes_on_later(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=(model := HandModel())) as h:
            await h.say("long one")
            question = await model.question()
            question.say("half")
            await question.taken()
            await h.app.stop(0)
            assert h.room.texts() == []
        async with house(tmp_path, model=(model := HandModel())) as h:
            question = await model.question()
            assert question.heard == ["long one"]
            question.answer("whole")
            assert await h.room.shows(1) == ["whole"]

    async def test_a_conversation_that_is_busy_elsewhere_does_not_hold_up_the_stop(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=(model := HandModel())) as h:
            await h.say("first")
            (await model.question()).answer("one")
            await h.room.shows(1)
            await h.quiet()
            session = await h.session()
            await h.store.leases.take(
                session.conversation, owner="other", place="a terminal", now=h.clock.now(), ttl=900
            )
            await h.say("second")
            await h.room.shows(2)  # it is told where the conversation is busy
            async with asyncio.timeout(5):
                await h.app.stop(60)
            assert (await h.store.counts()).inbound["open"] == 1

    async def test_a_platform_that_never_answers_does_not_hold_up_the_stop_for_long(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=(model := HandModel()), drain=0) as h:
            h.room.hold("c1")
            await h.say("hello")
            (await model.question()).answer("never seen")
            await h.room.until(lambda: bool(h.room.tries))
            async with asyncio.timeout(FLUSH_SECONDS + 5):
                await h.app.stop(0)
            assert (await h.store.counts()).outbound["open"] == 1
            h.crashed = True  # it has been stopped already


class TestDeliveries:
    async def owed(self, folder: Path, *, forgets: bool) -> Path:
        """An answer that is on its way when the process dies."""
        model = HandModel()
        async with house(folder, model=model, forgets=forgets) as h:
            h.room.hold("c1")
            await h.say("hi")
            (await model.question()).answer("hello")
            await h.room.until(lambda: len(h.room.tries) == 1)
            h.crashed = True
            return await photograph(folder, "left")

    async def test_one_on_its_way_is_sent_again_with_a_mark_where_nobody_can_tell(self, tmp_path: Path) -> None:
        left = await self.owed(tmp_path, forgets=True)
        async with house(left, forgets=True) as h:
            (shown,) = await h.room.shows(1)
            assert shown.startswith("↻")
            assert shown.endswith("hello")
            await h.quiet()
            assert (await h.balanced()).outbound["unknown"] == 1

    async def test_one_on_its_way_is_simply_sent_where_keys_are_known(self, tmp_path: Path) -> None:
        left = await self.owed(tmp_path, forgets=False)
        async with house(left) as h:
            assert await h.room.shows(1) == ["hello"]
            await h.quiet()
            assert (await h.balanced()).outbound["sent"] == 1

    async def test_a_long_one_goes_on_at_the_first_piece_that_was_not_shown(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, model=model, clock=clock, longest=10) as h:
            h.room.fail_sends(None, None, Unreachable("loopback", "away"))
            await h.say("hi")
            (await model.question()).answer("one two three four five")
            await h.quiet()
            assert h.room.texts() == ["one two", "three four"]
            h.crashed = True
        async with house(tmp_path, clock=clock, longest=10) as h:
            await h.pass_time(lambda: bool(h.room.texts()))
            await h.quiet()
            assert h.room.texts() == ["five"]

    async def test_a_postponed_one_keeps_its_time(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, model=model, clock=clock) as h:
            h.room.fail_sends(RateLimited("loopback", retry_after=100))
            await h.say("hi")
            (await model.question()).answer("hello")
            await h.quiet()
            due = clock.now() + 100
            h.crashed = True
        async with house(tmp_path, clock=clock) as h:
            await h.pass_time(lambda: bool(h.room.texts()))
            assert clock.now() >= due


class TestConnections:
    async def test_what_a_dead_process_alone_could_answer_is_abandoned(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=(model := HandModel())) as h:
            for chat in ("c1", "c2"):
                await h.hand(replace(h.event("hi", chat=chat), lifetime=Lifetime.CONNECTION))
            await model.question()
            h.crashed = True
            left = await photograph(tmp_path, "left")
        async with house(left, model=(model := HandModel())) as h:
            await h.quiet()
            assert model.is_unasked
            assert h.room.texts() == []
            assert (await h.balanced()).inbound["abandoned"] == 2

    async def test_a_hang_up_takes_the_question_back(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=(model := HandModel())) as h:
            event = replace(h.event("hi"), lifetime=Lifetime.CONNECTION)
            await h.hand(event)
            question = await model.question()
            await h.hand(Hangup(origin=event.origin, event_id=event.event_id))
            await question.left.wait()
            await h.quiet()
            assert (await h.balanced()).inbound["abandoned"] == 1


@pytest.mark.parametrize("times", [1, 2])
async def test_rows_of_a_turn_are_written_once_however_often_it_is_taken_up(tmp_path: Path, times: int) -> None:
    async with house(tmp_path, model=(model := HandModel())) as h:
        await h.say("count")
        (await model.question()).call("session_search", query="x")
        await model.question()
        h.crashed = True
        left = await photograph(tmp_path, "left")
    for _ in range(times - 1):
        async with house(left, model=(model := HandModel())) as h:
            await model.question()
            h.crashed = True
            left = await photograph(left, "again")
    async with house(left, model=(model := HandModel())) as h:
        (await model.question()).answer("done")
        await h.quiet()
        rows = await h.rows(await h.session())
        assert [(row.role.value, row.kind) for row in rows] == [
            ("user", Kind.TALK),
            ("assistant", Kind.TOOL),
            ("tool", Kind.TOOL),
            ("assistant", Kind.TALK),
        ]
