"""What a language model is to the agent: a request in, a stream of events out."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from hermes.sessions.model import Role, ToolCall, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message of a request."""

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """For a tool's result: the call that it belongs to."""
    tool_name: str | None = None
    """For a tool's result: the tool that gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything that a model is shown. `lines` never start with a tool result, and every call has its result."""

    system: str
    lines: tuple[Line, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None


class Stop(StrEnum):
    """Why a model ended its answer."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Words that join the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTools:
    """The model asks for these tools; at most once a stream, after its text."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The last event of every stream. `usage` is the provider's own count where it gives one."""

    usage: Usage
    stop: Stop
    model: str = ""
    """The model that really answered: a fallback may have."""


ModelEvent = TextDelta | CallTools | Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known about a model before it is asked."""

    provider: str
    name: str
    context_length: int
    """Tokens of the whole window, answer included."""
    tools: bool = True
    """It can call tools."""
    writes_summaries: bool = True
    """Titles and summaries may be asked of it; otherwise they are made without a model."""


class ChatModel(Protocol):
    """A model that answers.

    `stream` yields any number of TextDelta, at most one CallTools, and ends with exactly one Finished. It raises
    ModelUnavailable, ContextOverflow or BadTranscript, with nothing of the vendor's in the type and no secret in
    the text. Cancelling the iteration stops the work on the far side.
    """

    @property
    def card(self) -> Card: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]: ...

    async def close(self) -> None:
        """Give back connections and child processes."""
        ...
