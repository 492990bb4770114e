"""What bounds a turn and a person, and what people are told then."""

from functools import partial
from pathlib import Path

import pytest

from fakes import VirtualClock
from hermes.agent.models.base import Card, Stop
from hermes.agent.models.retry import Patient
from hermes.errors import BadTranscript, ContextOverflow, ModelUnavailable
from hermes.gateway.intake import QUEUE_BOUND
from hermes.sessions.model import Outcome
from worlds.hand import HandModel
from worlds.house import both_stores, house, until


class TestTurns:
    async def test_after_the_last_step_the_person_is_told_and_the_work_is_kept(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, agent={"max_steps": 2}) as h:
            packet = await h.say("dig")
            for _ in range(2):
                (await model.question()).call("session_search", query="x")
            assert "after 2 steps" in (await h.room.shows(1))[0]
            await h.quiet()
            assert ((await h.row(packet)).outcome, (await h.row(packet)).why) == (Outcome.DEAD, "TurnLimit")
            assert len(await h.rows(await h.session())) == 5
            await h.balanced()

    @both_stores
    async def test_a_turn_that_takes_too_long_is_ended(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, agent={"turn_timeout_seconds": 0.06}) as h:
            await h.say("dig")
            question = await model.question()
            assert "after 0.001 minutes" in (await h.room.shows(1))[0]
            assert question.left.is_set()
            await h.quiet()
            h.configure(agent={})
            await h.say("go on")
            (await model.question()).answer("gladly")
            assert (await h.room.shows(2))[1] == "gladly"

    @pytest.mark.parametrize(
        ("stop", "said"), [(Stop.END, "The model gave an empty answer"), (Stop.REFUSED, "declined to answer")]
    )
    async def test_an_answer_without_words_is_said_to_be_one(self, tmp_path: Path, stop: Stop, said: str) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("hm")
            (await model.question()).answer(stop=stop)
            assert said in (await h.room.shows(1))[0]

    async def test_a_message_that_no_window_holds_is_told_so(self, tmp_path: Path) -> None:
        model = HandModel(Card(provider="hand", name="small", context_length=1000, writes_summaries=False))
        async with house(tmp_path, model=model) as h:
            packet = await h.say("word " * 5000)
            said = (await h.room.shows(1))[0]
            assert "/new" in said
            await h.quiet()
            assert (await h.row(packet)).outcome is Outcome.DEAD
            assert model.is_unasked


