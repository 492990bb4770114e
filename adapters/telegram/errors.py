"""What the Bot API's refusals mean to the gateway. The library's own texts are not passed on: some hold the token."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from hermes.errors import AuthFailed, ChatMoved, PlatformError, RateLimited, Refusal, Rejected, Unreachable
from hermes.text import one_line

os.environ.setdefault("PTB_TIMEDELTA", "true")
# The library's way to take its next type for durations now: without it each flood wait comes with a warning.

REFUSALS = (
    ("too long", Refusal.TOO_LONG),
    ("chat not found", Refusal.GONE),
    ("message to edit not found", Refusal.GONE),
    ("message can't be edited", Refusal.GONE),
    ("message_id_invalid", Refusal.GONE),
    ("thread not found", Refusal.GONE),
    ("topic_deleted", Refusal.GONE),
    ("peer_id_invalid", Refusal.GONE),
    ("topic_closed", Refusal.FORBIDDEN),
    ("not enough rights", Refusal.FORBIDDEN),
    ("have no rights", Refusal.FORBIDDEN),
    ("need administrator rights", Refusal.FORBIDDEN),
    ("chat_write_forbidden", Refusal.FORBIDDEN),
)
"""Parts of the descriptions of a 400. What is none of these is about the message's form."""

UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""The request never left."""

DETAIL_CAP = 160

CONFLICT = (
    "another program receives this bot's messages. Stop it, or use a bot of its own here (each bot has one receiver)"
)
BAD_TOKEN = "the token was refused. Ask @BotFather for the current one, put it where the old one is, and restart"  # noqa: S105


@contextmanager
def translated(platform: str) -> Iterator[None]:
    """Raises PlatformError in place of the library's errors."""
    try:
        yield
    except TelegramError as error:
        raise meaning(platform, error) from error


def meaning(platform: str, error: TelegramError) -> PlatformError:
    """What the gateway should do about it."""
    match error:
        case RetryAfter():
            return RateLimited(platform, retry_after=_seconds(error.retry_after))
        case ChatMigrated():
            return ChatMoved(platform, str(error.new_chat_id))
        case InvalidToken():
            return AuthFailed(platform, BAD_TOKEN)
        case Conflict():
            return Unreachable(platform, CONFLICT)
        case Forbidden():
            return Rejected(platform, Refusal.FORBIDDEN, _said(error))
        case BadRequest():
            return Rejected(platform, _refusal(error.message), _said(error))
        case NetworkError():
            return _unreachable(platform, error)
    return Unreachable(platform, "the server's answer cannot be read", maybe_done=True)


def _refusal(description: str) -> Refusal:
    found = (refusal for part, refusal in REFUSALS if part in description.lower())
    return next(found, Refusal.BAD_FORMAT)


def _unreachable(platform: str, error: NetworkError) -> Unreachable:
    cause = error.__cause__
    if isinstance(error, TimedOut):
        return Unreachable(platform, "no answer in time", maybe_done=not isinstance(cause, UNSENT))
    if isinstance(cause, httpx.HTTPError):
        detail = f"the connection failed ({type(cause).__name__})"
        return Unreachable(platform, detail, maybe_done=not isinstance(cause, UNSENT))
    return Unreachable(platform, f"the server is in trouble: {_said(error)}", maybe_done=True)


def _said(error: TelegramError) -> str:
    """The server's own description, without the answer's body that the library adds when it could not read it."""
    return one_line(error.message.partition(". Parsing the server")[0], DETAIL_CAP)


def _seconds(wait: int | timedelta) -> float:
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
