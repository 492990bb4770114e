"""What a chat sees of a turn that runs: typing, words as they come, signs that work goes on; then one answer."""

from pathlib import Path

import pytest

from fakes import VirtualClock
from hermes.errors import RateLimited, Refusal, Rejected, Unreachable
from hermes.gateway.presence import NOTICE_SECONDS, TYPING_SECONDS
from hermes.sessions.model import Delivery, Sending, TurnId
from test_gateway_recovery import photograph
from worlds.hand import HandModel, Question
from worlds.house import House, both_stores, house

INTERVAL = 1.0
"""Seconds between two edits in a direct chat, as configured by itself."""


async def think(h: House, model: HandModel, *words: str, **facts: str) -> Question:
    """A question whose answer has begun; gives it."""
    await h.say("question", **facts)
    question = await model.question()
    for word in words:
        question.say(word)
    await question.taken()
    return question


async def live(h: House, text: str) -> None:
    """Let time pass until the room shows this as its last message, and that is on disk."""
    await h.pass_time(lambda: bool(h.room.shown) and h.room.last().text == text)
    await h.store.data_version()  # whatever was on its way to the writer has been written


async def finish(h: House, question: Question, words: str) -> Delivery:
    """The last words; gives the duty once it is done."""
    question.answer(words)
    await h.quiet()
    (turn,) = {row.turn for row in await h.rows(await h.session()) if row.turn}
    (duty,) = await h.store.outbox.of_turn(TurnId(turn))
    return duty


