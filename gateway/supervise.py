"""Keep one adapter alive without letting it take the others down."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog

from hermes.adapters.base import Pulse
from hermes.clock import Clock
from hermes.errors import AuthFailed, HermesError, PlatformError, RateLimited, Unreachable
from hermes.gateway.vital import Vital

log = structlog.get_logger(__name__)

LONGEST_WAIT = 300.0
"""Seconds between two tries at the most."""

PROMPT = 30.0
"""Seconds in which a supervisor does what it has to do at once, on a machine that is very busy."""

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
    last_sign: float | None = None
    """When the platform last gave a sign of life, where it gives any: a poll that was answered, a heartbeat."""
    last_send: float | None = None
    streak: int = 0
    """Failures in a row."""
    reason: str = ""


class Link:
    """The facts of one adapter, kept by who supervises it, hears from it and sends through it."""

    def __init__(self, name: str, clock: Clock, pulse: Pulse | None = None) -> None:
        self.name = name
        self.pulse = pulse
        self.vital = Vital(clock)
        """Its supervision's own progress."""
        self._clock = clock
        self._facts = LinkFacts(since=clock.now())

    @property
    def facts(self) -> LinkFacts:
        """How it is now."""
        if self.pulse is None:
            return self._facts
        last, facts = self.pulse.last, replace(self._facts, last_sign=self.pulse.last)
        if last is None or facts.state is not LinkState.CONNECTING or last < facts.since:
            return facts
        return replace(facts, state=LinkState.UP, reason="", streak=0)

    def heard(self) -> None:
        """An event came in: the link is up."""
        self._facts = replace(self._facts, last_inbound=self._clock.now())

    def sent(self) -> None:
        """A message went out."""
        self._facts = replace(self._facts, last_send=self._clock.now())

    def turn(self, state: LinkState, reason: str = "", streak: int = 0) -> None:
        """The link's state changes."""
        self._facts = replace(self._facts, state=state, since=self._clock.now(), reason=reason, streak=streak)

    def opened(self, streak: int) -> None:
        """The adapter listens. Where it has a pulse, the link is up from its first beat on."""
        if self.pulse is None:
            self.turn(LinkState.UP, streak=streak)
        else:
            self.pulse.rest()
            self.turn(LinkState.CONNECTING, self._facts.reason, streak)


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
        link.opened(attempt)
        link.vital.rest()
        try:
            await _until_lost(link, listen, clock)
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
            link.vital.expect(wait + PROMPT)
            await clock.sleep(wait)


async def _until_lost(link: Link, listen: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Listen until the link ends, or is as good as ended. Raises what `listen` does, or Unreachable."""
    try:
        async with asyncio.TaskGroup() as group:
            if link.pulse is not None:
                group.create_task(_feel(link, link.pulse, clock))
            await listen()
            raise Unreachable(link.name, "the link ended without a reason")
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    finally:
        link.vital.rest()


async def _feel(link: Link, pulse: Pulse, clock: Clock) -> None:
    """Raises Unreachable when the platform has been silent for too long: a half-open line gives no error."""
    while pulse.still_for() <= pulse.silence:
        wait = pulse.silence / 4
        link.vital.expect(wait + PROMPT)
        await clock.sleep(wait)
    link.vital.expect(PROMPT)  # whoever listens has to let go now
    raise Unreachable(link.name, f"no sign of life for {pulse.silence:g} s")


def _reason(error: Exception) -> str:
    """What health checks show. A bug's own text stays in the log: nobody has looked at what is in it."""
    if isinstance(error, PlatformError):
        return error.detail
    return str(error) if isinstance(error, HermesError) else f"internal: {type(error).__name__}"
