"""What answers cost, by the prices that the configuration names."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from hermes.agent.models.base import Card, ChatModel, Finished, ModelEvent, ModelRequest
from hermes.sessions.model import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """The cost in USD. Tokens from a cache count like others: vendors ask less for them, so this is the most."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        return (prompt * self.input + usage.output_tokens * self.output) / MILLION


class Priced:
    """A model whose usage says what it cost, where the price of the one that answered is known."""

    def __init__(self, model: ChatModel, prices: Mapping[str, Price]) -> None:
        self._model = model
        self._prices = prices

    @property
    def card(self) -> Card:
        return self._model.card

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel."""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                yield self._priced(event) if isinstance(event, Finished) else event

    def _priced(self, event: Finished) -> Finished:
        price = self._prices.get(event.model) or self._prices.get(self.card.name)
        if price is None:
            return event
        return replace(event, usage=replace(event.usage, cost_usd=price.of(event.usage)))

    async def close(self) -> None:
        """Closes the model."""
        await self._model.close()