class TestModel:
    async def test_one_that_is_away_is_asked_again_and_then_the_person_is_told(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, model=Patient(model, clock, attempts=3), clock=clock) as h:
            packet = await h.say("hi")
            for _ in range(2):
                asked = len(clock.slept)
                (await model.question()).fail(ModelUnavailable("busy"))
                await until(partial(waits_for_model, clock, asked))
                await clock.advance(5)
            (await model.question()).fail(ModelUnavailable("still busy"))
            assert "cannot be reached right now: still busy" in (await h.room.shows(1))[0]
            await h.quiet()
            assert (await h.row(packet)).outcome is Outcome.DEAD

    async def test_one_that_refuses_the_key_is_not_asked_again(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, model=Patient(model, clock), clock=clock) as h:
            await h.say("hi")
            (await model.question()).fail(ModelUnavailable("The key is refused.", retryable=False))
            assert await h.room.shows(1) == ["⚠ The key is refused."]

    async def test_an_answer_that_breaks_off_is_not_shown_as_one(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("hi")
            question = await model.question()
            question.say("I was just")
            question.fail(ModelUnavailable("broke off"))
            assert "broke off" in (await h.room.shows(1))[0]
            assert await h.transcript() == ["user: hi"]

    async def test_a_history_that_is_refused_is_mended_and_sent_once_more(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("hi")
            (await model.question()).fail(BadTranscript("roles"))
            (await model.question()).answer("hello")
            assert await h.room.shows(1) == ["hello"]
            await h.say("again")
            for _ in range(2):
                (await model.question()).fail(BadTranscript("roles"))
            assert "cannot be reached" in (await h.room.shows(2))[1]

    async def test_an_overflow_makes_room_and_is_asked_once_more(self, tmp_path: Path) -> None:
        model = HandModel(Card(provider="hand", name="hand", context_length=128_000, writes_summaries=False))
        async with house(tmp_path, model=model) as h:
            for number in range(6):
                await h.say(f"message {number} " * 200)
                (await model.question()).answer(f"answer {number} " * 200)
                await h.quiet()
            before = await h.session()
            await h.say("one more")
            (await model.question()).fail(ContextOverflow("too long"))
            (await model.question()).answer("it fits")
            await h.quiet()
            assert h.room.texts()[-1] == "it fits"
            assert (await h.session()).parent == before.id


class TestTools:
    @pytest.mark.parametrize(
        ("tool", "arguments", "said"),
        [
            ("no_such_tool", "{}", "There is no tool 'no_such_tool'"),
            ("session_search", "not json", "are not JSON"),
            ("session_search", "[]", "not a JSON object"),
            ("session_search", '{"sort": 5}', "sort is newest or oldest"),
        ],
    )
    async def test_one_that_fails_is_one_failed_result_and_the_turn_goes_on(
        self, tmp_path: Path, tool: str, arguments: str, said: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("try")
            (await model.question()).call_raw(tool, "session_search", arguments=arguments)
            step = await model.question()
            assert len(step.results) == 2
            assert said in step.results[0] or tool == "session_search"
            step.answer("never mind")
            assert await h.room.shows(1) == ["never mind"]

    async def test_a_memory_that_cannot_be_written_is_told_to_the_model(self, tmp_path: Path) -> None:
        (tmp_path / "memory").write_text("not a folder")
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("remember")
            (await model.question()).call("memory", action="add", content="tea")
            step = await model.question()
            assert "Check the owner and mode" in step.results[0]
            step.answer("I could not")
            assert await h.room.shows(1) == ["I could not"]


class TestPace:
    async def test_a_guest_who_writes_too_fast_is_told_how_long_to_wait(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, model=model, clock=clock, gateway={"user_rate_per_minute": 2}) as h:
            await h.say("1", user="ada")
            question = await model.question()
            await h.say("2", user="ada")
            late = await h.say("3", user="ada")
            assert "wait 60 s" in (await h.room.shows(1))[0]
            assert ((await h.row(late)).outcome, (await h.row(late)).why) == (Outcome.REJECTED, "too fast")
            await h.say("owner", chat="c2")
            other = await model.question()
            await clock.advance(61)
            await h.say("4", user="ada")
            for one in (question, other):
                one.answer("ok")
            after = await model.question()
            assert after.heard == ["1", "2", "4"]
            after.answer("ok")
            await h.room.shows(4)
            await h.quiet()

    async def test_the_owner_is_never_too_fast(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, gateway={"user_rate_per_minute": 1}) as h:
            await h.say("1")
            first = await model.question()
            for text in ("2", "3"):
                await h.say(text)
            first.answer("ok")
            second = await model.question()
            assert second.heard == ["1", "2", "3"]
            second.answer("ok")
            await h.quiet()
            assert h.room.texts() == ["ok", "ok"]

    @both_stores
    async def test_a_full_queue_refuses_talk_and_still_takes_commands(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await h.say("0")
            first = await model.question()
            for number in range(QUEUE_BOUND):
                await h.say(str(number + 1))
            late = await h.say("one too many")
            assert "100 messages are already waiting" in (await h.room.shows(1))[0]
            assert (await h.row(late)).why == "queue full"
            await h.say("/status")
            assert "100 waiting" in (await h.room.shows(2))[1]
            first.answer("ok")
            rest = await model.question()
            assert rest.heard == [str(number) for number in range(QUEUE_BOUND + 1)]
            rest.answer("all of them")
            await h.room.shows(4)
            await h.quiet()
            books = await h.balanced()
            assert (books.inbound["merged"], books.inbound["rejected"]) == (QUEUE_BOUND - 1, 1)


def waits_for_model(clock: VirtualClock, since: int) -> bool:
    """A wait of between half a second and two is the patience with a model."""
    return any(0.4 < seconds <= 2 for seconds in clock.slept[since:])
