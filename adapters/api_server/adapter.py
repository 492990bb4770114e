"""The HTTP side: requests become questions, answers go back to the requests that wait for them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from hermes.adapters.api_server import decode, dialects
from hermes.adapters.api_server.dialects import Dialect, Json
from hermes.adapters.api_server.place import (
    IDEMPOTENCY_KEY,
    SESSION_ID,
    SESSION_KEY,
    Place,
    ResponseId,
    caller,
    fingerprint,
    place,
)
from hermes.adapters.api_server.waiting import LONGEST_ANSWER, Waiter, WaitingRoom
from hermes.adapters.base import (
    Accepted,
    Emit,
    Guard,
    Hangup,
    Inbound,
    Lifetime,
    Limits,
    Outbound,
    PlatformAdapter,
    Progress,
    Receipt,
    Route,
    Standing,
    Surroundings,
)
from hermes.adapters.http import Problem, read_json
from hermes.errors import Refusal, Rejected
from hermes.ids import fresh

V = TypeVar("V")

STORED_RESPONSES = 1_000
"""Finished responses that `GET /v1/responses/{id}` can show; they live as long as the process."""
KNOWN_KEYS = 10_000
"""Idempotency keys whose bodies are compared with repeats."""

_STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class ApiServerConfig(BaseModel):
    """The block `platforms.api_server`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: SecretStr | None = None
    """The API key. None: the secret in `$HERMES_HOME/web-token`."""
    request_timeout_seconds: float = Field(default=1800.0, gt=0)
    """The longest that a request waits for its answer."""
    heartbeat_seconds: float = Field(default=15.0, gt=0)
    """A quiet stream shows a sign of life this often."""


@asynccontextmanager
async def open_api_server(config: ApiServerConfig, around: Surroundings) -> AsyncIterator[PlatformAdapter]:
    """The adapter; it holds nothing that needs closing."""
    yield ApiServer(config, around)


