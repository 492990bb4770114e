"""One turn of thinking: the model and its tools take turns until there is an answer.

Limits are exceptions. Every await can be cancelled; what was finished by then has been recorded.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from hermes.agent.models.base import CallTools, ChatModel, Finished, Line, ModelRequest, Stop, TextDelta
from hermes.agent.tools.base import ToolContext
from hermes.agent.tools.registry import Toolbox
from hermes.errors import ModelUnavailable, TurnLimit
from hermes.sessions.model import Role, ToolCall, Usage


class Observer(Protocol):
    """Who watches a turn and keeps what it does."""

    def said(self, text: str) -> None:
        """Words join the answer."""
        ...

    def tool(self, name: str, *, done: bool) -> None:
        """A tool starts, or has ended."""
        ...

    async def record(self, lines: Sequence[Line], usage: Usage) -> None:
        """A step is finished: its lines must be on disk when this returns."""
        ...

    async def steering(self) -> Sequence[Line]:
        """What people said meanwhile, recorded already; asked before every step of the model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The final words. They are not recorded yet: that happens together with the duty to deliver them."""

    text: str
    usage: Usage
    stop: Stop
    model: str


async def reply(
    model: ChatModel,
    request: ModelRequest,
    *,
    tools: Toolbox,
    context: ToolContext,
    observer: Observer,
    max_steps: int,
) -> Reply:
    """Think until there is an answer.

    Raises TurnLimit after `max_steps` calls of the model, and what the model raises.
    """
    lines = request.lines
    for _ in range(max_steps):
        lines += tuple(await observer.steering())
        step = await _ask(model, replace(request, lines=lines), observer)
        if not step.calls:
            return Reply(text=step.text, usage=step.usage, stop=step.stop, model=step.model)
        spoken = Line(role=Role.ASSISTANT, text=step.text, tool_calls=step.calls)
        await observer.record([spoken], step.usage)
        results = await _run(step.calls, tools, context, observer)
        await observer.record(results, Usage())
        lines += (spoken, *results)
    raise TurnLimit("steps", max_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    stop: Stop
    model: str


async def _ask(model: ChatModel, request: ModelRequest, observer: Observer) -> _Step:
    """One call of the model, streamed to the observer."""
    words: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    words.append(text)
                    observer.said(text)
                case CallTools(asked):
                    calls = asked
                case Finished():
                    return _Step(
                        text="".join(words), calls=calls, usage=event.usage, stop=event.stop, model=event.model
                    )
    raise ModelUnavailable(f"{model.card.name}: the answer broke off")


async def _run(calls: Sequence[ToolCall], tools: Toolbox, context: ToolContext, observer: Observer) -> list[Line]:
    """All calls of a step at once; results in the order of the calls."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_one(call, tools, context, observer)) for call in calls]
    return [task.result() for task in tasks]


async def _run_one(call: ToolCall, tools: Toolbox, context: ToolContext, observer: Observer) -> Line:
    observer.tool(call.name, done=False)
    result = await tools.call(call, context)
    observer.tool(call.name, done=True)
    return Line(role=Role.TOOL, text=result.text, tool_call_id=call.id, tool_name=call.name)
