"""The promises every language model keeps, and those of the models that are asked over HTTP.

Subclass, give the model, add nothing else.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from hermes.agent.models.base import (
    CallTools,
    ChatModel,
    Finished,
    Line,
    ModelEvent,
    ModelRequest,
    Stop,
    TextDelta,
    ToolSpec,
)
from hermes.errors import BadTranscript, ConfigError, ContextOverflow, ModelError, ModelUnavailable
from hermes.sessions.model import Role, ToolCall, Usage
from worlds.llm import End, LlmWorld, Refuse, Say, Trouble

KEY = "sk-secret-0123456789abcdef"

WEATHER = ToolSpec(
    name="weather",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)
ASK_WEATHER = (
    ToolCall(id="call_1", name="weather", arguments='{"city": "北京"}'),
    ToolCall(id="call_2", name="weather", arguments='{"city": "Zürich"}'),
)


def user(text: str) -> Line:
    return Line(role=Role.USER, text=text)


def assistant(text: str, *calls: ToolCall) -> Line:
    return Line(role=Role.ASSISTANT, text=text, tool_calls=calls)


def result(call: ToolCall, text: str) -> Line:
    return Line(role=Role.TOOL, text=text, tool_call_id=call.id)


def request(*lines: Line, tools: tuple[ToolSpec, ...] = (), max_output_tokens: int | None = None) -> ModelRequest:
    return ModelRequest(system="Be brief.", lines=lines, tools=tools, max_output_tokens=max_output_tokens)


HELLO = request(user("Hello, who are you?"), max_output_tokens=16)


async def events_of(model: ChatModel, asked: ModelRequest = HELLO) -> list[ModelEvent]:
    async with aclosing(model.stream(asked)) as events:
        return [event async for event in events]


async def broken_answer(model: ChatModel, asked: ModelRequest = HELLO) -> tuple[str, ModelError]:
    """The words that were shown, and the error that ended them."""
    words = ""
    async with aclosing(model.stream(asked)) as events:
        try:
            async for event in events:
                words += text_of([event])
        except ModelError as error:
            return words, error
    raise AssertionError("The answer did not break.")


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: list[ModelEvent]) -> tuple[ToolCall, ...]:
    return next((event.calls for event in events if isinstance(event, CallTools)), ())


def finish_of(events: list[ModelEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


class ModelContract:
    """For every ChatModel. The fixture gives one that answers HELLO in words, and closes it afterwards."""

    @pytest.fixture
    def model(self) -> ChatModel:
        raise NotImplementedError

    async def test_an_answer_is_words_and_then_exactly_one_finished(self, model: ChatModel) -> None:
        *words, last = await events_of(model)
        assert words
        assert all(isinstance(word, TextDelta) and word.text for word in words)
        assert isinstance(last, Finished)
        assert last.stop in {Stop.END, Stop.LENGTH}
        assert last.model

    async def test_an_answer_can_be_left_in_the_middle_and_the_next_one_is_whole(self, model: ChatModel) -> None:
        async with aclosing(model.stream(HELLO)) as events:
            assert isinstance(await anext(events), TextDelta)
        assert isinstance((await events_of(model))[-1], Finished)

    async def test_cancelling_the_reader_ends_the_answer_as_cancelled(self, model: ChatModel) -> None:
        reading = asyncio.Event()

        async def read() -> None:
            async with aclosing(model.stream(HELLO)) as events:
                await anext(events)
                reading.set()
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            await asyncio.wait_for(reading.wait(), 60)
            reader.cancel()
        assert reader.cancelled()
        assert isinstance((await events_of(model))[-1], Finished)

    async def test_conversations_are_answered_side_by_side(self, model: ChatModel) -> None:
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(events_of(model)) for _ in range(3)]
        assert all(isinstance(answer.result()[-1], Finished) for answer in answers)

    async def test_a_history_with_another_models_tool_calls_is_understood(self, model: ChatModel) -> None:
        first, second = ASK_WEATHER
        lines = (
            user("Weather?"),
            assistant("", first, second),
            result(first, "晴 ☀️"),
            result(second, ""),
            user("Thanks!"),
        )
        assert text_of(await events_of(model, request(*lines, max_output_tokens=16)))

    async def test_the_card_is_known_before_anything_is_asked(self, model: ChatModel) -> None:
        assert model.card.provider
        assert model.card.name
        assert model.card.context_length > 0

    async def test_a_closed_model_can_be_closed_again(self, model: ChatModel) -> None:
        await events_of(model)
        await model.close()
        await model.close()


class ProviderContract(ModelContract):
    """For models behind HTTP: `connect` gives one that asks the world."""

    def connect(self, world: LlmWorld, *, key: str | None = KEY, stall_seconds: float = 30) -> ChatModel:
        raise NotImplementedError

    @pytest.fixture
    async def world(self) -> AsyncIterator[LlmWorld]:
        async with LlmWorld() as world:
            yield world

    @pytest.fixture
    async def model(self, world: LlmWorld) -> AsyncIterator[ChatModel]:
        model = self.connect(world)
        yield model
        await model.close()

    @pytest.mark.parametrize("bytes_at_once", [None, 1, 7])
    @pytest.mark.parametrize("utf16", [False, True])
    @pytest.mark.parametrize(
        "text", ["你好，世界！很高兴", "👩‍👩‍👧‍👦 and 🏳️‍🌈 end", "naïve — “quoted”\n\n\ttab", "𠮷野家𠮷"]
    )
    async def test_words_survive_being_cut_anywhere(
        self, world: LlmWorld, model: ChatModel, text: str, utf16: bool, bytes_at_once: int | None
    ) -> None:
        world.will(Say(text=text, pieces=5, utf16=utf16, bytes_at_once=bytes_at_once))
        events = await events_of(model)
        assert text_of(events) == text
        for event in events:
            if isinstance(event, TextDelta):
                event.text.encode()

    async def test_tool_calls_come_whole_and_their_results_go_back(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(text="One moment.", calls=ASK_WEATHER, pieces=4), Say(text="Sunny."))
        asked = request(user("Weather?"), tools=(WEATHER,))
        events = await events_of(model, asked)
        assert [type(event) for event in events[-2:]] == [CallTools, Finished]
        assert calls_of(events) == ASK_WEATHER
        assert finish_of(events).stop is Stop.TOOLS

        first, second = ASK_WEATHER
        answer = (assistant("One moment.", first, second), result(first, "晴"), result(second, "Regen"))
        assert text_of(await events_of(model, request(*asked.lines, *answer, tools=(WEATHER,)))) == "Sunny."
        assert "晴" in str(world.journal[-1].body["messages"])
        assert "weather" in str(world.journal[-1].body["tools"])

    async def test_a_call_without_arguments_has_an_empty_object(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(calls=(ToolCall(id="call_1", name="weather", arguments=""),)))
        (call,) = calls_of(await events_of(model, request(user("Weather?"), tools=(WEATHER,))))
        assert call.arguments == "{}"

    async def test_the_providers_own_count_is_told(self, world: LlmWorld, model: ChatModel) -> None:
        usage = Usage(input_tokens=120, output_tokens=70, cache_read_tokens=900, reasoning_tokens=40)
        world.will(Say(text="Hi", usage=usage))
        assert finish_of(await events_of(model)).usage == usage

    async def test_an_empty_answer_is_an_answer(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(text=""))
        assert [type(event) for event in await events_of(model)] == [Finished]

    @pytest.mark.parametrize(
        ("trouble", "kind", "retryable"),
        [
            (Trouble.KEY, ModelUnavailable, False),
            (Trouble.FORBIDDEN, ModelUnavailable, False),
            (Trouble.UNKNOWN_MODEL, ModelUnavailable, False),
            (Trouble.CREDIT, ModelUnavailable, False),
            (Trouble.SETTING, ModelUnavailable, False),
            (Trouble.BUSY, ModelUnavailable, True),
            (Trouble.CRASH, ModelUnavailable, True),
            (Trouble.OVERLOADED, ModelUnavailable, True),
            (Trouble.OVERFLOW, ContextOverflow, None),
            (Trouble.SHAPE, BadTranscript, None),
        ],
    )
    async def test_a_refusal_is_sorted_by_what_the_caller_should_do(
        self, world: LlmWorld, model: ChatModel, trouble: Trouble, kind: type[ModelError], retryable: bool | None
    ) -> None:
        world.will(Refuse(trouble=trouble))
        _, error = await broken_answer(model)
        assert type(error) is kind
        assert getattr(error, "retryable", None) is retryable
        assert len(world.journal) == 1

    async def test_a_refused_key_names_the_setting_and_never_the_key(self, world: LlmWorld, model: ChatModel) -> None:
        world.key = "another"
        _, error = await broken_answer(model)
        text = str(error)
        assert "`api_key`" in text
        assert KEY not in text
        assert "127.0.0.1" in text

    async def test_the_environments_keys_are_not_sent_where_none_is_configured(
        self, world: LlmWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            monkeypatch.setenv(name, KEY)
        model = self.connect(world, key=None)
        await events_of(model)
        await model.close()
        assert KEY not in str(dict(world.journal[0].headers))

    async def test_blanks_around_a_key_are_not_part_of_it(self, world: LlmWorld) -> None:
        world.key = KEY
        model = self.connect(world, key=f" {KEY}\n")
        assert text_of(await events_of(model))
        await model.close()

    @pytest.mark.parametrize("key", ["“sk-123”", "sk-12\n34", "密钥"])
    async def test_a_key_that_cannot_be_one_is_refused_at_once(self, world: LlmWorld, key: str) -> None:
        with pytest.raises(ConfigError, match="`api_key`") as caught:
            self.connect(world, key=key)
        assert key not in str(caught.value)

    @pytest.mark.parametrize("name", ["retry-after", "Retry-After"])
    async def test_the_wait_that_a_provider_asks_for_is_passed_on(
        self, world: LlmWorld, model: ChatModel, name: str
    ) -> None:
        world.will(Refuse(trouble=Trouble.BUSY, headers={name: "17"}))
        _, error = await broken_answer(model)
        assert isinstance(error, ModelUnavailable)
        assert error.retry_after == 17

    @pytest.mark.parametrize("end", [End.CUT, End.ERROR])
    async def test_a_stream_that_breaks_is_unavailable_for_the_moment(
        self, world: LlmWorld, model: ChatModel, end: End
    ) -> None:
        world.will(Say(text="half of an answer", end=end))
        words, error = await broken_answer(model)
        assert words == "half of an answer"
        assert isinstance(error, ModelUnavailable)
        assert error.retryable

    async def test_silence_is_not_waited_for_without_end(self, world: LlmWorld) -> None:
        model = self.connect(world, stall_seconds=0.1)
        world.will(Say(text="half", end=End.SILENCE))
        _, error = await broken_answer(model)
        await model.close()
        assert isinstance(error, ModelUnavailable)
        assert error.retryable
        assert "0.1 s" in str(error)

    async def test_a_provider_that_is_not_there_is_unavailable_for_the_moment(self, world: LlmWorld) -> None:
        model = self.connect(world)
        await world.stop()
        _, error = await broken_answer(model)
        await model.close()
        assert isinstance(error, ModelUnavailable)
        assert error.retryable
        assert "`base_url`" in str(error)

    async def test_leaving_an_answer_stops_the_far_side(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(text="a long answer", end=End.SILENCE))
        async with aclosing(model.stream(HELLO)) as events:
            await anext(events)
            assert not world.hung_up.is_set()
        await asyncio.wait_for(world.hung_up.wait(), 10)

    async def test_cancelling_before_the_first_word_stops_the_far_side(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(end=End.SILENCE))
        arrived = asyncio.Event()

        async def note(_asked: object) -> None:
            arrived.set()

        world.before = note
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(events_of(model))
            await asyncio.wait_for(arrived.wait(), 10)
            reader.cancel()
        await asyncio.wait_for(world.hung_up.wait(), 10)

    async def test_a_closed_model_answers_again(self, model: ChatModel) -> None:
        await events_of(model)
        await model.close()
        assert text_of(await events_of(model))
