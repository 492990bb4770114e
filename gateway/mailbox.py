"""One task a live conversation key: in order inside, parallel across, gone when idle.

The inbox table is the queue; a mailbox is only the wake-up. Losing every mailbox loses nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from hermes.sessions.model import SessionKey

Work = Callable[[SessionKey], Awaitable[bool]]
"""Do the next thing of a key; False when there was nothing to do."""


class Mailboxes:
    """Wakes keys. `work` runs for each key at most once at a time, for `bound` keys at once."""

    def __init__(self, work: Work, *, tasks: asyncio.TaskGroup, bound: int) -> None:
        self._work = work
        self._tasks = tasks
        self._slots = asyncio.Semaphore(bound)
        self._again: dict[SessionKey, bool] = {}
        self._open = True
        self._idle = asyncio.Event()
        self._idle.set()

    def wake(self, key: SessionKey) -> None:
        """Something may have come for `key`. Never waits."""
        if not self._open:
            return
        if key in self._again:
            self._again[key] = True
            return
        self._again[key] = False
        self._idle.clear()
        self._tasks.create_task(self._live(key), name=f"mailbox:{key}")

    def close(self) -> None:
        """Wake nobody any more; what runs may finish."""
        self._open = False

    def is_live(self, key: SessionKey) -> bool:
        """Whether something of `key` is being worked on."""
        return key in self._again

    def __len__(self) -> int:
        """Mailboxes with work."""
        return len(self._again)

    async def idle(self) -> None:
        """Wait until no mailbox works."""
        await self._idle.wait()

    async def _live(self, key: SessionKey) -> None:
        try:
            async with self._slots:
                while self._open and await self._next(key):
                    pass
        finally:
            del self._again[key]
            if not self._again:
                self._idle.set()

    async def _next(self, key: SessionKey) -> bool:
        """One round; a wake-up that comes during it calls for another."""
        self._again[key] = False
        worked = await self._work(key)
        return worked or self._again[key]
