"""Copies of the store at intervals, where the configuration asks for them."""

import asyncio

import structlog

from hermes.clock import Clock
from hermes.gateway.config import Backups
from hermes.home import Home
from hermes.sessions.backup import create, rotate
from hermes.sessions.ports import Store

log = structlog.get_logger(__name__)

HOUR = 3_600.0
JOB = "backup"


class Copies:
    """Keeps to the configuration as it is now."""

    def __init__(self, home: Home, store: Store, clock: Clock) -> None:
        self._home = home
        self._store = store
        self._clock = clock

    async def keep(self, rules: Backups) -> None:
        """When it is time, make a verified copy and take the oldest beyond `keep` away. Raises StoreError."""
        now = self._clock.now()
        if not rules.every_hours or not await self._store.upkeep.claim(JOB, now=now, every=rules.every_hours * HOUR):
            return
        made = await asyncio.to_thread(create, self._home.database, self._home.backups, now=now)
        await self._store.upkeep.done(JOB, now=now)
        gone = await asyncio.to_thread(rotate, self._home.backups, rules.keep)
        log.info("backup.made", path=str(made.path), bytes=made.bytes, messages=made.messages, removed=len(gone))
