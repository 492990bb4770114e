"""Anthropic's models, asked with the vendor's own client over a real socket."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model import (
    ASK_WEATHER,
    KEY,
    WEATHER,
    ProviderContract,
    assistant,
    events_of,
    finish_of,
    request,
    result,
    text_of,
    user,
)
from hermes.agent.models import messages
from hermes.agent.models.anthropic import AnthropicChat
from hermes.agent.models.base import ChatModel, Line, ModelRequest, Stop
from hermes.sessions.model import ToolCall, Usage
from worlds.llm import LlmWorld, Say
from worlds.llm_dialects import AnthropicDialect


class TestAnthropicChat(ProviderContract):
    def connect(self, world: LlmWorld, *, key: str | None = KEY, stall_seconds: float = 30) -> ChatModel:
        return AnthropicChat("claude-test", key, world.anthropic_url, stall_seconds=stall_seconds)

    @pytest.mark.parametrize(
        ("word", "stop"),
        [("end_turn", Stop.END), ("max_tokens", Stop.LENGTH), ("refusal", Stop.REFUSED), ("news", Stop.END)],
    )
    async def test_the_reason_to_stop_is_told(self, world: LlmWorld, model: ChatModel, word: str, stop: Stop) -> None:
        world.will(Say(text="Hi", stop=word))
        assert finish_of(await events_of(model)).stop is stop

    async def test_an_answer_that_was_begun_can_be_continued(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(text=" three."))
        assert text_of(await events_of(model, request(user("Count."), assistant("One, two,")))) == " three."

    async def test_tokens_written_to_the_cache_are_counted(self, world: LlmWorld, model: ChatModel) -> None:
        usage = Usage(input_tokens=3, output_tokens=7, cache_read_tokens=900, cache_write_tokens=50)
        world.will(Say(text="Hi", usage=usage))
        assert finish_of(await events_of(model)).usage == usage

    async def test_a_first_line_of_the_assistant_and_an_empty_one_are_accepted(
        self, world: LlmWorld, model: ChatModel
    ) -> None:
        world.will(Say(text="Yes."))
        lines = (assistant("Earlier I said this.  "), user("a"), user("b"), assistant(" \n"), user("c"))
        assert text_of(await events_of(model, request(*lines))) == "Yes."
        turns = world.journal[0].body["messages"]
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
        assert [block["text"] for block in turns[2]["content"]] == ["a", "b", "c"]

    async def test_ids_and_arguments_of_other_providers_are_accepted(self, world: LlmWorld, model: ChatModel) -> None:
        world.will(Say(text="Yes."))
        call = ToolCall(id="functions.weather:0", name="weather", arguments="{broken")
        assert text_of(await events_of(model, request(user("w?"), assistant("", call), result(call, "?")))) == "Yes."

    async def test_a_message_that_joins_a_tool_round_follows_its_results(
        self, world: LlmWorld, model: ChatModel
    ) -> None:
        world.will(Say(text="Yes."))
        first, second = ASK_WEATHER
        lines = (user("w?"), assistant("", first, second), result(first, "1"), result(second, "2"), user("Hurry!"))
        await events_of(model, request(*lines))
        kinds = [block["type"] for block in world.journal[0].body["messages"][-1]["content"]]
        assert kinds == ["tool_result", "tool_result", "text"]


def marked(prompt: dict[str, Any]) -> list[str]:
    turns = [f"turn {n}" for n, t in enumerate(prompt["messages"]) if any("cache_control" in b for b in t["content"])]
    return [
        *(["system"] if any("cache_control" in block for block in prompt.get("system", ())) else []),
        *(["tools"] if any("cache_control" in block for block in prompt.get("tools", ())) else []),
        *turns,
    ]


TALK = tuple(line for n in range(4) for line in (user(f"q{n}"), assistant(f"a{n}")))


def test_the_cache_is_marked_at_the_prompt_the_tools_and_the_last_user_turns() -> None:
    assert marked(messages.prompt(request(*TALK, user("now"), tools=(WEATHER,)))) == [
        "system",
        "tools",
        "turn 6",
        "turn 8",
    ]


def test_marks_that_the_tools_do_not_need_go_to_more_turns() -> None:
    assert marked(messages.prompt(request(*TALK, user("now")))) == ["system", "turn 4", "turn 6", "turn 8"]


def test_a_short_conversation_has_fewer_marks() -> None:
    assert marked(messages.prompt(request(user("now")))) == ["system", "turn 0"]


_texts = st.text(max_size=6)


@st.composite
def _rounds(draw: st.DrawFn) -> tuple[Line, ...]:
    """What the loop may put together: talk in any order, and calls that are followed by their results."""
    lines: list[Line] = []
    for number in range(draw(st.integers(0, 6))):
        calls = [
            ToolCall(id=f"{draw(st.sampled_from(['call:', 'toolu_']))}{number}.{n}", name="t", arguments=draw(_texts))
            for n in range(draw(st.integers(0, 2)))
        ]
        lines += draw(st.lists(st.builds(user, _texts), max_size=2))
        lines.append(assistant(draw(_texts), *calls))
        lines += [result(call, draw(_texts)) for call in calls]
    return (user("first"), *lines)


@given(_rounds(), st.booleans(), _texts)
def test_every_history_becomes_a_prompt_that_the_api_accepts(
    lines: tuple[Line, ...], with_tools: bool, system: str
) -> None:
    asked = ModelRequest(system=system, lines=lines, tools=(WEATHER,) if with_tools else ())
    prompt = messages.prompt(asked)
    assert AnthropicDialect().complaint(prompt | {"max_tokens": 1}) is None
