"""The words of the socket between page and server: JSON text frames, decoded and encoded. Pure."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hermes.adapters.base import Outbound, Progress
from hermes.errors import UserError
from hermes.text import repair

FRAME_BYTES = 256 * 1024
"""The largest frame that a page may send, in bytes of UTF-8."""
TEXT_CHARACTERS = 100_000
"""The longest message that a person may send at once."""

_NAME = re.compile(r"[A-Za-z0-9._:~-]{1,128}")


class BadFrame(UserError):
    """A frame that means nothing. `frame` is its id, where it has one, so that the page knows which."""

    def __init__(self, message: str, frame: str | None = None) -> None:
        super().__init__(message)
        self.frame = frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A person's message. `session` is a stored session that it continues, where the chat alone does not tell."""

    id: str
    chat: str
    session: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the turn that runs in `chat`."""

    id: str
    chat: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Is anybody there?"""


Frame = Say | Stop | Ping


def decode(data: str) -> Frame:
    """The frame that a page sent. Raises BadFrame with a sentence for people."""
    if len(data.encode("utf-8", "surrogatepass")) > FRAME_BYTES:
        raise BadFrame(f"The frame is larger than {FRAME_BYTES // 1024} KB. Send a shorter message.")
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadFrame("The frame is not JSON. Reload the page.") from error
    if not isinstance(frame, dict):
        raise BadFrame("A frame is a JSON object. Reload the page.")
    kind = frame.get("t")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise BadFrame("The frame has no known type `t`. Reload the page.", _id_of(frame))
    return read(frame)


def _say(frame: Mapping[str, object]) -> Say:
    session = frame.get("session")
    return Say(
        id=_name(frame, "id"),
        chat=_name(frame, "chat"),
        session=None if session is None else _name(frame, "session"),
        text=_text(frame),
    )


def _stop(frame: Mapping[str, object]) -> Stop:
    return Stop(id=_name(frame, "id"), chat=_name(frame, "chat"))


def _ping(_: Mapping[str, object]) -> Ping:
    return Ping()


_READERS: dict[str, Callable[[Mapping[str, object]], Frame]] = {"say": _say, "stop": _stop, "ping": _ping}


def _name(frame: Mapping[str, object], field: str) -> str:
    value = frame.get(field)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadFrame(f"The frame's `{field}` is not a name of at most 128 letters and digits.", _id_of(frame))
    return value


def _text(frame: Mapping[str, object]) -> str:
    text = frame.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadFrame("The message is empty.", _id_of(frame))
    if len(text) > TEXT_CHARACTERS:
        raise BadFrame(
            f"The message has {len(text):,} characters; at most {TEXT_CHARACTERS:,} can be sent at once.", _id_of(frame)
        )
    return repair(text)


def _id_of(frame: Mapping[str, object]) -> str | None:
    value = frame.get("id")
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def acknowledged(frame: str) -> str:
    """The message or stop is safe on disk."""
    return json.dumps({"t": "ack", "id": frame})


def failed(frame: str | None, message: str) -> str:
    """What `frame` asked for will not happen."""
    return json.dumps({"t": "error", "id": frame, "message": message})


def pong() -> str:
    """Somebody is there."""
    return json.dumps({"t": "pong"})


def said(say: Say) -> str:
    """Another of the owner's pages said this."""
    return json.dumps({"t": "said", "chat": say.chat, "id": say.id, "text": say.text})


def answered(out: Outbound) -> str:
    """The final words of an answer."""
    return json.dumps(
        {
            "t": "answer",
            "chat": out.origin.chat_id,
            "answers": out.answers,
            "key": out.key,
            "session": out.session,
            "markdown": out.markdown,
        }
    )


def glimpsed(glimpse: Progress) -> str:
    """A piece of an answer that is being written, or a tool at work."""
    frame = {"chat": glimpse.origin.chat_id, "answers": glimpse.answers, "session": glimpse.session}
    if glimpse.tool is not None:
        return json.dumps({"t": "tool", **frame, "name": glimpse.tool, "done": glimpse.done})
    return json.dumps({"t": "delta", **frame, "text": glimpse.text})
