"""The OpenAI-compatible API before a scripted gateway: the vendor's own client talks to a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
from openai.types.chat import ChatCompletionMessageParam

from fakes import VirtualClock, settle
from hermes.adapters.api_server import PLATFORM
from hermes.adapters.api_server.adapter import ApiServer, ApiServerConfig
from hermes.adapters.base import (
    Accepted,
    Event,
    Hangup,
    Inbound,
    LooseBookmarks,
    Outbound,
    Progress,
    Standing,
    Surroundings,
    Tokens,
)
from worlds.http_house import BEARER, SECRET, House, house

SESSION = "20270115_080000_abcdef01"
Script = Callable[["Gateway", Inbound], Coroutine[Any, Any, None]]


@dataclass(kw_only=True)
class Gateway:
    """Takes events like the real one (once each), and answers them as its script says."""

    adapter: ApiServer
    script: Script
    tasks: asyncio.TaskGroup
    asked: list[Inbound] = field(default_factory=list)
    hangups: asyncio.Queue[Hangup] = field(default_factory=asyncio.Queue)
    settled: dict[tuple[str, str], Outbound | None] = field(default_factory=dict)
    repeated: asyncio.Event = field(default_factory=asyncio.Event)
    """Somebody asked what is still being worked on."""

    async def emit(self, event: Event, /) -> Accepted:
        if isinstance(event, Hangup):
            self.hangups.put_nowait(event)
            return Accepted(standing=Standing.SETTLED)
        assert isinstance(event, Inbound)
        name = name_of(event)
        if name in self.settled:
            return Accepted(standing=Standing.SETTLED, answer=self.settled[name])
        if name in map(name_of, self.asked):
            self.repeated.set()
            return Accepted(standing=Standing.PENDING)
        self.asked.append(event)
        self.tasks.create_task(self.script(self, event))
        return Accepted(standing=Standing.FRESH)

    def show(self, question: Inbound, text: str = "", *, tool: str | None = None) -> None:
        self.adapter.progress(
            Progress(origin=question.origin, answers=question.event_id, session=SESSION, text=text, tool=tool)
        )

    async def answer(self, question: Inbound, text: str) -> None:
        out = Outbound(
            key=f"a:{question.event_id}",
            origin=question.origin,
            markdown=text,
            answers=question.event_id,
            session=SESSION,
            tokens=Tokens(input=7, output=3),
        )
        self.settled[name_of(question)] = out
        await self.adapter.send(out)


async def echo(gateway: Gateway, question: Inbound) -> None:
    await gateway.answer(question, f"echo: {question.text}")


async def in_words(gateway: Gateway, question: Inbound) -> None:
    """Each word is seen by the client before the next one is said."""
    words = f"echo: {question.text}"
    for word in words.split():
        gateway.show(question, word + " ")
        await asyncio.sleep(0)
    await gateway.answer(question, words)


async def silence(gateway: Gateway, question: Inbound) -> None:
    """No answer ever comes."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A served adapter, the gateway behind it, and the vendor's client before it."""

    adapter: ApiServer
    gateway: Gateway
    house: House
    client: openai.AsyncOpenAI

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, str], Any]:
        async with self.house.client.post(self.house.url(path), json=body, headers={**BEARER, **headers}) as response:
            return response.status, dict(response.headers), await response.json()

    async def chat(self, text: str = "hi", **headers: str) -> tuple[int, dict[str, str], Any]:
        return await self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}, **headers)


def surroundings(clock: VirtualClock) -> Surroundings:
    return Surroundings(
        instance="api_server",
        clock=clock,
        cache=Path("unused"),
        bookmarks=LooseBookmarks(clock),
        model_name="hermes-test",
    )


@asynccontextmanager
async def world(script: Script = echo, *, listening: bool = True, **settings: float) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with PLATFORM.open(ApiServerConfig(**settings), surroundings(clock)) as adapter:  # type: ignore[arg-type]
        assert isinstance(adapter, ApiServer)
        async with (
            asyncio.TaskGroup() as tasks,
            house(adapter.routes(), clock=clock) as h,
            openai.AsyncOpenAI(base_url=h.url("/v1"), api_key=SECRET, max_retries=0) as client,
        ):
            gateway = Gateway(adapter=adapter, script=script, tasks=tasks)
            listen = tasks.create_task(adapter.listen(gateway.emit)) if listening else None
            await settle()
            yield World(adapter=adapter, gateway=gateway, house=h, client=client)
            if listen is not None:
                listen.cancel()


def says(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


async def streamed(w: World) -> str:
    """The words of one streamed answer."""
    stream = await w.client.chat.completions.create(model="any", messages=says("x"), stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


def name_of(question: Inbound) -> tuple[str, str]:
    return question.origin.chat_id, question.event_id
