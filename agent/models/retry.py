"""Models that stand for other models: one that is patient, and one that has a second to ask."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from secrets import SystemRandom

from hermes.agent.models.base import Card, ChatModel, ModelEvent, ModelRequest
from hermes.clock import Clock
from hermes.errors import ModelUnavailable

ATTEMPTS = 4
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
"""Seconds. A provider that asks for more is given up at once: a person waits, and a fallback may be ready."""

_random = SystemRandom().random


class Patient:
    """Asks `model` again while it is unavailable for the moment, up to `attempts` times in all.

    Waits double from `first_wait` seconds, each shortened by up to half at random so that many conversations do
    not come back together; where the provider says how long to wait, that is waited instead. An answer that has
    begun is never asked for again: its words are already shown.
    """

    def __init__(
        self,
        model: ChatModel,
        clock: Clock,
        *,
        attempts: int = ATTEMPTS,
        first_wait: float = FIRST_WAIT,
        longest_wait: float = LONGEST_WAIT,
        chance: Callable[[], float] = _random,
    ) -> None:
        self._model = model
        self._clock = clock
        self._attempts = attempts
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._chance = chance

    @property
    def card(self) -> Card:
        return self._model.card

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel. Raises the last error when patience is over."""
        for attempt in range(1, self._attempts + 1):
            async with aclosing(self._model.stream(request)) as events:
                try:
                    first = await anext(events)
                except ModelUnavailable as error:
                    if (wait := self._wait(attempt, error)) is None:
                        raise
                else:
                    yield first
                    async for event in events:
                        yield event
                    return
            await self._clock.sleep(wait)

    def _wait(self, attempt: int, error: ModelUnavailable) -> float | None:
        """Seconds until the next attempt, None when there is to be none."""
        if attempt == self._attempts or not error.retryable:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self._longest_wait else None
        doubled: float = min(self._first_wait * 2 ** (attempt - 1), self._longest_wait)
        return doubled * (1 - self._chance() / 2)

    async def close(self) -> None:
        """Closes the model."""
        await self._model.close()


class WithFallback:
    """Asks `first`, and `second` when the first is unavailable before its first event. The card is the first's."""

    def __init__(self, first: ChatModel, second: ChatModel) -> None:
        self._first = first
        self._second = second

    @property
    def card(self) -> Card:
        return self._first.card

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel. When neither can be had, the error tells both reasons."""
        async with aclosing(self._first.stream(request)) as events:
            try:
                opening = await anext(events)
            except ModelUnavailable as error:
                reason = error
            else:
                yield opening
                async for event in events:
                    yield event
                return
        async with aclosing(self._second.stream(request)) as events:
            try:
                opening = await anext(events)
            except ModelUnavailable as error:
                both = f"{reason} The fallback model is no help either: {error}"
                raise ModelUnavailable(both, retryable=error.retryable, retry_after=error.retry_after) from error
            yield opening
            async for event in events:
                yield event

    async def close(self) -> None:
        """Closes both models, the second even if the first cannot."""
        try:
            await self._first.close()
        finally:
            await self._second.close()
