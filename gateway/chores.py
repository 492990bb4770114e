"""Long work that nobody waits for, on a task of its own: housekeeping stays quick beside it."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from hermes.clock import Clock
from hermes.errors import StoreError

log = structlog.get_logger(__name__)

EVERY_SECONDS = 60.0


async def do_chores(chores: Sequence[Callable[[], Awaitable[None]]], clock: Clock) -> None:
    """Look after each once a minute, until cancelled; each knows by itself when it is due.

    The first look is a minute after the start, which it never delays. A store or a disk in trouble is left alone until
    the next.
    """
    while True:
        await clock.sleep(EVERY_SECONDS)
        for chore in chores:
            try:
                await chore()
            except (StoreError, OSError) as error:
                log.warning("chore.postponed", reason=str(error))
