"""What model providers say on the wire, as pure values: answers, refusals, and complaints about bad requests.

The shapes and the words follow the vendors' public API references. Requests are judged as strictly as the vendors
judge them, so a test fails where the product would.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

from hermes.sessions.model import ToolCall, Usage


class End(StrEnum):
    """How a streamed answer ends once its words are sent."""

    WHOLE = "whole"
    CUT = "cut"
    """The connection breaks."""
    SILENCE = "silence"
    """Nothing more comes, and the connection stays open."""
    ERROR = "error"
    """An error event inside the stream."""


USAGE = Usage(input_tokens=20, output_tokens=5, cache_read_tokens=80)


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer of words and tool calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    pieces: int = 3
    """Deltas that the words, and each call's arguments, are sent in."""
    utf16: bool = False
    """Cut the words between UTF-16 units, as servers written in JavaScript do."""
    bytes_at_once: int | None = None
    """Size of a write to the socket; None writes each event whole."""
    end: End = End.WHOLE
    usage: Usage = USAGE
    stop: str | None = None
    """The provider's own word for why it stopped, where the usual one does not fit."""
    bare: bool = False
    """Leave out what compatible servers leave out: usage, finish_reason, the calls' ids and indices."""


class Trouble(StrEnum):
    """Why a provider refuses a request."""

    KEY = "key"
    FORBIDDEN = "forbidden"
    UNKNOWN_MODEL = "unknown model"
    CREDIT = "credit"
    BUSY = "busy"
    CRASH = "crash"
    OVERLOADED = "overloaded"
    OVERFLOW = "overflow"
    SHAPE = "shape"
    SETTING = "setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An error reply."""

    trouble: Trouble
    headers: Mapping[str, str] | None = None


Reply = Say | Refuse

_Error = tuple[int, str, str]
"""Status, code, message."""


class Dialect(Protocol):
    """A provider's protocol. Byte strings are whole server-sent events."""

    def key(self, headers: Mapping[str, str]) -> str:
        """The API key that a request carries, empty when there is none."""
        ...

    def complaint(self, body: Mapping[str, Any]) -> str | None:
        """What the provider would say against the request, None when it is well formed."""
        ...

    def refusal(self, trouble: Trouble, message: str | None = None) -> tuple[int, dict[str, Any]]:
        """Status and JSON body."""
        ...

    def words(self, say: Say, model: str) -> Iterator[bytes]:
        """The events that carry the answer."""
        ...

    def closing(self, say: Say, model: str) -> Iterator[bytes]:
        """The events that end it well."""
        ...

    def failing(self) -> bytes:
        """The event that ends it badly."""
        ...

    def whole(self, say: Say, model: str) -> dict[str, Any]:
        """The answer as one JSON body."""
        ...


