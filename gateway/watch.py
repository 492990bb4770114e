"""Whether this process is well: its writer moves, its loop wakes in time, its adapters say how they are."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

import structlog

from hermes.clock import Clock
from hermes.gateway.http.server import Readiness
from hermes.gateway.supervise import Link
from hermes.gateway.systemd import Notifier

log = structlog.get_logger(__name__)

STUCK_SECONDS = 120.0
"""A writer that made no progress on waiting work for this long is stuck: longer than any patience it has."""


class Watch:
    """The facts behind /readyz and the watchdog."""

    def __init__(self, links: Mapping[str, Link], *, stuck_for: Callable[[], float]) -> None:
        self._links = links
        self._stuck_for = stuck_for
        self.word = "starting"

    def readiness(self) -> Readiness:
        """What /readyz shows."""
        word = self.word if self.is_well() else "store stuck"
        facts = {name: asdict(link.facts) for name, link in self._links.items()}
        return Readiness(ready=word == "ready", word=word, adapters=facts)

    def is_well(self) -> bool:
        """Whether the writer makes progress. That the loop turns is proved by whoever asks."""
        return self._stuck_for() < STUCK_SECONDS

    async def feed(self, notifier: Notifier, clock: Clock) -> None:
        """Tell the service manager while all is well; silence makes it restart us. Ends at once where nobody asks."""
        if notifier.watchdog_seconds is None:
            return
        while True:
            if self.is_well():
                notifier.alive()
            else:
                log.error("watchdog.silent", stuck_for=self._stuck_for())
            await clock.sleep(notifier.watchdog_seconds / 2)
