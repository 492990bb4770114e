"""OpenAI's chat completions as values: a request out, streamed chunks in. Pure.

Many servers speak this format, each a little differently, so chunks are read as plain JSON and nearly everything
may be missing. Token counts: `Usage.input_tokens` leaves out what came from the provider's cache, so a prompt's
size is input + cache_read + cache_write; reasoning is part of the output.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes import ids
from hermes.agent.models.base import CallTools, Finished, Line, ModelEvent, ModelRequest, Stop, TextDelta, ToolSpec
from hermes.agent.models.deltas import WholeCharacters
from hermes.sessions.model import Role, ToolCall, Usage
from hermes.text import repair

STOPS = {
    "stop": Stop.END,
    "length": Stop.LENGTH,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "content_filter": Stop.REFUSED,
}


def messages(request: ModelRequest) -> list[dict[str, Any]]:
    """The request's `messages`: the system prompt, when there is one, and the lines."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, *map(_message, request.lines)]


def _message(line: Line) -> dict[str, Any]:
    message: dict[str, Any] = {"role": line.role.value, "content": line.text}
    if line.role is Role.TOOL:
        message["tool_call_id"] = line.tool_call_id
    if line.tool_calls:
        # Strict servers want null, not an empty string, beside calls.
        message["content"] = line.text or None
        message["tool_calls"] = [_call(call) for call in line.tool_calls]
    return message


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def tools(specs: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """The request's `tools`."""
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)},
        }
        for spec in specs
    ]


@dataclass(slots=True)
class _Call:
    """A tool call whose pieces are still coming."""

    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> ToolCall:
        return ToolCall(
            id=self.id or ids.fresh("call"), name=self.name, arguments=repair("".join(self.arguments)) or "{}"
        )


class Answer:
    """A streamed answer as it comes together."""

    def __init__(self) -> None:
        self.started = False
        """A choice has come: there is an answer, even if it is empty."""
        self.finish_reason: str | None = None
        self._text = WholeCharacters()
        self._calls: list[_Call] = []
        self._usage = Usage()
        self._model = ""

    def add(self, chunk: Mapping[str, Any]) -> Iterator[TextDelta]:
        """Takes in one chunk and yields the words that it brings."""
        self._model = chunk.get("model") or self._model
        if usage := chunk.get("usage"):
            self._usage = _usage(usage)
        for choice in (chunk.get("choices") or ())[:1]:
            self.started = True
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            yield from self._delta(choice.get("delta") or {})

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[TextDelta]:
        for piece in delta.get("tool_calls") or ():
            self._piece(piece)
        if text := self._text.add(delta.get("content") or delta.get("refusal") or ""):
            yield TextDelta(text)

    def _piece(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function") or {}
        call = self._call_of(piece)
        call.id = call.id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        call.arguments.append(function.get("arguments") or "")

    def _call_of(self, piece: Mapping[str, Any]) -> _Call:
        """The call that a piece continues. Some servers send no index, or the same one for every call."""
        index, call_id = piece.get("index"), piece.get("id")
        known = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        if known and (not call_id or not known.id or call_id == known.id):
            return known
        self._calls.append(fresh := _Call(index))
        return fresh

    def end(self) -> Iterator[ModelEvent]:
        """The events that close the answer: held-back text, the tool calls, and Finished."""
        if text := self._text.rest():
            yield TextDelta(text)
        if self._calls:
            yield CallTools(tuple(call.whole() for call in self._calls))
        yield Finished(usage=self._usage, stop=self._stop(), model=self._model)

    def _stop(self) -> Stop:
        stop = STOPS.get(self.finish_reason or "stop", Stop.END)
        return Stop.TOOLS if self._calls and stop is Stop.END else stop


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(
        input_tokens=max(prompt - cached, 0),
        output_tokens=completion,
        cache_read_tokens=cached,
        reasoning_tokens=(usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
    )
