"""A model provider on the loopback interface: OpenAI chat completions and Anthropic messages on one port.

Replies are queued; with an empty queue `fallback` answers, which echoes the user. Every request is judged as the
vendor would judge it and kept in `journal`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from worlds.llm_dialects import AnthropicDialect, Dialect, End, OpenAIDialect, Refuse, Reply, Say, Trouble

__all__ = ["Asked", "End", "LlmWorld", "Refuse", "Say", "Trouble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def last_user_text(self) -> str:
        """The words of the last user message; tool results are no words."""
        texts = (_text(message["content"]) for message in reversed(self.body["messages"]) if message["role"] == "user")
        return next(filter(None, texts), "")


Hook = Callable[[Asked], Awaitable[None]]


async def _nothing(_asked: Asked) -> None:
    pass


def echo(asked: Asked) -> Reply:
    """Says what the user said."""
    return Say(text=f"You said: {asked.last_user_text}")


class LlmWorld:
    """A running provider. Use as `async with LlmWorld() as world`.

    `before` is awaited when a request has come and nothing is answered yet, `midway` when half of a streamed answer
    is sent, `after` when all of it is: the places where a harness kills the one who asks.
    """

    def __init__(self, *, key: str | None = None) -> None:
        self.key = key
        """The only key that is accepted; None accepts any, but one must be sent."""
        self.journal: list[Asked] = []
        self.fallback: Callable[[Asked], Reply] = echo
        self.before: Hook = _nothing
        self.midway: Hook = _nothing
        self.after: Hook = _nothing
        self.hung_up = asyncio.Event()
        """Set when somebody leaves before their answer is complete."""
        self._replies: deque[Reply] = deque()
        self._runner: web.AppRunner | None = None
        self._address = ""

    def will(self, *replies: Reply) -> None:
        """Queues replies, one for each request to come."""
        self._replies.extend(replies)

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self._address}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic clients."""
        return self._address

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._handler(OpenAIDialect()))
        app.router.add_post("/v1/messages", self._handler(AnthropicDialect()))
        app.router.add_get("/v1/models", self._models)
        # Without cancellation a handler would not notice that its client has left.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Closes the port; who asks now finds nobody."""
        assert self._runner
        await self._runner.cleanup()

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "world"}]})

    def _handler(self, dialect: Dialect) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            asked = Asked(path=request.path, headers=request.headers.copy(), body=await request.json())
            self.journal.append(asked)
            try:
                await self.before(asked)
                response = await self._answer(request, asked, dialect)
            except (asyncio.CancelledError, ConnectionError):
                self.hung_up.set()
                raise
            await self.after(asked)
            return response

        return handle

    async def _answer(self, request: web.Request, asked: Asked, dialect: Dialect) -> web.StreamResponse:
        key = dialect.key(asked.headers)
        if not key or self.key not in (None, key):
            return _refused(dialect, Refuse(trouble=Trouble.KEY), key)
        if complaint := dialect.complaint(asked.body):
            status, body = dialect.refusal(Trouble.SHAPE, complaint)
            return web.json_response(body, status=status)
        reply = self._replies.popleft() if self._replies else self.fallback(asked)
        if isinstance(reply, Refuse):
            return _refused(dialect, reply, key)
        if not asked.body.get("stream"):
            return web.json_response(dialect.whole(reply, asked.body["model"]))
        return await self._stream(request, asked, reply, dialect)

    async def _stream(self, request: web.Request, asked: Asked, say: Say, dialect: Dialect) -> web.StreamResponse:
        model = asked.body["model"]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = list(dialect.words(say, model))
        half = (len(events) + 1) // 2
        await _write(response, events[:half], say.bytes_at_once)
        await self.midway(asked)
        await _write(response, events[half:], say.bytes_at_once)
        match say.end:
            case End.WHOLE:
                await _write(response, dialect.closing(say, model), say.bytes_at_once)
            case End.ERROR:
                await response.write(dialect.failing())
            case End.SILENCE:
                await asyncio.Event().wait()
            case End.CUT:
                assert request.transport
                request.transport.close()
        return response


async def _write(response: web.StreamResponse, events: Iterable[bytes], at_once: int | None) -> None:
    for event in events:
        step = at_once or len(event)
        for start in range(0, len(event), step):
            await response.write(event[start : start + step])


def _refused(dialect: Dialect, refuse: Refuse, key: str) -> web.Response:
    """Providers do quote the key they were given."""
    status, body = dialect.refusal(refuse.trouble)
    body["error"]["message"] = body["error"]["message"].replace("{key}", key)
    return web.json_response(body, status=status, headers=refuse.headers)


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "\n".join(block["text"] for block in content if block["type"] == "text")
    return content or ""
