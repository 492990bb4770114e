"""Where a request's question is asked: which chat, under which name, and for how long. Pure."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from hermes.adapters.base import Lifetime
from hermes.adapters.http import Problem
from hermes.text import repair

SESSION_ID = "X-Hermes-Session-Id"
SESSION_KEY = "X-Hermes-Session-Key"
IDEMPOTENCY_KEY = "Idempotency-Key"

LONGEST_NAME = 256
"""Characters of a session id or key; the longest that other gateways of this API take."""
LONGEST_IDEMPOTENCY_KEY = 255
_DIGEST = 32
"""Hex digits: 128 bits tell all keys and bodies apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a request's headers say about the conversation that it belongs to."""

    session_id: str | None = None
    session_key: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseId:
    """Where a response was said. It travels inside the response's id, so it outlives a restart."""

    session: str
    """Empty when the answer belonged to no session."""
    chat: str
    event: str

    def __str__(self) -> str:
        """The id, safe in a URL; `parse` reads it back."""
        raw = f"{self.session}\n{self.chat}\n{self.event}".encode()
        return "resp_" + base64.urlsafe_b64encode(raw).decode()

    @classmethod
    def parse(cls, text: str) -> "ResponseId":
        """Raises Problem 400 for an id that was not made here."""
        parts = _unpack(text)
        if len(parts) != 3 or not all(part.isprintable() for part in parts):
            raise Problem(
                400,
                f"{text!r} is not the id of a response from this server. "
                "Leave `previous_response_id` out to start anew.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        session, chat, event = parts
        return cls(session=session, chat=chat, event=event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a question is asked and under which name; `remembered`: the store, not the client, has the history."""

    chat_id: str
    event_id: str
    lifetime: Lifetime
    continues: str | None
    remembered: bool


def caller(headers: Mapping[str, str]) -> Caller:
    """The headers that steer a conversation. Raises Problem 400 for names that nobody could repeat."""
    return Caller(
        session_id=_name(headers, SESSION_ID),
        session_key=_name(headers, SESSION_KEY),
        idempotency_key=_idempotency_key(headers.get(IDEMPOTENCY_KEY)),
    )


def place(who: Caller, previous: ResponseId | None, *, fingerprint: str, fresh: str) -> Place:
    """Where the question goes. `fresh` is a name that nobody else has; `fingerprint` tells one body from another.

    A caller that names a conversation asks in its chat; all others get a chat of their own, which an idempotency
    key makes the same one for every repeat.
    """
    once = _digest(who.idempotency_key.encode()) if who.idempotency_key is not None else None
    held = _held(who, previous)
    return Place(
        chat_id=held or (f"once:{once}" if once else fresh),
        event_id=f"k:{once}:{fingerprint}" if once else f"r:{fresh}",
        lifetime=Lifetime.CHAT if once else Lifetime.CONNECTION,
        continues=who.session_id or (previous.session or None if previous else None),
        remembered=held is not None,
    )


def fingerprint(path: str, body: bytes) -> str:
    """The same for two requests with the same bytes: what a client sends again when it tries again."""
    return _digest(path.encode() + b"\n" + body)


def _held(who: Caller, previous: ResponseId | None) -> str | None:
    if who.session_key is not None:
        return f"key:{who.session_key}"
    if who.session_id is not None:
        return f"session:{who.session_id}"
    return previous.chat if previous else None


def _unpack(text: str) -> list[str]:
    try:
        return base64.urlsafe_b64decode(text.removeprefix("resp_")).decode().split("\n")
    except ValueError:
        return []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST]


def _name(headers: Mapping[str, str], header: str) -> str | None:
    value = repair(headers.get(header, "")).strip()
    if len(value) > LONGEST_NAME or not value.isprintable():
        raise _bad_header(header, f"must be at most {LONGEST_NAME} printable characters on one line")
    return value or None


def _idempotency_key(value: str | None) -> str | None:
    if value is None:
        return None
    if not (1 <= len(value) <= LONGEST_IDEMPOTENCY_KEY and value.isascii() and value.isprintable()):
        raise _bad_header(IDEMPOTENCY_KEY, f"must be 1 to {LONGEST_IDEMPOTENCY_KEY} printable ASCII characters")
    return value


def _bad_header(header: str, rule: str) -> Problem:
    return Problem(400, f"{header} {rule}.", code="invalid_header", param=header)
