"""Working stand-ins for what tests cannot wait for. No mocks."""

import asyncio
import heapq
import itertools


class VirtualClock:
    """Time that only moves when a test says so, or when `run_until` finds everybody asleep."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self.slept: list[float] = []
        """Every sleep that was asked for, in order."""

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), waker))
        await waker

    async def advance(self, seconds: float) -> None:
        """Move on, waking sleepers in their order and letting each run before the next wakes."""
        end = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
            await settle()
        self._now = end
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let everything that can run without waiting for the outside run."""
    for _ in range(rounds):
        await asyncio.sleep(0)