class TestWords:
    @both_stores
    async def test_the_answer_grows_in_one_message_and_ends_as_that_message(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, live=True, forgets=True) as h:
            question = await think(h, model, "Once")
            await live(h, "Once")
            question.say(" upon")
            await live(h, "Once upon")
            duty = await finish(h, question, " a time.")
            assert h.room.texts() == ["Once upon a time."]
            assert (duty.state, duty.message_ids) == (Sending.SENT, (h.room.last().id,))
            assert (await h.rows(await h.session()))[-1].platform_message_ids == duty.message_ids
            await h.balanced()

    async def test_an_answer_that_comes_at_once_is_never_edited(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            await finish(h, await think(h, model), "Yes.")
            assert (h.room.texts(), h.room.edits) == (["Yes."], [])

    async def test_a_longer_answer_goes_on_in_further_messages(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, longest=20) as h:
            question = await think(h, model, "one two three four five six seven")
            await live(h, "one two three four")
            duty = await finish(h, question, " eight nine")
            assert h.room.texts() == ["one two three four", "five six seven eight", "nine"]
            assert len(duty.message_ids) == 3

    async def test_a_steps_words_make_room_for_the_next_ones(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            question = await think(h, model, "Let me look.")
            await live(h, "Let me look.")
            question.call("memory", action="read")
            question = await model.question()
            question.say("Found")
            await live(h, "Found")
            await finish(h, question, " it.")
            assert h.room.texts() == ["Found it."]

    async def test_rooms_are_edited_no_more_often_than_the_platform_allows(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            limit = next(iter(h.app.deliverer._adapters.values())).limits
            began = h.clock.now()
            question = await think(h, model, "a", kind="group", chat="g")
            await live(h, "a")
            assert h.clock.now() - began >= 60 / limit.edits_per_minute
            question.answer()
            await h.quiet()

    async def test_words_that_change_nothing_are_not_sent_again(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            question = await think(h, model, "Hm")
            await live(h, "Hm")
            await _advance(h, 10 * INTERVAL)
            assert h.room.edits == []
            await finish(h, question, "")
            assert h.room.edits == [(h.room.last().id, "Hm")]  # delivery makes sure of the last words once

    async def test_nothing_is_shown_before_its_time_where_that_is_switched_off(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, gateway={"streaming": {"enabled": False}}) as h:
            question = await think(h, model, "Once")
            await _advance(h, 10 * INTERVAL)
            assert h.room.texts() == []
            await finish(h, question, " upon")
            assert h.room.texts() == ["Once upon"]


class TestTrouble:
    @pytest.mark.parametrize(
        "trouble", [Unreachable("loopback", "lost", maybe_done=True), Rejected("loopback", Refusal.FORBIDDEN)]
    )
    async def test_a_message_that_may_have_been_begun_in_vain_is_not_begun_again(
        self, tmp_path: Path, trouble: Unreachable | Rejected
    ) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, forgets=True) as h:
            h.room.fail_sends(trouble)
            question = await think(h, model, "Once")
            await h.pass_time(lambda: len(h.room.tries) == 1)
            question.say(" upon")
            await _advance(h, 10 * INTERVAL)
            assert len(h.room.tries) == 1
            duty = await finish(h, question, " a time.")
            assert duty.state is Sending.SENT
            assert h.room.texts()[-1] == "Once upon a time."

    async def test_after_a_gap_in_the_line_the_words_go_on(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            h.room.fail_sends(Unreachable("loopback", "away"))
            question = await think(h, model, "Once")
            await live(h, "Once")
            h.room.fail_edits(Unreachable("loopback", "away", maybe_done=True))
            question.say(" upon")
            await live(h, "Once upon")
            await finish(h, question, " a time.")
            assert h.room.texts() == ["Once upon a time."]

    async def test_while_the_platform_asks_for_patience_nothing_goes_to_the_chat(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            question = await think(h, model, "Once")
            await live(h, "Once")
            h.room.fail_edits(RateLimited("loopback", retry_after=30.0))
            question.say(" upon")
            await _advance(h, 20.0)
            typed = len(h.room.typed)
            question.answer(" a time.")
            await h.quiet()
            assert (h.room.texts(), len(h.room.typed)) == (["Once"], typed)
            await live(h, "Once upon a time.")
            await h.quiet()
            await h.balanced()

    @both_stores
    async def test_a_message_that_somebody_deleted_is_sent_anew_in_the_end(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, live=True) as h:
            question = await think(h, model, "Once")
            await live(h, "Once")
            h.room.remove(h.room.last().id)
            h.room.forgets = True
            duty = await finish(h, question, " upon")
            assert (h.room.texts(), duty.state) == (["Once upon"], Sending.SENT)
            assert duty.message_ids == (h.room.last().id,)

    async def test_the_last_edit_is_tried_until_it_is_done_and_is_no_second_answer(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, forgets=True) as h:
            question = await think(h, model, "Once")
            await live(h, "Once")
            h.room.fail_edits(*[Unreachable("loopback", "lost", maybe_done=True)] * 2)
            question.answer(" upon")
            await live(h, "Once upon")
            await h.quiet()
            assert h.room.texts() == ["Once upon"]
            assert (await h.balanced()).outbound["sent"] == 1


class TestCrashes:
    async def test_a_half_shown_answer_is_continued_in_the_same_message(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, forgets=True) as h:
            await think(h, model, "Once")
            await live(h, "Once")
            room, h.crashed = h.room, True
            left = await photograph(tmp_path, "left")
        model = HandModel()
        async with house(left, model=model, live=True, forgets=True) as h:
            h.room.shown = room.shown
            question = await model.question()
            question.say("Once more")
            await live(h, "Once more")
            await finish(h, question, " unto the breach")
            assert h.room.texts() == ["Once more unto the breach"]

    async def test_an_answer_that_was_finished_but_not_shown_ends_as_the_message_that_was_begun(
        self, tmp_path: Path
    ) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True, forgets=True) as h:
            question = await think(h, model, "Once")
            await live(h, "Once")
            h.room.fail_edits(RateLimited("loopback", retry_after=600.0))
            question.answer(" upon")
            await h.quiet()
            room, h.crashed = h.room, True
            left = await photograph(tmp_path, "left")
        clock = VirtualClock(h.clock.now() + 600)
        async with house(left, model=HandModel(), live=True, forgets=True, clock=clock) as h:
            h.room.shown = room.shown
            await live(h, "Once upon")
            await h.quiet()
            assert h.room.texts() == ["Once upon"]
            await h.balanced()

    async def test_a_stopped_turn_ends_in_its_message(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            await think(h, model, "Once")
            await live(h, "Once")
            await h.say("/stop")
            await h.quiet()
            assert h.room.texts()[0].startswith("Once\n\n⏹")
            await h.balanced()


class TestSigns:
    async def test_somebody_types_as_long_as_the_turn_runs(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            question = await think(h, model)
            await _advance(h, 3 * TYPING_SECONDS + 1)
            assert h.room.typed == ["c1"] * 4
            await finish(h, question, "Done.")
            await _advance(h, 3 * TYPING_SECONDS)
            assert len(h.room.typed) == 4

    async def test_a_platform_that_is_slow_to_show_it_does_not_hold_up_the_answer(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            h.room.stuck_typing = True
            question = await think(h, model)
            await finish(h, question, "Done.")
            assert h.room.texts() == ["Done."]

    async def test_a_long_silence_is_explained_in_the_message_that_becomes_the_answer(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, live=True) as h:
            question = await think(h, model)
            await live(h, "⏳ Still working (1 min)")
            await live(h, "⏳ Still working (2 min)")
            question.say("Well")
            await live(h, "Well")
            await live(h, "Well\n\n⏳ Still working (3 min)")
            await finish(h, question, ", no.")
            assert h.room.texts() == ["Well, no."]

    async def test_where_messages_do_not_change_lines_say_it_rarer_and_rarer(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            question = await think(h, model, "Well")
            began = h.clock.now()
            await h.pass_time(lambda: len(h.room.texts()) == 2)
            assert h.room.texts() == ["⏳ Still working (3 min)", "⏳ Still working (9 min)"]
            assert h.clock.now() - began >= 3 * NOTICE_SECONDS
            question.answer(", no.")
            await h.room.shows(3)
            assert h.room.last().text == "Well, no."
            await h.quiet()
            await h.balanced()


async def _advance(h: House, seconds: float) -> None:
    end = h.clock.now() + seconds
    await h.pass_time(lambda: h.clock.now() >= end)
