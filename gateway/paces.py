"""Every call to a chat goes through here: bounded, and never while the platform wants to be left alone there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hermes.clock import Clock
from hermes.errors import RateLimited, Unreachable

T = TypeVar("T")

Chat = tuple[str, str]
"""A platform's instance and the chat's id."""


class Paces:
    """The waits that platforms have asked for: what was asked of one call holds for all calls to that chat."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Chat, float] = {}

    async def call(self, chat: Chat, make: Callable[[], Awaitable[T]], *, within: float) -> T:
        """What `make` gives. Raises PlatformError: RateLimited without a call while a wait lasts, and Unreachable
        when there is no answer within that many seconds; then its fate is open.
        """
        platform, _ = chat
        left = self._left(chat)
        if left > 0:
            raise RateLimited(platform, retry_after=left)
        try:
            async with asyncio.timeout(within):
                return await make()
        except RateLimited as error:
            self._until[chat] = self._clock.monotonic() + error.retry_after
            raise
        except TimeoutError as error:
            raise Unreachable(platform, f"no answer within {within:g} s", maybe_done=True) from error

    def _left(self, chat: Chat) -> float:
        """Seconds of a wait; what is over is forgotten."""
        left = self._until.get(chat, 0.0) - self._clock.monotonic()
        if left <= 0:
            self._until.pop(chat, None)
        return left
