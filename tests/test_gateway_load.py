"""Many conversations at once, and long ones."""

import asyncio
from pathlib import Path

from hermes.agent.models.base import Card
from hermes.clock import SystemClock
from hermes.sessions.model import OWNER, Kind, Link, Session
from hermes.sessions.ports import Store
from worlds.hand import HandModel
from worlds.house import house
from worlds.room import PATIENCE
from worlds.scripts import echo

CHATS = 500
LAG = 0.05
"""Seconds that the loop may be late."""


async def measure_lag(worst: list[float]) -> None:
    """Notes how late each short sleep ends."""
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(0.005)
        worst.append(loop.time() - before - 0.005)


async def test_five_hundred_chats_at_once_are_all_answered_and_the_loop_stays_free(tmp_path: Path) -> None:
    lags: list[float] = []
    async with house(tmp_path, model=echo(), clock=SystemClock()) as h:
        meter = h.tasks.create_task(measure_lag(lags))
        for number in range(CHATS):
            h.room.speak(h.packet(f"question {number}", chat=f"c{number}", user=f"u{number}"))
        async with asyncio.timeout(3 * PATIENCE):
            await h.room.shows(CHATS)
            await h.quiet()
        meter.cancel()
        for number in range(CHATS):
            (text,) = h.room.texts(f"c{number}")
            assert text.endswith(f"question {number}")
        assert len(h.app.mailboxes) == 0
        books = await h.balanced()
        assert (books.inbound["answered"], books.outbound["sent"]) == (CHATS, CHATS)
    lags.sort()
    assert lags[int(len(lags) * 0.99)] < LAG


async def test_a_slow_model_in_one_chat_delays_no_other(tmp_path: Path) -> None:
    model = HandModel()
    async with house(tmp_path, model=model) as h:
        await h.say("slow", chat="slow")
        slow = await model.question()
        for number in range(20):
            await h.say("quick", chat=f"c{number}", user=f"u{number}")
            (await model.question()).answer("done")
            assert len(await h.room.shows(number + 1)) == number + 1
        slow.answer("at last")
        assert (await h.room.shows(21))[-1] == "at last"


async def test_more_turns_than_may_run_at_once_wait_and_are_answered(tmp_path: Path) -> None:
    model = HandModel()
    async with house(tmp_path, model=model, gateway={"max_concurrent_turns": 2}) as h:
        for number in range(4):
            await h.say("hi", chat=f"c{number}", user=f"u{number}")
        first, second = await model.question(), await model.question()
        assert model.is_unasked
        for question in (first, second):
            question.answer("ok")
        for _ in range(2):
            (await model.question()).answer("ok")
        assert len(await h.room.shows(4)) == 4


class TestLongConversations:
    small = Card(provider="local", name="small", context_length=2000, tools=False, writes_summaries=False)

    async def test_one_that_outgrows_the_window_is_split_and_still_answered(self, tmp_path: Path) -> None:
        model = HandModel(self.small)
        async with house(tmp_path, model=model) as h:
            await h.say("/title Long talk")
            await h.room.shows(1)
            sizes = []
            for number in range(20):
                await h.say(f"message {number}: " + "some words " * 30)
                question = await model.question()
                sizes.append(sum(len(line.text) for line in question.request.lines))
                question.answer(f"answer {number}: " + "more words " * 20)
                await h.quiet()
            assert len(h.room.texts()) == 21
            assert max(sizes) < 2000 * 4
            tip = await h.session()
            assert (tip.link, tip.title) == (Link.COMPRESSION, f"Long talk #{await segments(h.store, tip)}")
            said = await h.transcript()
            assert [line.partition(":")[0] for line in said] == ["user", "assistant"] * 20
            assert [line.split(":")[1].strip() for line in said[::2]] == [f"message {n}" for n in range(20)]
            history = await h.store.history(tip.id)
            assert sum(row.kind is Kind.SUMMARY for row in history) == 1
            assert len(history) < 40
            await h.balanced()

    async def test_what_is_written_during_a_split_stays_in_its_turn(self, tmp_path: Path) -> None:
        model = HandModel(self.small)
        async with house(tmp_path, model=model) as h:
            for number in range(6):
                await h.say(f"message {number}: " + "some words " * 60)
                (await model.question()).answer("more words " * 60)
                await h.quiet()
            tip = await h.session()
            assert tip.parent is not None
            packet = await h.say("the last question")
            question = await model.question()
            assert question.heard[-1] == "the last question"
            question.answer("the last answer")
            await h.quiet()
            row = await h.row(packet)
            assert row.turn is not None
            mine = await h.store.turn_messages(row.turn)
            assert [one.content for one in mine] == ["the last question", "the last answer"]


async def segments(store: Store, tip: Session) -> int:
    """How many sessions a conversation has been split into."""
    count, session = 1, tip
    while session.parent is not None:
        session = await store.get(session.parent, OWNER)
        count += 1
    return count
