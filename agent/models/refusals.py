"""What a provider's refusal means for the caller. Pure: one table for every model that is asked over HTTP.

Providers agree on status codes only roughly, so a row may also ask for words in the reply: the same 400 is an
overfull window, a broken history or a wrong setting.
"""

import math
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from hermes.errors import BadTranscript, ContextOverflow, ModelError, ModelUnavailable
from hermes.text import one_line

SAID_LENGTH = 300
"""Characters of a provider's own words that an error text quotes at most."""

_KEY_SHAPED = re.compile(r"\b(?:sk|pk|key|gsk|xai)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}|(?<=Bearer )\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Who was asked, as error texts name it. `secret` is the key that no text may show."""

    model: str
    host: str
    secret: str = ""

    @classmethod
    def at(cls, base_url: str, *, model: str, secret: str = "") -> "Place":
        """The place behind `base_url`; credentials and paths inside the address are left out."""
        parts = urlsplit(base_url)
        host = parts.hostname or "?"
        return cls(model=model, host=f"{host}:{parts.port}" if parts.port else host, secret=secret)

    def __str__(self) -> str:
        return f"{self.model} at {self.host}"

    def quote(self, words: str) -> str:
        """`words` fit for an error text: one line, short, without the key or anything that looks like one."""
        bare = words.replace(self.secret, "…") if self.secret else words
        return one_line(_KEY_SHAPED.sub("…", bare), SAID_LENGTH) or "no reason given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error reply as it came. `status` is 200 for an error inside a stream that had begun well."""

    status: int
    codes: str = ""
    """The machine-readable parts: code, type, parameter."""
    words: str = ""
    retry_after: float | None = None

    @classmethod
    def read(cls, status: int, body: object, headers: Mapping[str, str] | None = None) -> "Refusal":
        """Reads OpenAI's, Anthropic's and llama.cpp's bodies, with or without their outer `error`, and plain text."""
        inner = body.get("error", body) if isinstance(body, Mapping) else body
        wait = retry_after(headers or {})
        if not isinstance(inner, Mapping):
            return cls(status=status, words=str(inner or ""), retry_after=wait)
        codes = " ".join(str(inner[name]) for name in ("type", "code", "param") if inner.get(name))
        return cls(status=status, codes=codes, words=str(inner.get("message") or ""), retry_after=wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait, None when it does not say.

    A date is measured against the reply's own `date`, so a wrong clock on this machine does not matter.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    if (seconds := _number(asked)) is not None:
        return seconds
    try:
        wait = parsedate_to_datetime(asked or "") - parsedate_to_datetime(headers.get("date") or "")
    except (TypeError, ValueError):
        return None
    return max(wait, timedelta(0)).total_seconds()


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


_Make = Callable[[str, Refusal], ModelError]


def _overflow(text: str, _refusal: Refusal) -> ModelError:
    return ContextOverflow(text)


def _transcript(text: str, _refusal: Refusal) -> ModelError:
    return BadTranscript(text)


def _for_good(text: str, _refusal: Refusal) -> ModelError:
    return ModelUnavailable(text, retryable=False)


def _for_now(text: str, refusal: Refusal) -> ModelError:
    return ModelUnavailable(text, retry_after=refusal.retry_after)


_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large|request too large"
    r"|prompt (is )?too long|input is too long|reduce the length of the messages"
    r"|maximum (context|prompt) length|exceeds? (the )?(available |model's )?context"
    r"|context (window|length|size) (is )?exceed|input token count .* exceeds the maximum",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"invalid_api_key|authentication_error|incorrect api key|api key not valid|invalid x-api-key", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance|billing_hard_limit|billing_error", re.IGNORECASE)
_BAD_SHAPE = re.compile(
    r"\bmessages?\b|\broles?\b|tool_call|tool_use|tool_result|function call turn|must alternate", re.IGNORECASE
)
_ANYTHING = re.compile("")

_CHECK_KEY = "{place} refuses the API key. Check `api_key` of this model in config.yaml."
_CHECK_ACCOUNT = "{place} wants to be paid: {said}. Check the account behind `api_key`."
_CHECK_RIGHTS = "{place} does not allow this: {said}. Check what `api_key` may use, and `name` and `base_url`."

_ANY_STATUS = range(1000)
_WAITING_HELPS = frozenset({408, 409, 425, 429})

_TABLE: tuple[tuple[Container[int], re.Pattern[str], _Make, str], ...] = (
    (_ANY_STATUS, _TOO_LONG, _overflow, "The conversation is longer than the window of {place}: {said}"),
    ({413}, _ANYTHING, _overflow, "The conversation is larger than {place} accepts: {said}"),
    (_ANY_STATUS, _BAD_KEY, _for_good, _CHECK_KEY),
    ({401}, _ANYTHING, _for_good, _CHECK_KEY),
    ({402}, _ANYTHING, _for_good, _CHECK_ACCOUNT),
    (_ANY_STATUS, _NO_CREDIT, _for_good, _CHECK_ACCOUNT),
    ({403}, _ANYTHING, _for_good, _CHECK_RIGHTS),
    ({404}, _ANYTHING, _for_good, "{place} is not found: {said}. Check `name` and `base_url` of this model."),
    ({400, 422}, _BAD_SHAPE, _transcript, "{place} refuses the shape of the conversation: {said}"),
    (_WAITING_HELPS, _ANYTHING, _for_now, "{place} is busy (status {status}): {said}"),
    (range(400, 500), _ANYTHING, _for_good, "{place} refuses the request (status {status}): {said}"),
    (_ANY_STATUS, _ANYTHING, _for_now, "{place} failed (status {status}): {said}"),
)
"""First row that fits wins: statuses, words in the reply, the error to raise, its text."""


def verdict(refusal: Refusal, place: Place) -> ModelError:
    """The error to raise for `refusal`; its text holds no secret."""
    reply = f"{refusal.codes} {refusal.words}"
    _, _, make, text = next(row for row in _TABLE if refusal.status in row[0] and row[1].search(reply))
    said = place.quote(refusal.words or refusal.codes).rstrip(".")
    return make(text.format(place=place, status=refusal.status, said=said), refusal)


def unreachable(place: Place) -> ModelUnavailable:
    """No connection, or one that was lost before the answer was complete."""
    return ModelUnavailable(f"The connection to {place} failed. Check the network, and `base_url` of this model.")


def silent(place: Place, seconds: float) -> ModelUnavailable:
    """Nothing came for `seconds`, in the middle of an answer or before it."""
    return ModelUnavailable(f"{place} said nothing for {seconds:g} s and was given up.")


def garbled(place: Place) -> ModelUnavailable:
    """The reply is not what the provider's protocol promises."""
    return ModelUnavailable(f"{place} sent an answer that is incomplete or cannot be read.")
