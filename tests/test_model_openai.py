"""OpenAI and compatible endpoints, asked with the vendor's own client over a real socket."""

import pytest

from contracts.model import (
    ASK_WEATHER,
    HELLO,
    KEY,
    WEATHER,
    ProviderContract,
    assistant,
    calls_of,
    events_of,
    finish_of,
    request,
    text_of,
    user,
)
from hermes.agent.models.base import ChatModel, Stop
from hermes.agent.models.openai import OpenAIChat
from hermes.sessions.model import Usage
from worlds.llm import LlmWorld, Say


class TestOpenAIChat(ProviderContract):
    def connect(self, world: LlmWorld, *, key: str | None = KEY, stall_seconds: float = 30) -> ChatModel:
        return OpenAIChat("gpt-test", key, world.url, stall_seconds=stall_seconds)

    async def test_an_endpoint_that_leaves_out_usage_and_finish_reason_is_understood(
        self, world: LlmWorld, model: ChatModel
    ) -> None:
        world.will(Say(text="Hi there", bare=True))
        events = await events_of(model)
        assert text_of(events) == "Hi there"
        assert (finish_of(events).stop, finish_of(events).usage) == (Stop.END, Usage())

    async def test_calls_without_ids_and_indices_get_ids(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(calls=ASK_WEATHER[:1], bare=True))
        events = await events_of(model, request(user("Weather?"), tools=(WEATHER,)))
        (call,) = calls_of(events)
        assert (call.name, call.arguments) == (ASK_WEATHER[0].name, ASK_WEATHER[0].arguments)
        assert call.id
        assert finish_of(events).stop is Stop.TOOLS

    @pytest.mark.parametrize(
        ("word", "stop"),
        [("stop", Stop.END), ("length", Stop.LENGTH), ("content_filter", Stop.REFUSED), ("eos", Stop.END)],
    )
    async def test_the_reason_to_stop_is_told(self, world: LlmWorld, model: ChatModel, word: str, stop: Stop) -> None:
        world.will(Say(text="Hi", stop=word))
        assert finish_of(await events_of(model)).stop is stop

    async def test_the_request_carries_the_prompt_the_cap_and_the_key(self, world: LlmWorld, model: ChatModel) -> None:
        await events_of(model)
        (asked,) = world.journal
        assert asked.body["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello, who are you?"},
        ]
        assert asked.body["max_tokens"] == HELLO.max_output_tokens
        assert asked.body["stream_options"] == {"include_usage": True}
        assert "tools" not in asked.body
        assert asked.headers["Authorization"] == f"Bearer {KEY}"

    async def test_an_answer_that_was_begun_is_sent_as_the_last_line(self, world: LlmWorld, model: ChatModel) -> None:
        await events_of(model, request(user("Count."), assistant("One, two,")))
        assert world.journal[0].body["messages"][-1] == {"role": "assistant", "content": "One, two,"}


@pytest.mark.parametrize(
    ("name", "window"), [("gpt-4", 8_192), ("gpt-4o-mini", 128_000), ("gpt-4.1-nano", 1_047_576), ("other", 128_000)]
)
def test_the_window_is_known_by_the_name(name: str, window: int) -> None:
    assert OpenAIChat(name, KEY).card.context_length == window


def test_a_configured_window_wins() -> None:
    assert OpenAIChat("gpt-4", KEY, context_length=32_000).card.context_length == 32_000
