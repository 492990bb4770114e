"""Whether this process is well: each task that must not stop says by when it will be heard of again."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

import structlog

from hermes.clock import Clock
from hermes.gateway.fuse import Fuse
from hermes.gateway.http.server import Readiness
from hermes.gateway.supervise import Link
from hermes.gateway.systemd import Notifier

log = structlog.get_logger(__name__)

LATE_SECONDS = 60.0
"""So long past its own word a task is stuck. One that was only held up is well again with its next word."""

ROUND_SECONDS = 15.0
"""How often all are asked, unless the service manager wants to hear from us more often."""

FUSE_SECONDS = 180.0
"""Without a round in which all are well for so long, the process ends: the loop is frozen, or a task is."""


class Watch:
    """The facts behind /readyz and the watchdog. `vitals` give the seconds that each task is late."""

    def __init__(self, links: Mapping[str, Link], vitals: Mapping[str, Callable[[], float]]) -> None:
        self._links = links
        self._vitals = {**vitals, **{f"adapter {name}": link.vital.late for name, link in links.items()}}
        self.word = "starting"

    def add(self, name: str, late: Callable[[], float]) -> None:
        """One more task that must not stop."""
        self._vitals[name] = late

    def readiness(self) -> Readiness:
        """What /readyz shows."""
        stuck = self.stuck()
        word = f"stuck: {', '.join(stuck)}" if stuck else self.word
        facts = {name: asdict(link.facts) for name, link in self._links.items()}
        return Readiness(ready=word == "ready", word=word, adapters=facts)

    def stuck(self) -> list[str]:
        """The tasks that make no progress now. That the loop turns is proved by whoever asks."""
        return [name for name, late in self._vitals.items() if late() > LATE_SECONDS]

    async def feed(self, notifier: Notifier, fuse: Fuse, clock: Clock) -> None:
        """Until cancelled: while all is well, say so to the service manager and renew the fuse.

        Silence makes the manager restart us; where there is none, the fuse ends us, so that whoever keeps the process
        (a container's engine) starts it anew.
        """
        wait = min(ROUND_SECONDS, (notifier.watchdog_seconds or 2 * ROUND_SECONDS) / 2)
        while True:
            stuck = self.stuck()
            if stuck:
                log.error("watchdog.silent", stuck=stuck)
            else:
                notifier.alive()
                fuse.light(FUSE_SECONDS)
            await clock.sleep(wait)
