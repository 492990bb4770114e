"""Models behind OpenAI's chat completions API: OpenAI itself and every compatible endpoint."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from hermes.agent.models import completions
from hermes.agent.models.base import Card, ModelEvent, ModelRequest
from hermes.agent.models.refusals import Place, garbled
from hermes.agent.models.sdk import CONNECT_SECONDS, STALL_SECONDS, OnFirstUse, clean_key, translated

if TYPE_CHECKING:
    from openai import AsyncOpenAI

BASE_URL = "https://api.openai.com/v1"
CONTEXT_LENGTH = 128_000
"""Tokens, where neither the configuration nor `_WINDOWS` knows better."""

_WINDOWS = {
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
}
"""Tokens by the start of the name, from OpenAI's model pages."""


class OpenAIChat:
    """A chat completions model, asked through the official SDK. Retries are the caller's.

    `base_url` ends in `/v1` or what the endpoint uses instead; None is OpenAI itself. `api_key` None suits
    endpoints that want none: the environment's key is never sent to a stranger. `stall_seconds` bounds every
    silence of the connection. Raises ConfigError for a key that cannot be one.
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
        self._card = Card(provider="openai", name=name, context_length=context_length or _window(name))
        self._api_key = clean_key(api_key, model=name)
        self._base_url = base_url or BASE_URL
        # OpenAI retired `max_tokens`; most others know nothing else.
        self._cap = "max_tokens" if base_url else "max_completion_tokens"
        self._stall_seconds = stall_seconds
        self._place = Place.at(self._base_url, model=name, secret=self._api_key if api_key else "")
        self._client = OnFirstUse(self._connect)

    @property
    def card(self) -> Card:
        return self._card

    def _connect(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, Timeout

        return AsyncOpenAI(
            api_key=self._api_key,
            base_url=self._base_url,
            timeout=Timeout(self._stall_seconds, connect=CONNECT_SECONDS),
            max_retries=0,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel. An endpoint that closes without a word of an answer is unavailable."""
        client = await self._client.get()
        import openai

        answer = completions.Answer()
        with translated(openai, self._place, self._stall_seconds):
            chunks = await client.chat.completions.create(**self._body(request), stream=True)
            async with chunks:
                async for chunk in chunks:
                    for words in answer.add(chunk.to_dict()):
                        yield words
        if not answer.started:
            raise garbled(self._place)
        for event in answer.end():
            yield event

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._card.name,
            "messages": completions.messages(request),
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = completions.tools(request.tools)
        if request.max_output_tokens:
            body[self._cap] = request.max_output_tokens
        return body

    async def close(self) -> None:
        """Closes the connections. A later request opens new ones."""
        if client := await self._client.take():
            await client.close()


def _window(name: str) -> int:
    known = max((start for start in _WINDOWS if name.startswith(start)), key=len, default=None)
    return _WINDOWS[known] if known else CONTEXT_LENGTH
