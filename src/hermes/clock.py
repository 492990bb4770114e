"""Time as a dependency, so that no test ever sleeps."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the product asks of time. Seconds throughout, as float."""

    def now(self) -> float:
        """Seconds since the epoch: what is stored and shown. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: what time-outs and renewals are measured by."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Give others the loop for `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
