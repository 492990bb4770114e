"""Whether this process is well: each task that must not stop says by when it will be heard of again."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from types import CoroutineType
from typing import Any

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
    """The facts behind /readyz and the watchdog. `vitals` give each task's name and how many seconds it is late."""

    def __init__(self, links: Mapping[str, Link], vitals: Mapping[str, Callable[[], float]]) -> None:
        self._links = links
        self._vitals = {**vitals, **{name: link.vital.late for name, link in links.items()}}
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
        known: list[str] = []
        while True:
            stuck = self.stuck()
            if stuck != known:
                _tell(stuck, fuse)
                known = stuck
            if not stuck:
                notifier.alive()
                fuse.light(FUSE_SECONDS)
            await clock.sleep(wait)


def _tell(stuck: Collection[str], fuse: Fuse) -> None:
    """Into the log: who is stuck from now on, and where. Threads are in the trace, tasks are not."""
    if stuck:
        log.error("watchdog.stuck", stuck=stuck, where=whereabouts(stuck))
        fuse.trace()
    else:
        log.warning("watchdog.well_again")


def whereabouts(names: Collection[str]) -> dict[str, str]:
    """Where the running loop's tasks of these names wait: one call inside the other."""
    return {task.get_name(): _calls(task) for task in asyncio.all_tasks() if task.get_name() in names}


def _calls(task: asyncio.Task[Any]) -> str:
    calls: list[str] = []
    inner: object = task.get_coro()
    while isinstance(inner, CoroutineType) and inner.cr_frame is not None:
        calls.append(f"{inner.cr_code.co_qualname}:{inner.cr_frame.f_lineno}")
        inner = inner.cr_await
    return " > ".join(calls)
