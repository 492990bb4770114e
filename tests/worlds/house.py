"""A whole gateway in the test's own process: real wiring, real store, rooms instead of platforms."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from fakes import VirtualClock, settle
from hermes import ids
from hermes.adapters.base import Accepted, Event, Inbound, LooseBookmarks, Origin, Surroundings
from hermes.adapters.loopback import Loopback, LoopbackConfig, Packet, decode
from hermes.agent.models.base import ChatModel
from hermes.clock import Clock
from hermes.gateway.app import App
from hermes.gateway.config import Config
from hermes.gateway.crew import Crew
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.neighbours import GATEWAY, Neighbours
from hermes.gateway.node import Node
from hermes.gateway.routing import KeyPolicy, session_key
from hermes.home import Home
from hermes.ids import GATEWAY_HEX
from hermes.redact import Redactor
from hermes.sessions.memory import MemoryStore
from hermes.sessions.model import OWNER, Counts, InboxRow, Message, Session
from hermes.sessions.ports import Store
from hermes.sessions.store import open_store
from hermes.texts import Texts
from worlds.hand import HandModel
from worlds.room import PATIENCE, LiveLoopback, TroubledRoom

ROOM = "loopback"
OPEN: Mapping[str, Any] = {
    "access": {"allow_all": True, "owners": [f"{ROOM}:owner"]},
    "platforms": {ROOM: {"require_mention": False}},
}
"""Everybody may talk, in rooms without naming the agent; the user `owner` is the owner."""

NUMBERS = itertools.count(1)
"""Ids of messages, never the same in two houses: one may follow another on the same store."""

both_stores = pytest.mark.parametrize("kind", ["memory", "sqlite"])
"""For tests that take `kind` and hand it to `house`."""


@dataclass(kw_only=True)
class House:
    """A running gateway, as a test sees it."""

    app: App
    store: Store
    clock: Clock
    settings: "Settings"
    rooms: Mapping[str, TroubledRoom]
    tasks: Crew
    crashed: bool = False

    @property
    def room(self) -> TroubledRoom:
        """The only room, or the first."""
        return next(iter(self.rooms.values()))

    def configure(self, **blocks: Any) -> None:
        """Swap the configuration, as a reload does. Blocks that are not named stay."""
        now = self.settings.current.model_dump(exclude_unset=True)
        self.settings.current = Config.model_validate({**now, **blocks})

    async def leave(self, drain: float) -> None:
        """Stop as SIGTERM does; raises Crash when the test wants a death instead."""
        if self.crashed:
            raise Crash
        await self.app.stop(drain)

    # -- people ---------------------------------------------------------------------------------------------------

    def packet(
        self, text: str, *, chat: str = "c1", user: str | None = "owner", kind: str = "dm", **facts: Any
    ) -> Packet:
        """What somebody says; `id` unless given is one that was never used."""
        facts.setdefault("id", str(next(NUMBERS)))
        return Packet(chat=chat, user=user, kind=kind, text=text, at=self.clock.now(), **facts)

    async def say(self, text: str, *, room: str = ROOM, **facts: Any) -> Packet:
        """Somebody says something in a room; returns when the gateway has it."""
        packet, there = self.packet(text, **facts), self.rooms[room]
        before = there.acknowledged.count(packet.id)
        there.speak(packet)
        await there.until(lambda: there.acknowledged.count(packet.id) > before)
        return packet

    async def hand(self, event: Event) -> Accepted:
        """An event as an adapter hands it over, with what the adapter is told."""
        return await self.app.intake.accept(event)

    def event(self, text: str, *, room: str = ROOM, **facts: Any) -> Inbound:
        """The event of a message, to hand over by hand."""
        event = decode(self.packet(text, **facts), room)
        assert event is not None
        return event

    # -- what came of it ------------------------------------------------------------------------------------------

    async def quiet(self) -> None:
        """Nothing is thought about, and nothing is being sent."""
        async with asyncio.timeout(PATIENCE):
            await self.app.mailboxes.idle()
            await self.app.deliverer.idle()
        await settle()

    async def pass_time(self, true: Callable[[], bool]) -> None:
        """Let the virtual clock run until something is true. It may run further: a real store takes real time."""
        assert isinstance(self.clock, VirtualClock)
        async with asyncio.timeout(PATIENCE):
            while not true():
                await self.clock.advance(0.1)

    async def row(self, packet: Packet, room: str = ROOM) -> InboxRow:
        """What became of a message."""
        found = await self.store.inbox.find(room, packet.chat, f"m:{packet.id}")
        assert found is not None
        return found

    async def done(self, packet: Packet, room: str = ROOM) -> InboxRow:
        """The same, once it has its outcome."""
        async with asyncio.timeout(PATIENCE):
            while (row := await self.row(packet, room)).outcome is None:
                await asyncio.sleep(0)
        return row

    async def session(self, chat: str = "c1", room: str = ROOM) -> Session:
        """The live session of a direct chat."""
        key = session_key(Origin(platform=room, chat_id=chat), KeyPolicy())
        found = await self.store.find(key)
        assert found is not None
        return found

    async def transcript(self, chat: str = "c1") -> list[str]:
        """Who said what in the live conversation of a direct chat."""
        rows = await self.store.transcript((await self.session(chat)).conversation, OWNER)
        return [f"{row.role.value}: {row.content}" for row in rows]

    async def rows(self, session: Session) -> Sequence[Message]:
        """All that was said in a conversation."""
        return await self.store.transcript(session.conversation, OWNER)

    async def balanced(self) -> Counts:
        """The books, which add up and have nothing open."""
        books = await self.store.counts()
        for total, book in (("received", books.inbound), ("created", books.outbound)):
            assert book[total] == sum(count for name, count in book.items() if name != total)
            assert book.get("open", 0) == 0, book
        return books


async def until(true: Callable[[], bool]) -> None:
    """Give others the loop until something is true that nobody tells of."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0)


