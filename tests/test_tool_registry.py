"""The toolbox: who may call what, and what the model is told when a call goes wrong."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from hermes.agent.models.base import ToolSpec
from hermes.agent.tools.base import ToolContext, ToolResult
from hermes.agent.tools.registry import LONGEST, Toolbox
from hermes.errors import UserError
from hermes.sessions.model import OWNER, ConversationId, ToolCall


class Spoken:
    """A tool that does what a test says."""

    def __init__(self, name: str, work: Callable[[dict[str, Any]], Awaitable[ToolResult]]) -> None:
        self.spec = ToolSpec(name=name, description="")
        self._work = work

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await self._work(arguments)


async def echo(arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(text=json.dumps(arguments))


def raising(error: BaseException) -> Spoken:
    async def work(_: dict[str, Any]) -> ToolResult:
        raise error

    return Spoken("broken", work)


def context(role: str = "owner") -> ToolContext:
    return ToolContext(conversation=ConversationId("c"), scope=OWNER, role=role, memory_owner="owner", now=0.0)


async def call(toolbox: Toolbox, name: str, arguments: str = "{}", role: str = "owner") -> ToolResult:
    return await toolbox.call(ToolCall(id="c1", name=name, arguments=arguments), context(role))


@pytest.mark.parametrize(("arguments", "seen"), [('{"a": 1}', '{"a": 1}'), ("", "{}"), ("{}", "{}")])
async def test_arguments_reach_the_tool_as_an_object(arguments: str, seen: str) -> None:
    assert await call(Toolbox([Spoken("echo", echo)]), "echo", arguments) == ToolResult(text=seen)


@pytest.mark.parametrize("arguments", ['{"a": ', "nonsense", "[1]", '"text"', "7", "null", "[" * 100_000])
async def test_arguments_that_are_no_object_are_told_to_the_model(arguments: str) -> None:
    result = await call(Toolbox([Spoken("echo", echo)]), "echo", arguments)
    assert result.failed
    assert "arguments of echo are not" in result.text


async def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    result = await call(Toolbox([Spoken("echo", echo)]), "ecko")
    assert result == ToolResult(text="There is no tool 'ecko'. There are: echo.", failed=True)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("owner", {"session_search", "memory", "terminal"}),
        ("trusted", {"session_search", "memory", "terminal"}),
        ("guest", {"session_search", "memory"}),
        ("unheard-of", set()),
    ],
)
async def test_rights_are_judged_when_a_tool_is_called(role: str, allowed: set[str]) -> None:
    names = ("session_search", "memory", "terminal")
    toolbox = Toolbox([Spoken(name, echo) for name in names])
    assert [spec.name for spec in toolbox.specs] == list(names)
    results = {name: await call(toolbox, name, role=role) for name in names}
    assert {name for name, result in results.items() if not result.failed} == allowed
    assert all("may not use" in result.text for result in results.values() if result.failed)


async def test_what_a_tool_says_about_its_arguments_goes_to_the_model() -> None:
    with capture_logs() as logs:
        result = await call(Toolbox([raising(UserError("Give a number.\nOr a name."))]), "broken")
    assert result == ToolResult(text="Give a number.\nOr a name.", failed=True)
    assert logs == []


async def test_a_tool_that_breaks_is_told_in_one_line_and_logged() -> None:
    with capture_logs() as logs:
        result = await call(Toolbox([raising(ZeroDivisionError("first\nsecond"))]), "broken")
    assert result == ToolResult(text="broken failed: ZeroDivisionError: first second", failed=True)
    assert [(entry["event"], entry["tool"], entry["call"]) for entry in logs] == [("tool.failed", "broken", "c1")]


async def test_a_cancellation_passes() -> None:
    with pytest.raises(asyncio.CancelledError):
        await call(Toolbox([raising(asyncio.CancelledError())]), "broken")


async def test_a_long_result_is_cut_and_says_so() -> None:
    async def talkative(_: dict[str, Any]) -> ToolResult:
        return ToolResult(text="x" * (LONGEST + 5), failed=True)

    result = await call(Toolbox([Spoken("talkative", talkative)]), "talkative")
    assert result.text == f"{'x' * LONGEST}\n[cut: 5 of {LONGEST + 5} characters are not shown]"
    assert result.failed


async def test_text_that_cannot_be_stored_is_repaired() -> None:
    async def broken(_: dict[str, Any]) -> ToolResult:
        return ToolResult(text="a\x00b\ud83dc")

    assert (await call(Toolbox([Spoken("odd", broken)]), "odd")).text == "a\ufffdb\ufffdc"