class ApiServer:
    """An OpenAI-compatible API as a chat platform: a request is a question, its response the answer."""

    limits = Limits(text=LONGEST_ANSWER, idempotent_sends=True)

    def __init__(self, config: ApiServerConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self._emit: Emit | None = None
        self._room = WaitingRoom()
        self._responses: dict[str, Json] = {}
        self._keys: dict[str, tuple[str, str]] = {}

    async def listen(self, emit: Emit) -> None:
        """Take questions until cancelled. Requests that wait already are still answered afterwards."""
        self._emit = emit
        try:
            await asyncio.Event().wait()
        finally:
            self._emit = None

    async def send(self, out: Outbound) -> Receipt:
        """Hand the answer to its request. Raises Rejected(GONE) when nobody waits for it any more."""
        waiters = self._room.of(out.origin.chat_id, out.answers)
        if not waiters:
            raise Rejected(self._around.instance, Refusal.GONE, "no request waits for this answer")
        for waiter in waiters:
            waiter.finish(out)
        return Receipt((out.key,))

    def progress(self, glimpse: Progress) -> None:
        """Words for the streams that wait for this answer."""
        for waiter in self._room.of(glimpse.origin.chat_id, glimpse.answers):
            waiter.glimpse(glimpse)

    def routes(self) -> Sequence[Route]:
        """The addresses of the API, all behind the owner's key."""
        table = (
            ("POST", "/v1/chat/completions", self._chat),
            ("GET", "/v1/models", self._models),
            ("POST", "/v1/responses", self._respond),
            ("GET", "/v1/responses/{id}", self._show_response),
            ("DELETE", "/v1/responses/{id}", self._forget_response),
        )
        return tuple(Route(method=m, path=path, handler=handler, guard=Guard.OWNER) for m, path, handler in table)

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response(dialects.models(self._around.model_name))

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = decode.chat(await read_json(request))
        question = await self._question(request, asked.talk, None)
        dialect = dialects.ChatCompletion(question, model=self._around.model_name, include_usage=asked.include_usage)
        return await self._reply(request, question, dialect, stream=asked.stream)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        asked = decode.responses(await read_json(request))
        question = await self._question(request, asked.talk, asked.previous)
        dialect = dialects.Response(
            question,
            model=self._around.model_name,
            previous=str(asked.previous) if asked.previous else None,
            instructions=asked.instructions,
            store=asked.store,
            keep=self._keep_response if asked.store else _keep_nothing,
        )
        return await self._reply(request, question, dialect, stream=asked.stream)

    async def _show_response(self, request: web.Request) -> web.Response:
        return web.json_response(self._stored(request.match_info["id"]))

    async def _forget_response(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        self._stored(name)
        del self._responses[name]
        return web.json_response({"id": name, "object": "response", "deleted": True})

    def _stored(self, name: str) -> Json:
        if name not in self._responses:
            raise Problem(
                404,
                f"No stored response has the id {name!r}: it was deleted, asked with `store: false`, or is from before "
                "the last restart. Its words are in the session; ask on with `previous_response_id`.",
                code="response_not_found",
            )
        return self._responses[name]

    def _keep_response(self, name: str, body: Json) -> None:
        _shelve(self._responses, name, body, STORED_RESPONSES)

    async def _question(self, request: web.Request, talk: decode.Talk, previous: ResponseId | None) -> Inbound:
        who = caller(request.headers)
        body = fingerprint(request.path, await request.read())
        where = place(who, previous, fingerprint=body, fresh=fresh("call"))
        if who.idempotency_key is not None:
            self._check_repeat(who.idempotency_key, where)
        return decode.inbound(talk, where, platform=self._around.instance, at=self._around.clock.now())

    def _check_repeat(self, key: str, where: Place) -> None:
        """Raises Problem 409 when the key came with another question before."""
        asked = (where.chat_id, where.event_id)
        if self._keys.get(key, asked) != asked:
            raise Problem(
                409,
                f"This {IDEMPOTENCY_KEY} was used for another request. Choose a new one for a new question.",
                code="idempotency_key_conflict",
            )
        _shelve(self._keys, key, asked, KNOWN_KEYS)

    async def _reply(
        self, request: web.Request, question: Inbound, dialect: Dialect, *, stream: bool
    ) -> web.StreamResponse:
        """Ask, and answer the request. A request that ends unanswered takes its question back, unless it may repeat."""
        emit = self._listening()
        with self._room.seat(question) as waiter:
            try:
                headers = _echoes(request) | _join(await emit(question), waiter)
                tell = self._stream if stream else self._whole
                return await tell(request, waiter, dialect, headers)
            finally:
                if question.lifetime is Lifetime.CONNECTION and not waiter.ended.is_set():
                    await emit(Hangup(origin=question.origin, event_id=question.event_id))

    def _listening(self) -> Emit:
        if self._emit is None:
            raise Problem(
                503,
                "Hermes is starting or stopping. Try again in a moment.",
                code="not_ready",
                headers={"Retry-After": "2"},
            )
        return self._emit

    async def _whole(
        self, _request: web.Request, waiter: Waiter, dialect: Dialect, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._config.request_timeout_seconds):
                out = await waiter.answer()
        except TimeoutError as error:
            raise self._too_late() from error
        return web.json_response(dialect.whole(out), headers={**headers, **_session(waiter)})

    async def _stream(
        self, request: web.Request, waiter: Waiter, dialect: Dialect, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """The head waits for the first glimpse, which names the session, but not longer than one heartbeat."""
        stream = web.StreamResponse(headers={**_STREAM_HEADERS, **headers})
        try:
            async with asyncio.timeout(self._config.request_timeout_seconds):
                await waiter.news(self._config.heartbeat_seconds)
                stream.headers.update(_session(waiter))
                await stream.prepare(request)
                await self._tell(stream, waiter, dialect)
                await stream.write_eof()
        except TimeoutError as error:
            if not stream.prepared:
                raise self._too_late() from error
            await self._break_off(stream, dialect)
        return stream

    async def _tell(self, stream: web.StreamResponse, waiter: Waiter, dialect: Dialect) -> None:
        await self._quietly(stream, waiter)
        await stream.write(dialect.opening(waiter.session))
        while True:
            words, answer = waiter.take()
            if words:
                await stream.write(dialect.delta(words))
            if answer is not None:
                await stream.write(dialect.closing(answer))
                return
            await self._quietly(stream, waiter)

    async def _quietly(self, stream: web.StreamResponse, waiter: Waiter) -> None:
        """Wait for news with heartbeats."""
        while not await waiter.news(self._config.heartbeat_seconds):
            await stream.write(dialects.HEARTBEAT)

    async def _break_off(self, stream: web.StreamResponse, dialect: Dialect) -> None:
        """Say that no answer comes; a client that does not even read this is cut off."""
        try:
            async with asyncio.timeout(self._config.heartbeat_seconds):
                await stream.write(dialect.failed(self._too_late()))
                await stream.write_eof()
        except TimeoutError as error:
            raise ConnectionResetError("the client does not read") from error

    def _too_late(self) -> Problem:
        return Problem(
            504,
            f"No answer within {self._config.request_timeout_seconds:g} s. Ask for less at once, or raise "
            "platforms.api_server.request_timeout_seconds.",
            code="timeout",
        )


def _join(accepted: Accepted, waiter: Waiter) -> dict[str, str]:
    """Prepare the waiter for what is already known about its question; gives the headers that say so."""
    match accepted.standing:
        case Standing.FRESH:
            return {}
        case Standing.PENDING:
            waiter.skip_glimpses()
            return {}
        case Standing.SETTLED:
            if accepted.answer is None:
                raise Problem(
                    409,
                    "This request was seen before and ended without an answer. Send it again with a new "
                    f"{IDEMPOTENCY_KEY}.",
                    code="no_answer",
                )
            waiter.finish(accepted.answer)
            return {"Idempotency-Replayed": "true"}


def _echoes(request: web.Request) -> dict[str, str]:
    """The names that the client gave, as it will find them in the response."""
    who = caller(request.headers)
    named = {SESSION_ID: who.session_id, SESSION_KEY: who.session_key}
    return {header: value for header, value in named.items() if value is not None}


def _session(waiter: Waiter) -> dict[str, str]:
    return {SESSION_ID: waiter.session} if waiter.session else {}


def _shelve(shelf: dict[str, V], name: str, value: V, limit: int) -> None:
    """Keep `value`; the oldest goes when there are more than `limit`."""
    shelf[name] = value
    if len(shelf) > limit:
        del shelf[next(iter(shelf))]


def _keep_nothing(_name: str, _body: Json) -> None:
    """For responses that the client does not want stored."""
