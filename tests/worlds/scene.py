"""A model, a gateway and a page together, and what a reader beside the gateway sees."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

from hermes.sessions.database import connect
from worlds.daemon import PATIENCE, POLL, Daemon, asking
from worlds.llm import Asked, LlmWorld
from worlds.person import Page, page

T = TypeVar("T")


class Slow(LlmWorld):
    """A model that thinks until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.before = self._think
        self.asked = asyncio.Semaphore(0)
        """Counts the requests that have come."""
        self.go_on = asyncio.Event()

    async def _think(self, _: Asked) -> None:
        self.asked.release()
        await self.go_on.wait()


@asynccontextmanager
async def scene(folder: Path, world: LlmWorld, **gateway: Any) -> AsyncIterator[tuple[Daemon, Page]]:
    """A model, a gateway and a page."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(world)
        daemon = await stack.enter_async_context(Daemon(folder, asking(world.url), **gateway))
        yield daemon, await stack.enter_async_context(page(daemon))


async def conversation(world: Slow, talk: Page) -> str:
    """A chat that has begun; gives its session's id. The world is slow afterwards."""
    world.go_on.set()
    await talk.answer(await talk.say("chat", "Hello"))
    world.go_on.clear()
    await within(world.asked.acquire())
    session = await talk.session("chat")
    assert session is not None
    return session


def query(daemon: Daemon, statement: str) -> list[tuple[Any, ...]]:
    """What a reader beside the gateway sees."""
    with closing(connect(daemon.home.database, read_only=True)) as connection:
        return list(connection.execute(statement))


async def settled(daemon: Daemon) -> None:
    """Wait until no duty is open."""
    async with asyncio.timeout(PATIENCE):
        while query(daemon, "SELECT 1 FROM outbox WHERE settled_at IS NULL"):
            await asyncio.sleep(POLL)


async def within(coming: Awaitable[T]) -> T:
    """Wait, but not for ever."""
    async with asyncio.timeout(PATIENCE):
        return await coming


async def wait_for_a_writer(folder: Path, seconds: float) -> None:
    """Another process holds the write lock while a turn ends and a question comes in."""
    world = Slow()
    async with scene(folder, world) as (daemon, talk):
        first = await talk.say("one", "First")
        await within(world.asked.acquire())
        with closing(connect(daemon.home.database)) as other:
            other.execute("BEGIN IMMEDIATE")
            world.go_on.set()
            second = await talk.say("two", "Second")
            await asyncio.sleep(seconds)
            assert first not in talk.answers
            assert second not in talk.acknowledged
            other.execute("COMMIT")
        assert (await talk.answer(first)).endswith("First")
        assert (await talk.answer(second)).endswith("Second")
        await settled(daemon)
        assert query(daemon, "SELECT outcome FROM inbox") == [("answered",), ("answered",)]
        assert len(world.journal) == 2
