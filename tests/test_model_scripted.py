"""The scripted model: rules in a file, no network."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model import (
    ASK_WEATHER,
    ModelContract,
    assistant,
    calls_of,
    events_of,
    finish_of,
    request,
    result,
    text_of,
    user,
)
from fakes import VirtualClock, settle
from hermes.agent.models.base import ChatModel, Stop, TextDelta
from hermes.agent.models.scripted import Rule, ScriptedChat, load
from hermes.clock import SystemClock
from hermes.errors import BadTranscript, ConfigError, ContextOverflow, ModelError, ModelUnavailable


class TestScriptedChat(ModelContract):
    @pytest.fixture
    def model(self) -> ChatModel:
        return ScriptedChat(SystemClock())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.yaml"


def model_of(script: Path, text: str) -> ScriptedChat:
    script.write_text(text, encoding="utf-8")
    return ScriptedChat(VirtualClock(), load(script))


async def answer(model: ChatModel, text: str) -> str:
    return text_of(await events_of(model, request(user(text))))


async def test_without_a_script_it_echoes_in_several_pieces() -> None:
    events = await events_of(ScriptedChat(VirtualClock()), request(user("hello 世界 😀")))
    assert text_of(events) == "You said: hello 世界 😀"
    assert sum(isinstance(event, TextDelta) for event in events) > 1


async def test_the_first_rule_that_fits_answers(script: Path) -> None:
    model = model_of(script, "- {when: '^hi', say: first}\n- {when: 'hi', say: second}\n- say: 'third {n} {text}'\n")
    assert [await answer(model, text) for text in ("Hi there", "oh hi", "well")] == ["first", "second", "third 3 well"]


async def test_a_rule_is_used_up_after_its_times(script: Path) -> None:
    model = model_of(script, "- {say: once, times: 1}\n- {say: twice, times: 2}\n")
    assert [await answer(model, "x") for _ in range(4)] == ["once", "twice", "twice", "You said: x"]


async def test_tools_are_called_and_their_results_answered(script: Path) -> None:
    model = model_of(
        script,
        """
- when: weather
  say: One moment.
  call:
    - {name: weather, arguments: {city: '{text}'}}
    - {name: clock}
- after_tool: weather
  say: 'It is {result}'
""",
    )
    asked = request(user('weather in "北京"'))
    events = await events_of(model, asked)
    weather, clock = calls_of(events)
    assert (weather.name, weather.arguments) == ("weather", '{"city": "weather in \\"北京\\""}')
    assert (clock.name, clock.arguments) == ("clock", "{}")
    assert weather.id != clock.id
    assert finish_of(events).stop is Stop.TOOLS

    spoken = (*asked.lines, assistant("", weather, clock))
    by_weather = request(*spoken, result(clock, "noon"), result(weather, "晴"))
    by_clock = request(*spoken, result(weather, "晴"), result(clock, "noon"))
    assert text_of(await events_of(model, by_weather)) == "It is 晴"
    assert text_of(await events_of(model, by_clock)) == "The tool said: noon"


@pytest.mark.parametrize(
    ("word", "kind"),
    [("unavailable", ModelUnavailable), ("overflow", ContextOverflow), ("bad_transcript", BadTranscript)],
)
async def test_it_fails_where_the_script_says_so(script: Path, word: str, kind: type[ModelError]) -> None:
    model = model_of(script, f"- {{fail: {word}, times: 1}}\n")
    with pytest.raises(kind):
        await answer(model, "x")
    assert await answer(model, "x") == "You said: x"


async def test_words_arrive_when_the_script_says() -> None:
    clock = VirtualClock()
    model = ScriptedChat(clock, (Rule(say="abcd", chunks=2, delay=5, pause=1),))
    start = clock.now()

    async def listen() -> list[tuple[float, str]]:
        async with aclosing(model.stream(request(user("x")))) as events:
            return [(clock.now() - start, event.text) async for event in events if isinstance(event, TextDelta)]

    async with asyncio.TaskGroup() as group:
        heard = group.create_task(listen())
        await settle()
        await clock.advance(10)
    assert heard.result() == [(5, "ab"), (6, "cd")]


@given(st.text(max_size=200), st.integers(1, 12))
async def test_pieces_join_to_what_was_to_be_said(text: str, chunks: int) -> None:
    model = ScriptedChat(VirtualClock(), (Rule(say="{text}", chunks=chunks),))
    events = await events_of(model, request(user(text)))
    words = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(words) == text
    assert len(words) <= chunks
    assert all(words)


@given(st.text(max_size=50))
async def test_arguments_stay_json_whatever_the_user_says(text: str) -> None:
    rules = (Rule.model_validate({"call": {"name": "t", "arguments": {"q": "{text}"}}}),)
    (call,) = calls_of(await events_of(ScriptedChat(VirtualClock(), rules), request(user(text))))
    assert json.loads(call.arguments) == {"q": text}


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("- say: a\n- say: [\n", 3, "YAML"),
        ("- say: a\n- sya: b\n", 2, "sya"),
        ("- say: a\n- say: b\n  chunks: 0\n", 3, "chunks"),
        ("- say: a\n- call:\n    - {arguments: {}}\n", 3, "name"),
        ("- when: '('\n", 1, "when"),
        ("- fail: sometimes\n", 1, "unavailable"),
        ("say: a\n", 1, "list"),
        ("", 1, "list"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused_with_its_line(script: Path, text: str, line: int, word: str) -> None:
    script.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(script)
    assert f"{script}:{line}:" in str(caught.value)
    assert word in str(caught.value)


def test_every_fault_is_told_at_once(script: Path) -> None:
    script.write_text("- chunks: 0\n- delay: -1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"(?s):1: chunks.*:2: delay"):
        load(script)


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"- say: \xff\n")
    with pytest.raises(ConfigError, match=r"binary\.yaml.*UTF-8"):
        load(tmp_path / "binary.yaml")


async def test_a_history_of_another_model_is_no_puzzle() -> None:
    lines = (user("x"), assistant("", *ASK_WEATHER[:1]), result(ASK_WEATHER[0], "晴"))
    assert text_of(await events_of(ScriptedChat(VirtualClock()), request(*lines))) == "The tool said: 晴"