def pieces(text: str, count: int) -> list[str]:
    """`text` in up to `count` parts, none empty."""
    size = max(-(-len(text) // count), 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


def utf16_pieces(text: str, count: int) -> list[str]:
    """The same, cut between UTF-16 units: a part may end in half a character."""
    units = text.encode("utf-16-le")
    size = 2 * max(-(-len(units) // 2 // count), 1)
    return [units[start : start + size].decode("utf-16-le", "surrogatepass") for start in range(0, len(units), size)]


def _said(say: Say) -> list[str]:
    return utf16_pieces(say.text, say.pieces) if say.utf16 else pieces(say.text, say.pieces)


def _json(value: object) -> bytes:
    """UTF-8 JSON; half a character can only be sent as an escape."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode()


class OpenAIDialect:
    """Chat completions."""

    _ERRORS: Mapping[Trouble, _Error] = {
        Trouble.KEY: (401, "invalid_api_key", "Incorrect API key provided: {key}."),
        Trouble.FORBIDDEN: (403, "unsupported_country_region_territory", "Country, region, or territory not supported"),
        Trouble.UNKNOWN_MODEL: (
            404,
            "model_not_found",
            "The model `m` does not exist or you do not have access to it.",
        ),
        Trouble.CREDIT: (429, "insufficient_quota", "You exceeded your current quota, please check your plan."),
        Trouble.BUSY: (429, "rate_limit_exceeded", "Rate limit reached for requests."),
        Trouble.CRASH: (500, "server_error", "The server had an error while processing your request."),
        Trouble.OVERLOADED: (503, "server_error", "The engine is currently overloaded, please try again later."),
        Trouble.OVERFLOW: (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
        Trouble.SHAPE: (
            400,
            "invalid_request_error",
            "An assistant message with 'tool_calls' must be followed by tool messages.",
        ),
        Trouble.SETTING: (400, "unsupported_value", "Unsupported value: 'temperature' does not support 3."),
    }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("Authorization", "").removeprefix("Bearer ")

    def complaint(self, body: Mapping[str, Any]) -> str | None:
        messages: Sequence[Mapping[str, Any]] = body.get("messages") or []
        if not messages:
            return "Invalid 'messages': empty array."
        waiting: set[str] = set()
        for number, message in enumerate([*messages, {"role": "end"}]):
            if message["role"] == "tool":
                if message.get("tool_call_id") not in waiting:
                    return f"messages[{number}] with role 'tool' must follow a message with its 'tool_calls'."
                waiting.discard(message["tool_call_id"])
                continue
            if waiting:
                return f"These tool_call_ids did not have response messages: {', '.join(sorted(waiting))}"
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
        return None

    def refusal(self, trouble: Trouble, message: str | None = None) -> tuple[int, dict[str, Any]]:
        status, code, usual = self._ERRORS[trouble]
        kind = "invalid_request_error" if status < 500 else "server_error"
        return status, {"error": {"message": message or usual, "type": kind, "param": None, "code": code}}

    def words(self, say: Say, model: str) -> Iterator[bytes]:
        yield self._chunk(model, {"role": "assistant", "content": ""})
        for piece in _said(say):
            yield self._chunk(model, {"content": piece})
        for index, call in enumerate(say.calls):
            for delta in self._call(index, call, say):
                yield self._chunk(model, {"tool_calls": [delta]})

    def _call(self, index: int, call: ToolCall, say: Say) -> Iterator[dict[str, Any]]:
        if say.bare:
            yield {"function": {"name": call.name, "arguments": call.arguments}}
            return
        yield {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        for piece in pieces(call.arguments, say.pieces):
            yield {"index": index, "function": {"arguments": piece}}

    def closing(self, say: Say, model: str) -> Iterator[bytes]:
        if not say.bare:
            yield self._chunk(model, {}, self._stop(say))
            yield self._event(self._frame(model) | {"choices": [], "usage": self._usage(say.usage)})
        yield b"data: [DONE]\n\n"

    def failing(self) -> bytes:
        return self._event(self.refusal(Trouble.CRASH)[1])

    def whole(self, say: Say, model: str) -> dict[str, Any]:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in say.calls
        ]
        message = {"role": "assistant", "content": say.text or None} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": self._stop(say)}
        return self._frame(model) | {"object": "chat.completion", "choices": [choice], "usage": self._usage(say.usage)}

    def _stop(self, say: Say) -> str:
        return say.stop or ("tool_calls" if say.calls else "stop")

    def _usage(self, usage: Usage) -> dict[str, Any]:
        prompt = usage.input_tokens + usage.cache_read_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": usage.output_tokens,
            "total_tokens": prompt + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        }

    def _frame(self, model: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_800_000_000, "model": model}

    def _chunk(self, model: str, delta: dict[str, Any], stop: str | None = None) -> bytes:
        return self._event(self._frame(model) | {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})

    def _event(self, value: object) -> bytes:
        return b"data: " + _json(value) + b"\n\n"


class AnthropicDialect:
    """Messages."""

    _ERRORS: Mapping[Trouble, _Error] = {
        Trouble.KEY: (401, "authentication_error", "invalid x-api-key: {key}"),
        Trouble.FORBIDDEN: (403, "permission_error", "Your API key does not have permission to use this resource."),
        Trouble.UNKNOWN_MODEL: (404, "not_found_error", "model: m"),
        Trouble.CREDIT: (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        Trouble.BUSY: (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
        Trouble.CRASH: (500, "api_error", "Internal server error"),
        Trouble.OVERLOADED: (529, "overloaded_error", "Overloaded"),
        Trouble.OVERFLOW: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        Trouble.SHAPE: (
            400,
            "invalid_request_error",
            "messages.1: `tool_use` ids were found without `tool_result` blocks.",
        ),
        Trouble.SETTING: (400, "invalid_request_error", "max_tokens: 900000 > 64000, which is the maximum allowed."),
    }

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key") or headers.get("Authorization", "").removeprefix("Bearer ")

    def complaint(self, body: Mapping[str, Any]) -> str | None:
        turns: Sequence[Mapping[str, Any]] = body.get("messages") or []
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        if not turns or turns[0]["role"] != "user":
            return 'messages: first message must use the "user" role'
        if turns[-1]["role"] != "user":
            return "This model does not support assistant message prefill. It must end with a user message."
        if any(before["role"] == after["role"] for before, after in pairwise(turns)):
            return 'messages: roles must alternate between "user" and "assistant"'
        marks = [block for block in _all_blocks(body) if "cache_control" in block]
        if len(marks) > 4:
            return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
        return self._blocks_complaint(turns)

    def _blocks_complaint(self, turns: Sequence[Mapping[str, Any]]) -> str | None:
        waiting: set[str] = set()
        for number, turn in enumerate([*turns, {"content": []}]):
            blocks: list[dict[str, Any]] = turn["content"]
            results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if results != waiting:
                return f"messages.{number}: tool_use ids and tool_result blocks differ: {sorted(results ^ waiting)}"
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                return f"messages.{number}: text content blocks must contain non-whitespace text"
            if results and [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
                return f"messages.{number}: tool_result blocks must come first in content"
            waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
            if any(not re.fullmatch(r"[a-zA-Z0-9_-]+", name) for name in waiting):
                return f"messages.{number}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        return None

    def refusal(self, trouble: Trouble, message: str | None = None) -> tuple[int, dict[str, Any]]:
        status, code, usual = self._ERRORS[trouble]
        return status, {"type": "error", "error": {"type": code, "message": message or usual}}

    def words(self, say: Say, model: str) -> Iterator[bytes]:
        usage = self._usage(say.usage) | {"output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
        yield self._event("message_start", message=message)
        yield self._event("ping")
        if say.text:
            yield from self._block(0, {"type": "text", "text": ""}, "text_delta", "text", _said(say))
        for index, call in enumerate(say.calls, 1):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            parts = pieces(call.arguments, say.pieces)
            yield from self._block(index, block, "input_json_delta", "partial_json", parts)

    def _block(self, index: int, block: dict[str, Any], kind: str, field: str, parts: list[str]) -> Iterator[bytes]:
        yield self._event("content_block_start", index=index, content_block=block)
        for part in parts:
            yield self._event("content_block_delta", index=index, delta={"type": kind, field: part})
        yield self._event("content_block_stop", index=index)

    def closing(self, say: Say, model: str) -> Iterator[bytes]:
        delta = {"stop_reason": self._stop(say), "stop_sequence": None}
        yield self._event("message_delta", delta=delta, usage=self._usage(say.usage))
        yield self._event("message_stop")

    def failing(self) -> bytes:
        return self._event("error", error=self.refusal(Trouble.OVERLOADED)[1]["error"])

    def whole(self, say: Say, model: str) -> dict[str, Any]:
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in say.calls
        ]
        content = ([{"type": "text", "text": say.text}] if say.text else []) + calls
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": self._stop(say),
            "stop_sequence": None,
            "usage": self._usage(say.usage),
        }

    def _stop(self, say: Say) -> str:
        return say.stop or ("tool_use" if say.calls else "end_turn")

    def _usage(self, usage: Usage) -> dict[str, Any]:
        return {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        return b"event: " + kind.encode() + b"\ndata: " + _json({"type": kind} | fields) + b"\n\n"


def _all_blocks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from body.get("system") or ()
    yield from body.get("tools") or ()
    for turn in body["messages"]:
        yield from turn["content"]
