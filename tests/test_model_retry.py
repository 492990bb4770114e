"""Patience and fallback, on a clock that nobody waits for."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.model import HELLO, broken_answer, events_of, finish_of, text_of
from fakes import VirtualClock, settle
from hermes.agent.models.base import Card, ChatModel, Finished, ModelEvent, ModelRequest, Stop, TextDelta
from hermes.agent.models.retry import Patient, WithFallback
from hermes.errors import BadTranscript, ContextOverflow, ModelError, ModelUnavailable
from hermes.sessions.model import Usage

DONE = Finished(usage=Usage(), stop=Stop.END, model="m")


class Moody:
    """Meets each request with the next of `moods`: words, an error, or words and then an error."""

    def __init__(self, *moods: str | ModelError | tuple[str, ModelError], name: str = "moody") -> None:
        self._moods = list(moods)
        self._name = name
        self.asked = 0
        self.open = 0
        self.closed = False

    @property
    def card(self) -> Card:
        return Card(provider="test", name=self._name, context_length=1000)

    async def stream(self, _request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        mood = self._moods[self.asked]
        self.asked += 1
        self.open += 1
        try:
            words, error = mood if isinstance(mood, tuple) else (mood, None) if isinstance(mood, str) else ("", mood)
            if words:
                yield TextDelta(words)
            if error:
                raise error
            yield DONE
        finally:
            self.open -= 1

    async def close(self) -> None:
        self.closed = True


def busy(retry_after: float | None = None) -> ModelUnavailable:
    return ModelUnavailable("Too busy.", retry_after=retry_after)


def gone() -> ModelUnavailable:
    return ModelUnavailable("Wrong key.", retryable=False)


def patient(model: ChatModel, clock: VirtualClock, chance: Callable[[], float] = lambda: 0.0) -> Patient:
    return Patient(model, clock, attempts=4, first_wait=1, longest_wait=60, chance=chance)


async def asked_patiently(model: ChatModel, clock: VirtualClock) -> list[ModelEvent]:
    """The answer of `model`, with time moving on until it is there."""
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(_answer_or_error(model))
        while not answering.done():
            await settle()
            await clock.advance(60)
    match answering.result():
        case ModelError() as error:
            raise error
        case events:
            return events


async def _answer_or_error(model: ChatModel) -> list[ModelEvent] | ModelError:
    # An error that left the task would come out of its group wrapped.
    try:
        return await events_of(model)
    except ModelError as error:
        return error


async def test_a_busy_model_is_asked_again_after_waits_that_double() -> None:
    clock, model = VirtualClock(), Moody(busy(), busy(), busy(), "Hi")
    events = await asked_patiently(patient(model, clock), clock)
    assert (text_of(events), finish_of(events)) == ("Hi", DONE)
    assert clock.slept == [1, 2, 4]


async def test_patience_ends_with_the_last_attempts_error() -> None:
    clock, model = VirtualClock(), Moody(*(ModelUnavailable(f"busy {n}") for n in range(5)))
    with pytest.raises(ModelUnavailable, match="busy 3"):
        await asked_patiently(patient(model, clock), clock)
    assert model.asked == 4
    assert clock.slept == [1, 2, 4]


async def test_the_wait_that_the_provider_asks_for_is_kept() -> None:
    clock, model = VirtualClock(), Moody(busy(retry_after=17.5), "Hi")
    await asked_patiently(patient(model, clock), clock)
    assert clock.slept == [17.5]


async def test_a_wait_that_no_person_would_bear_is_not_begun() -> None:
    clock, model = VirtualClock(), Moody(busy(retry_after=61), "Hi")
    with pytest.raises(ModelUnavailable):
        await events_of(patient(model, clock))
    assert clock.slept == []


@pytest.mark.parametrize("error", [gone(), ContextOverflow("long"), BadTranscript("shape")])
async def test_what_waiting_cannot_help_is_raised_at_once(error: ModelError) -> None:
    clock, model = VirtualClock(), Moody(error, "Hi")
    with pytest.raises(type(error)):
        await events_of(patient(model, clock))
    assert (model.asked, clock.slept) == (1, [])


async def test_an_answer_whose_words_were_shown_is_not_asked_for_again() -> None:
    clock, model = VirtualClock(), Moody(("Half", busy()), "Hi")
    words, error = await broken_answer(patient(model, clock))
    assert words == "Half"
    assert isinstance(error, ModelUnavailable)
    assert model.asked == 1


async def test_leaving_a_patient_answer_leaves_the_model_too() -> None:
    model = Moody("Hi")
    answer = patient(model, VirtualClock()).stream(HELLO)
    await anext(answer)
    assert model.open == 1
    await answer.aclose()
    assert model.open == 0


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 12))
async def test_every_wait_is_between_half_and_the_whole_of_its_step(chance: float, attempts: int) -> None:
    clock = VirtualClock()
    model = Moody(*(busy() for _ in range(attempts)), "Hi")
    asking = Patient(model, clock, attempts=attempts + 1, first_wait=1, longest_wait=60, chance=lambda: chance)
    await asked_patiently(asking, clock)
    for step, wait in enumerate(clock.slept):
        assert min(2**step, 60) / 2 <= wait <= min(2**step, 60)


async def test_the_second_model_answers_when_the_first_is_unavailable() -> None:
    first, second = Moody(gone()), Moody("Hi from the second")
    assert text_of(await events_of(WithFallback(first, second))) == "Hi from the second"


async def test_the_second_model_is_left_alone_while_the_first_answers() -> None:
    first, second = Moody("Hi"), Moody("unused")
    both = WithFallback(first, second)
    assert text_of(await events_of(both)) == "Hi"
    assert (second.asked, both.card) == (0, first.card)


async def test_a_break_after_the_first_words_is_not_answered_twice() -> None:
    first, second = Moody(("Half", busy())), Moody("unused")
    with pytest.raises(ModelUnavailable, match="Too busy"):
        await events_of(WithFallback(first, second))
    assert second.asked == 0


@pytest.mark.parametrize("error", [ContextOverflow("long"), BadTranscript("shape")])
async def test_a_fault_of_the_request_is_no_reason_to_ask_the_second(error: ModelError) -> None:
    second = Moody("unused")
    with pytest.raises(type(error)):
        await events_of(WithFallback(Moody(error), second))
    assert second.asked == 0


async def test_when_neither_answers_both_reasons_are_told() -> None:
    with pytest.raises(ModelUnavailable, match=r"Wrong key\..*Too busy\.") as caught:
        await events_of(WithFallback(Moody(gone()), Moody(busy(retry_after=3))))
    assert (caught.value.retryable, caught.value.retry_after) == (True, 3)


async def test_a_break_in_the_fallbacks_answer_is_told_as_it_is() -> None:
    with pytest.raises(ModelUnavailable, match=r"^Too busy\.$"):
        await events_of(WithFallback(Moody(gone()), Moody(("Half", busy()))))


async def test_closing_reaches_every_model() -> None:
    first, second = Moody(), Moody()
    await Patient(WithFallback(first, second), VirtualClock()).close()
    assert (first.closed, second.closed) == (True, True)
