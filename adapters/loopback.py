"""The smallest complete platform: a room inside the process. Copy me.

An adapter is three things: a configuration, a pure function from the platform's packets to `Inbound`, and a class
that listens and sends. Sessions, retries, splitting and access are the gateway's; none of it is here.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from hermes.adapters.base import (
    ChatKind,
    Emit,
    Inbound,
    Limits,
    Origin,
    Outbound,
    Platform,
    PlatformAdapter,
    Receipt,
    Surroundings,
)
from hermes.errors import Refusal, Rejected
from hermes.text import repair


class LoopbackConfig(BaseModel):
    """The block `platforms.loopback`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    longest: int = Field(default=4000, ge=1)
    """Characters of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """What a person says, as the wire carries it."""

    id: str
    chat: str
    kind: str
    """dm, group or channel; anything else is noise on the wire."""
    text: str
    at: float
    user: str | None = None
    name: str = ""
    thread: str | None = None
    mentions_me: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is shown in the room."""

    id: str
    key: str
    chat: str
    text: str
    reply_to: str | None = None


class Room:
    """The far side. A packet stays on the wire until it is acknowledged, and a note with a known key is not
    shown twice, unless the room `forgets` keys as many platforms do."""

    def __init__(self, *, forgets: bool = False) -> None:
        self.forgets = forgets
        self.shown: list[Note] = []
        self._wire: deque[Packet] = deque()
        self._spoken = asyncio.Event()

    def speak(self, packet: Packet) -> None:
        """A person says something."""
        self._wire.append(packet)
        self._spoken.set()

    async def read(self) -> Packet:
        """The oldest packet on the wire; waits for one."""
        while not self._wire:
            self._spoken.clear()
            await self._spoken.wait()
        return self._wire[0]

    async def acknowledge(self) -> None:
        """The packet that was read is safe, and leaves the wire."""
        self._wire.popleft()

    async def post(self, out: Outbound) -> str:
        """Show a message; gives its id."""
        known = next((note.id for note in self.shown if note.key == out.key and not self.forgets), None)
        if known is not None:
            return known
        note = Note(
            id=str(len(self.shown) + 1),
            key=out.key,
            chat=out.origin.chat_id,
            text=out.markdown,
            reply_to=out.reply_to,
        )
        self.shown.append(note)
        return note.id


def decode(packet: Packet, instance: str) -> Inbound | None:
    """The event that a packet means, or None when it wants no answer. Pure."""
    if packet.kind not in set(ChatKind) or not packet.text.strip():
        return None
    origin = Origin(
        platform=instance,
        chat_id=packet.chat,
        kind=ChatKind(packet.kind),
        thread_id=packet.thread,
        user_id=packet.user,
        user_name=repair(packet.name),
    )
    return Inbound(
        event_id=f"m:{packet.id}",
        origin=origin,
        text=repair(packet.text),
        at=packet.at,
        mentions_me=packet.mentions_me,
    )


class Loopback:
    """The adapter."""

    def __init__(self, config: LoopbackConfig, around: Surroundings, room: Room) -> None:
        self.limits = Limits(text=config.longest, idempotent_sends=not room.forgets)
        self.room = room
        self._instance = around.instance

    async def listen(self, emit: Emit) -> None:
        """Hand over what is said, each packet acknowledged only when it is safe."""
        while True:
            event = decode(await self.room.read(), self._instance)
            if event is not None:
                await emit(event)
            await self.room.acknowledge()

    async def send(self, out: Outbound) -> Receipt:
        """Show one message. Raises Rejected when it is too long."""
        if self.limits.measure(out.markdown) > self.limits.text:
            raise Rejected(self._instance, Refusal.TOO_LONG)
        return Receipt((await self.room.post(out),))


@asynccontextmanager
async def open_loopback(config: LoopbackConfig, around: Surroundings) -> AsyncIterator[PlatformAdapter]:
    """The adapter with a room of its own. A real platform's client session would be opened and closed here."""
    yield Loopback(config, around, Room())


PLATFORM = Platform(name="loopback", config=LoopbackConfig, open=open_loopback)
