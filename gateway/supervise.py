"""Keep one adapter alive without letting it take the others down."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog

from hermes.clock import Clock
from hermes.errors import AuthFailed, HermesError, PlatformError, RateLimited, Unreachable

log = structlog.get_logger(__name__)

LONGEST_WAIT = 300.0
"""Seconds between two tries at the most."""

STEADY = 60.0
"""A link that held this many seconds starts its back-off anew."""


class LinkState(StrEnum):
    """How an adapter is."""

    CONNECTING = "connecting"
    UP = "up"
    DOWN = "down"
    PARKED = "parked"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """What health checks show of an adapter. Times are seconds since the epoch."""

    state: LinkState = LinkState.CONNECTING
    since: float = 0.0
    last_inbound: float | None = None
    last_send: float | None = None
    streak: int = 0
    """Failures in a row."""
    reason: str = ""


class Link:
    """The facts of one adapter, kept by who supervises it, hears from it and sends through it."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self._clock = clock
        self.facts = LinkFacts(since=clock.now())

    def heard(self) -> None:
        """An event came in: the link is up."""
        self.facts = replace(self.facts, last_inbound=self._clock.now())

    def sent(self) -> None:
        """A message went out."""
        self.facts = replace(self.facts, last_send=self._clock.now())

    def turn(self, state: LinkState, reason: str = "", streak: int = 0) -> None:
        """The link's state changes."""
        self.facts = replace(self.facts, state=state, since=self._clock.now(), reason=reason, streak=streak)


def delay(error: Exception, attempt: int) -> float:
    """Seconds to wait before the next try: what the platform asks for, else 2, 4, 8 … 300."""
    if isinstance(error, RateLimited):
        return error.retry_after
    return min(LONGEST_WAIT, 2.0 ** min(attempt, 10))


async def supervise(link: Link, listen: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
    """Run `listen` until cancelled, or until the platform refuses the credentials: then the adapter is parked."""
    attempt = 0
    while True:
        started = clock.monotonic()
        link.turn(LinkState.UP, streak=attempt)
        try:
            await _until_lost(link, listen)
        except AuthFailed as error:
            link.turn(LinkState.PARKED, error.detail)
            log.warning("adapter.parked", adapter=link.name, reason=error.detail)
            return
        except Exception as error:  # one adapter's trouble, a bug included, must not end the others
            attempt = 1 if clock.monotonic() - started > STEADY else attempt + 1
            wait, reason = delay(error, attempt), _reason(error)
            link.turn(LinkState.DOWN, reason, attempt)
            bug = None if isinstance(error, HermesError) else error
            log.warning("adapter.down", adapter=link.name, reason=reason, retry_in=wait, exc_info=bug)
            await clock.sleep(wait)


async def _until_lost(link: Link, listen: Callable[[], Awaitable[None]]) -> None:
    await listen()
    raise Unreachable(link.name, "the link ended without a reason")


def _reason(error: Exception) -> str:
    """What health checks show. A bug's own text stays in the log: nobody has looked at what is in it."""
    if isinstance(error, PlatformError):
        return error.detail
    return str(error) if isinstance(error, HermesError) else f"internal: {type(error).__name__}"
