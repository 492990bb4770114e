"""How long conversations are kept: what is idle is closed, and what ended long ago is deleted, where that is wanted."""

import structlog

from hermes.clock import Clock
from hermes.gateway.config import Sessions
from hermes.sessions.filters import Filter, Lineage, Selection
from hermes.sessions.model import OWNER
from hermes.sessions.ports import Store
from hermes.sessions.pruning import prune, stamps

log = structlog.get_logger(__name__)

DAY = 86_400.0
HOUR = 3_600.0
JOB = "auto_prune"


class Retention:
    """Keeps to the configuration as it is now. Off unless configured."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def keep(self, rules: Sessions) -> None:
        """Finish what was interrupted; then, at most once an interval over all processes, close and delete."""
        await self._store.upkeep.clear()
        wanted = rules.auto_prune or rules.close_idle_after_days
        every = rules.min_interval_hours * HOUR
        if wanted and await self._store.upkeep.claim(JOB, now=self._clock.now(), every=every):
            await self._close(rules)
            await self._delete(rules)
            await self._store.upkeep.done(JOB, now=self._clock.now())

    async def _close(self, rules: Sessions) -> None:
        if rules.close_idle_after_days:
            now = self._clock.now()
            closed = await self._store.upkeep.close_idle(before=now - rules.close_idle_after_days * DAY, now=now)
            log.info("retention.closed", conversations=closed)

    async def _delete(self, rules: Sessions) -> None:
        if not rules.auto_prune:
            return
        shortest = min((rules.retention_days, *rules.retention_days_by_source.values()))
        wanted = Filter(before=self._clock.now() - shortest * DAY, archived=False)
        found = Selection.of(await self._store.select(wanted, OWNER)).ended
        chosen = [one for one in found if self._is_over(one, rules)]
        done = await prune(self._store, chosen, await stamps(self._store, chosen), now=self._clock.now)
        log.info(
            "retention.pruned", conversations=done.gone, kept=len(done.kept), open_or_younger=len(found) - len(chosen)
        )
        if done.gone and rules.vacuum_after_prune:
            log.info("retention.shrunk", pages=await self._store.upkeep.shrink())

    def _is_over(self, one: Lineage, rules: Sessions) -> bool:
        days = rules.retention_days_by_source.get(one.source, rules.retention_days)
        return one.last_active < self._clock.now() - days * DAY