@dataclass
class Settings:
    """Holds the configuration as it is now."""

    current: Config


class Crash(Exception):
    """Ends a house as a dying process would: every task is cut off where it is."""


@asynccontextmanager
async def house(
    folder: Path,
    *,
    kind: str = "sqlite",
    store: Store | None = None,
    model: ChatModel | None = None,
    clock: Clock | None = None,
    rooms: Sequence[str] = (ROOM,),
    forgets: bool = False,
    live: bool = False,
    longest: int = 4000,
    drain: float = 0.0,
    node: str | None = None,
    titles: ChatModel | None = None,
    **blocks: Any,
) -> AsyncIterator[House]:
    """A gateway on the store in `folder`; a second one on the same folder finds what the first one left.

    `live` rooms have messages that change, and typing. `titles` names conversations; without it nobody does. `blocks`
    are those of config.yaml; without any, everybody may talk. Leaving stops the gateway within `drain` seconds, unless
    the test has set `crashed`.
    """
    clock = clock or VirtualClock()
    settings = Settings(Config.model_validate({**OPEN, **blocks}))
    opened = store or (MemoryStore() if kind == "memory" else await open_store(Home(folder).database))
    there = {name: TroubledRoom(forgets=forgets) for name in rooms}
    adapters = {
        name: (LiveLoopback if live else Loopback)(
            LoopbackConfig(longest=longest),
            Surroundings(instance=name, clock=clock, cache=folder / "cache", bookmarks=LooseBookmarks(clock)),
            room,
        )
        for name, room in there.items()
    }
    facts = Node(
        id=node or ids.fresh(GATEWAY),
        place="the gateway",
        hex_digits=GATEWAY_HEX,
        store=opened,
        clock=clock,
        config=lambda: settings.current,
        texts=Texts(settings.current.language),
        redactor=Redactor(()),
        metrics=Metrics(),
        model_name="the model",
        zone=UTC,
    )
    try:
        async with Crew() as tasks:
            app = App(facts, Home(folder), adapters=adapters, model=model or HandModel(), titles=titles, tasks=tasks)
            running = House(app=app, store=opened, clock=clock, settings=settings, rooms=there, tasks=tasks)
            await Neighbours(opened, Home(folder).terminals, me=facts.id).bury(clock.now())
            await app.recover()
            app.start()
            yield running
            await running.leave(drain)
    except* Crash:
        pass
    finally:
        if store is None:
            await opened.close()
