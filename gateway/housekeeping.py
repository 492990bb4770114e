"""What is done when nobody asks: old books closed, the search index mended, the routing mirror written."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import structlog

from hermes.clock import Clock
from hermes.errors import StoreError
from hermes.gateway.neighbours import Neighbours
from hermes.gateway.vital import Vital
from hermes.sessions.model import RouteRow
from hermes.sessions.ports import Store

log = structlog.get_logger(__name__)

ROUND_SECONDS = 30.0
LONGEST_ROUND = 300.0
"""Seconds; a round that clears a large store away takes them."""
PURGE_SECONDS = 3600.0
KEEP_SECONDS = 8 * 24 * 3600.0
"""A settled event is remembered longer than any platform redelivers (7 days), so that a repeat is known."""

README = "For people and scripts: where each chat's key leads. Hermes writes this file and never reads it."


class Housekeeper:
    """Goes round every half minute. `wake` wakes what waits; `mirror` is where sessions.json goes, None: nowhere."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        neighbours: Neighbours,
        wake: Callable[[], Awaitable[None]],
        mirror: Path | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._neighbours = neighbours
        self._wake = wake
        self._mirror = mirror
        self._written: Sequence[RouteRow] | None = None
        self._purged_at = 0.0
        self.vital = Vital(clock)

    async def run(self) -> None:
        """Until cancelled. A store or a disk in trouble is left alone until the next round."""
        while True:
            self.vital.expect(ROUND_SECONDS + LONGEST_ROUND)
            try:
                await self.round()
            except (StoreError, OSError) as error:
                log.warning("housekeeping.postponed", reason=str(error))
            await self._clock.sleep(ROUND_SECONDS)

    async def round(self) -> None:
        """One round."""
        await self._neighbours.bury(self._clock.now())
        await self._wake()
        await self._store.mend_index()
        await self._write_mirror()
        if self._clock.now() - self._purged_at >= PURGE_SECONDS:
            self._purged_at = self._clock.now()
            gone = await self._store.purge(before=self._clock.now() - KEEP_SECONDS)
            if gone:
                log.info("housekeeping.purged", rows=gone)

    async def _write_mirror(self) -> None:
        if self._mirror is None:
            return
        routes = await self._store.routes()
        if routes != self._written:
            await asyncio.to_thread(write_mirror, self._mirror, routes)
            self._written = routes


def write_mirror(path: Path, routes: Sequence[RouteRow]) -> None:
    """Write the routing index as JSON, whole or not at all, readable by the owner only."""
    facts: dict[str, object] = {"_README": README}
    for route in routes:
        facts[route.key] = {
            "session_id": route.session,
            "origin": json.loads(route.origin),
            "updated_at": route.updated_at,
        }
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_suffix(".tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(facts, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
