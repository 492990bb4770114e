"""Anthropic's messages as values: a request out, streamed events in. Pure.

The API is strict where others are not: turns alternate, the first and the last are the user's, a text block holds
more than blanks, ids come from a small alphabet, a tool's input is an object. All of it is arranged here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from hermes.agent.models.base import CallTools, Finished, Line, ModelEvent, ModelRequest, Stop, TextDelta, ToolSpec
from hermes.agent.models.deltas import WholeCharacters
from hermes.sessions.model import Role, ToolCall, Usage
from hermes.text import repair

BREAKPOINTS = 4
"""Cache breakpoints that a request may have, from the API's documentation."""

OPENING = "(The conversation goes on from here.)"
"""Stands before a history that begins with the assistant."""
CLOSING = "(Go on exactly where you stopped. Repeat nothing.)"
"""Stands behind an answer that was begun and is to be continued: current models refuse to end on the assistant."""

STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "pause_turn": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSED,
}

Block = dict[str, Any]


def prompt(request: ModelRequest) -> dict[str, Any]:
    """`system`, `tools` and `messages` of the request, each where there is one, with cache breakpoints.

    They lie at the end of the system prompt, of the tools and of the last user turns: what a next request repeats.
    """
    parts: dict[str, Any] = {}
    if request.system.strip():
        parts["system"] = [_breakpoint(_text(request.system))]
    if request.tools:
        parts["tools"] = tools(request.tools)
        parts["tools"][-1] = _breakpoint(parts["tools"][-1])
    turns = messages(request.lines)
    for turn in [turn for turn in turns if turn["role"] == "user"][len(parts) - BREAKPOINTS :]:
        turn["content"][-1] = _breakpoint(turn["content"][-1])
    return parts | {"messages": turns}


def _breakpoint(block: Block) -> Block:
    return block | {"cache_control": {"type": "ephemeral"}}


def tools(specs: tuple[ToolSpec, ...]) -> list[Block]:
    """The request's `tools`, without breakpoints."""
    return [
        {"name": spec.name, "description": spec.description, "input_schema": dict(spec.parameters)} for spec in specs
    ]


def messages(lines: tuple[Line, ...]) -> list[dict[str, Any]]:
    """Turns that alternate: neighbouring lines of one side become one turn, tool results are the user's."""
    blocks = [(_side(line), block) for line in lines for block in _BLOCKS[line.role](line)]
    if blocks and blocks[0][0] == "assistant":
        blocks.insert(0, ("user", _text(OPENING)))
    if blocks and blocks[-1][0] == "assistant":
        blocks.append(("user", _text(CLOSING)))
    return [
        {"role": side, "content": [block for _, block in turn]} for side, turn in groupby(blocks, key=itemgetter(0))
    ]


def _side(line: Line) -> str:
    return "assistant" if line.role is Role.ASSISTANT else "user"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _user(line: Line) -> Iterator[Block]:
    if line.text.strip():
        yield _text(line.text)


def _assistant(line: Line) -> Iterator[Block]:
    if line.text.strip():
        yield _text(line.text)
    for call in line.tool_calls:
        yield {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": _input(call.arguments)}


def _tool(line: Line) -> Iterator[Block]:
    yield {"type": "tool_result", "tool_use_id": _id(line.tool_call_id or ""), "content": line.text}


_BLOCKS = {Role.USER: _user, Role.ASSISTANT: _assistant, Role.TOOL: _tool}


def _id(call_id: str) -> str:
    """`call_id` in the API's alphabet: the call may come from another provider."""
    return re.sub(r"[^\w-]", "_", call_id, flags=re.ASCII)


def _input(arguments: str) -> dict[str, Any]:
    """The arguments as an object; what is none is shown as it was written."""
    try:
        value = json.loads(arguments or "{}")
    except json.JSONDecodeError:
        return {"unparsed": arguments}
    return value if isinstance(value, dict) else {"unparsed": arguments}


@dataclass(slots=True)
class _Call:
    """A tool call whose pieces are still coming."""

    id: str
    name: str
    json: list[str] = field(default_factory=list)

    def whole(self) -> ToolCall:
        return ToolCall(id=self.id, name=self.name, arguments=repair("".join(self.json)) or "{}")


class Answer:
    """A streamed answer as it comes together."""

    def __init__(self) -> None:
        self.complete = False
        """The closing event has come."""
        self._text = WholeCharacters()
        self._calls: dict[int, _Call] = {}
        self._usage: dict[str, Any] = {}
        self._stop_reason = "end_turn"
        self._model = ""
        self._take = {
            "message_start": self._start,
            "content_block_start": self._open,
            "content_block_delta": self._delta,
            "message_delta": self._close,
            "message_stop": self._stop,
        }

    def add(self, event: Mapping[str, Any]) -> Iterator[TextDelta]:
        """Takes in one event and yields the words that it brings. Events of unknown types bring nothing."""
        take = self._take.get(event["type"])
        if take and (text := self._text.add(take(event))):
            yield TextDelta(text)

    def _start(self, event: Mapping[str, Any]) -> str:
        message = event["message"]
        self._model = message.get("model") or ""
        self._count(message.get("usage"))
        return ""

    def _open(self, event: Mapping[str, Any]) -> str:
        block = event["content_block"]
        if block["type"] == "tool_use":
            self._calls[event["index"]] = _Call(block["id"], block["name"])
        return block.get("text") or ""

    def _delta(self, event: Mapping[str, Any]) -> str:
        delta = event["delta"]
        if (piece := delta.get("partial_json")) and (call := self._calls.get(event["index"])):
            call.json.append(piece)
        return delta.get("text") or ""

    def _close(self, event: Mapping[str, Any]) -> str:
        self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
        self._count(event.get("usage"))
        return ""

    def _stop(self, _event: Mapping[str, Any]) -> str:
        self.complete = True
        return ""

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        # Counts are cumulative: a later event replaces what it repeats.
        self._usage |= {name: count for name, count in (usage or {}).items() if count is not None}

    def end(self) -> Iterator[ModelEvent]:
        """The events that close the answer: held-back text, the tool calls, and Finished."""
        if text := self._text.rest():
            yield TextDelta(text)
        if self._calls:
            yield CallTools(tuple(call.whole() for call in self._calls.values()))
        stop = STOPS.get(self._stop_reason, Stop.END)
        yield Finished(usage=_usage(self._usage), stop=stop, model=self._model)


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cache_read_tokens=usage.get("cache_read_input_tokens", 0),
        cache_write_tokens=usage.get("cache_creation_input_tokens", 0),
        reasoning_tokens=usage.get("output_tokens_details", {}).get("thinking_tokens", 0),
    )
