"""Request JSON in, an `Inbound` out. Pure: whatever arrives, it decodes or raises `Problem` 400."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hermes.adapters.api_server.place import Place, ResponseId
from hermes.adapters.base import Carried, Inbound, Origin
from hermes.adapters.http import Problem, member
from hermes.text import repair

OWNER_ID = "owner"
"""The API key is the owner's, so everybody who holds it is the owner."""

_SYSTEM = frozenset({"system", "developer"})
_ROLES = frozenset({"user", "assistant"}) | _SYSTEM
_TEXT_PARTS: Mapping[str, str] = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Kinds of content that are words, and the member that holds them."""
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a request, as text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The words of a request: the client's system text, the history it brought, and what is asked now."""

    text: str
    carried: tuple[Carried, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """`POST /v1/chat/completions`."""

    talk: Talk
    stream: bool
    include_usage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesRequest:
    """`POST /v1/responses`."""

    talk: Talk
    stream: bool
    store: bool
    previous: ResponseId | None
    instructions: str | None
    """As the client sent them, for the echo."""


def chat(body: Mapping[str, object]) -> ChatRequest:
    """A chat completion request; members that Hermes does not know are ignored."""
    _refuse_unsupported(body)
    options = member(body, "stream_options", dict, {})
    return ChatRequest(
        talk=_talk(_lines(member(body, "messages", list, []), "messages"), "messages"),
        stream=member(body, "stream", bool, False),
        include_usage=member(options, "include_usage", bool, False),
    )


def responses(body: Mapping[str, object]) -> ResponsesRequest:
    """A Responses API request; `input` is a string or a list of messages."""
    _refuse_unsupported(body)
    asked = body.get("input")
    items = [{"role": "user", "content": asked}] if isinstance(asked, str) else member(body, "input", list, [])
    instructions = member(body, "instructions", str, "")
    previous = member(body, "previous_response_id", str, "")
    return ResponsesRequest(
        talk=_talk([Line("system", repair(instructions)), *_lines(items, "input")], "input"),
        stream=member(body, "stream", bool, False),
        store=member(body, "store", bool, True),
        previous=ResponseId.parse(previous) if previous else None,
        instructions=instructions or None,
    )


def inbound(talk: Talk, where: Place, *, platform: str, at: float) -> Inbound:
    """The question as the gateway takes it. Where the store has the history, the client's copy is left out."""
    return Inbound(
        event_id=where.event_id,
        origin=Origin(platform=platform, chat_id=where.chat_id, user_id=OWNER_ID),
        text=talk.text,
        at=at,
        lifetime=where.lifetime,
        alone=True,
        continues=where.continues,
        carried=() if where.remembered else talk.carried,
        instructions=talk.instructions,
    )


def _refuse_unsupported(body: Mapping[str, object]) -> None:
    for name in ("tools", "functions"):
        if body.get(name):
            reason = "Hermes runs its own tools and never hands a call to the client"
            raise _bad(name, f"is not supported: {reason}. Leave it out", code="unsupported_parameter")
    if member(body, "n", int, 1) != 1:
        raise _bad("n", "must be 1: there is one answer a request", code="unsupported_parameter")


def _talk(lines: Sequence[Line], param: str) -> Talk:
    """The run of user lines at the end is the question; what comes before it is history."""
    spoken = [line for line in lines if line.role not in _SYSTEM]
    first = len(spoken)
    while first and spoken[first - 1].role == "user":
        first -= 1
    text = _BETWEEN.join(line.text for line in spoken[first:] if line.text.strip())
    if not text:
        raise _bad(param, "must end with a message of the user that has text", code="missing_user_message")
    return Talk(
        text=text,
        carried=tuple(Carried(role=line.role, text=line.text) for line in spoken[:first] if line.text),
        instructions=_BETWEEN.join(line.text for line in lines if line.role in _SYSTEM and line.text),
    )


def _lines(items: Sequence[object], param: str) -> list[Line]:
    return [_line(item, f"{param}[{index}]") for index, item in enumerate(items)]


def _line(item: object, param: str) -> Line:
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        raise _bad(param, "must be a message: an object with role and content", code="unsupported_item")
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        known = ", ".join(sorted(_ROLES))
        raise _bad(f"{param}.role", f"must be one of {known}; results of tools stay inside Hermes", code="invalid_role")
    return Line(role, _content(item.get("content"), f"{param}.content"))


def _content(content: object, param: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return repair(content)
    if not isinstance(content, list):
        raise _bad(param, "must be a string or an array of parts")
    return "\n".join(_part(part, f"{param}[{index}]") for index, part in enumerate(content))


def _part(part: object, param: str) -> str:
    if not isinstance(part, dict):
        raise _bad(param, "must be an object with a type")
    kind = part.get("type")
    holder = _TEXT_PARTS.get(kind) if isinstance(kind, str) else None
    if holder is None:
        reason = f"is of type {kind!r}: only text is supported here, no images, files or sound"
        raise _bad(param, reason, code="unsupported_content_type")
    text = part.get(holder)
    if not isinstance(text, str):
        raise _bad(f"{param}.{holder}", "must be a string")
    return repair(text)


def _bad(param: str, rule: str, *, code: str = "invalid_type") -> Problem:
    return Problem(400, f"`{param}` {rule}.", code=code, param=param)
