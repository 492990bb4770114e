"""Answers in the words of the two APIs: one JSON object when whole, server-sent events when streamed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from hermes.adapters.api_server.place import ResponseId
from hermes.adapters.base import Inbound, Outbound, Tokens
from hermes.adapters.http import Problem

Json = dict[str, object]

HEARTBEAT = b": still thinking\n\n"
"""A comment: clients skip it, proxies see that the connection lives."""


class Dialect(Protocol):
    """How one API writes one answer. A stream is opening, deltas, then closing or failed."""

    def whole(self, out: Outbound) -> Json:
        """The answer in one piece."""
        ...

    def opening(self, session: str | None, /) -> bytes:
        """What comes before the first words."""
        ...

    def delta(self, words: str) -> bytes:
        """Some more words."""
        ...

    def closing(self, out: Outbound) -> bytes:
        """What comes after the last words."""
        ...

    def failed(self, problem: Problem) -> bytes:
        """The stream ends without an answer."""
        ...


class ChatCompletion:
    """`chat.completion` and its chunks."""

    def __init__(self, question: Inbound, *, model: str, include_usage: bool) -> None:
        self._head: Json = {
            "id": "chatcmpl-" + question.event_id.replace(":", "-"),
            "created": int(question.at),
            "model": model,
        }
        self._include_usage = include_usage

    def whole(self, out: Outbound) -> Json:
        message = {"role": "assistant", "content": out.markdown, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _chat_usage(out.tokens)}

    def opening(self, _session: str | None, /) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def delta(self, words: str) -> bytes:
        return self._chunk({"content": words})

    def closing(self, out: Outbound) -> bytes:
        usage = self._frame([], _chat_usage(out.tokens)) if self._include_usage else b""
        return self._chunk({}, finish_reason="stop") + usage + b"data: [DONE]\n\n"

    def failed(self, problem: Problem) -> bytes:
        return _event(problem.body())

    def _chunk(self, delta: Mapping[str, object], finish_reason: str | None = None) -> bytes:
        return self._frame([{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}], None)

    def _frame(self, choices: Sequence[object], usage: Json | None) -> bytes:
        counted: Json = {"usage": usage} if self._include_usage else {}
        return _event({**self._head, "object": "chat.completion.chunk", "choices": choices, **counted})


class Response:
    """A `response` and its events. `keep` is given every finished one."""

    def __init__(
        self,
        question: Inbound,
        *,
        model: str,
        previous: str | None,
        instructions: str | None,
        store: bool,
        keep: Callable[[str, Json], None],
    ) -> None:
        self._question = question
        self._shape: Json = {
            "object": "response",
            "created_at": int(question.at),
            "model": model,
            "error": None,
            "incomplete_details": None,
            "instructions": instructions,
            "metadata": {},
            "parallel_tool_calls": False,
            "previous_response_id": previous,
            "store": store,
            "temperature": None,
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
        }
        self._keep = keep
        self._name(None)
        self._sequence = -1
        self._place: Json = {
            "item_id": "msg_" + question.event_id.replace(":", "-"),
            "output_index": 0,
            "content_index": 0,
        }

    def whole(self, out: Outbound) -> Json:
        self._name(out.session)
        return self._completed(out)

    def opening(self, session: str | None, /) -> bytes:
        self._name(session)
        begun = self._state("in_progress", [], None)
        return (
            self._event("response.created", {"response": begun})
            + self._event("response.in_progress", {"response": begun})
            + self._event("response.output_item.added", {"output_index": 0, "item": self._item("in_progress", [])})
            + self._event("response.content_part.added", {**self._place, "part": _part("")})
        )

    def delta(self, words: str) -> bytes:
        return self._event("response.output_text.delta", {**self._place, "delta": words, "logprobs": []})

    def closing(self, out: Outbound) -> bytes:
        part = _part(out.markdown)
        item = self._item("completed", [part])
        return (
            self._event("response.output_text.done", {**self._place, "text": out.markdown, "logprobs": []})
            + self._event("response.content_part.done", {**self._place, "part": part})
            + self._event("response.output_item.done", {"output_index": 0, "item": item})
            + self._event("response.completed", {"response": self._completed(out)})
        )

    def failed(self, problem: Problem) -> bytes:
        error = {"code": "server_error", "message": str(problem)}
        return self._event("response.failed", {"response": {**self._state("failed", [], None), "error": error}})

    def _name(self, session: str | None) -> None:
        """The id holds the session, so it is made when the session is known."""
        place = {"chat": self._question.origin.chat_id, "event": self._question.event_id}
        self._id = str(ResponseId(session=session or "", **place))

    def _completed(self, out: Outbound) -> Json:
        done = self._state("completed", [self._item("completed", [_part(out.markdown)])], _usage(out.tokens))
        self._keep(self._id, done)
        return done

    def _state(self, status: str, output: Sequence[Json], usage: Json | None) -> Json:
        return {"id": self._id, **self._shape, "status": status, "output": output, "usage": usage}

    def _item(self, status: str, content: Sequence[Json]) -> Json:
        return {
            "type": "message",
            "id": self._place["item_id"],
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _event(self, kind: str, body: Mapping[str, object]) -> bytes:
        self._sequence += 1
        return f"event: {kind}\n".encode() + _event({"type": kind, "sequence_number": self._sequence, **body})


def models(name: str) -> Json:
    """The list of models: the agent, and nothing else."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "hermes"}]}


def _event(body: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _chat_usage(tokens: Tokens) -> Json:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
    }


def _usage(tokens: Tokens) -> Json:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    }
