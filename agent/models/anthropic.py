"""Models behind Anthropic's messages API."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from hermes.agent.models import messages
from hermes.agent.models.base import Card, ModelEvent, ModelRequest
from hermes.agent.models.refusals import Place, garbled
from hermes.agent.models.sdk import CONNECT_SECONDS, STALL_SECONDS, OnFirstUse, clean_key, translated

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

BASE_URL = "https://api.anthropic.com"
CONTEXT_LENGTH = 200_000
"""Tokens, the window of every current Claude unless a longer one is switched on."""
MAX_OUTPUT_TOKENS = 16_000
"""The API wants a cap. Every current model allows this one, and it leaves room for thinking, which counts too."""


class AnthropicChat:
    """A Claude model, asked through the official SDK. Retries are the caller's.

    `base_url` is the address without `/v1`; None is Anthropic itself. `stall_seconds` bounds every silence of the
    connection. Raises ConfigError for a key that cannot be one.
    """

    def __init__(
        self,
        name: str,
        api_key: str | None,
        base_url: str | None = None,
        context_length: int | None = None,
        *,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._card = Card(provider="anthropic", name=name, context_length=context_length or CONTEXT_LENGTH)
        self._api_key = clean_key(api_key, model=name)
        self._base_url = base_url or BASE_URL
        self._stall_seconds = stall_seconds
        self._place = Place.at(self._base_url, model=name, secret=self._api_key if api_key else "")
        self._client = OnFirstUse(self._connect)

    @property
    def card(self) -> Card:
        return self._card

    def _connect(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic, Timeout

        return AsyncAnthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            timeout=Timeout(self._stall_seconds, connect=CONNECT_SECONDS),
            max_retries=0,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel. A stream that ends without its closing event is unavailable."""
        client = await self._client.get()
        import anthropic

        answer = messages.Answer()
        with translated(anthropic, self._place, self._stall_seconds):
            events = await client.messages.create(**self._body(request), stream=True)
            async with events:
                async for event in events:
                    for words in answer.add(event.to_dict()):
                        yield words
        if not answer.complete:
            raise garbled(self._place)
        for closing in answer.end():
            yield closing

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        cap = request.max_output_tokens or MAX_OUTPUT_TOKENS
        return {"model": self._card.name, "max_tokens": cap} | messages.prompt(request)

    async def close(self) -> None:
        """Closes the connections. A later request opens new ones."""
        if client := await self._client.take():
            await client.close()
