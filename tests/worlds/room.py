"""The loopback's room with what real platforms do to people: refusals, lost answers, broken links."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from hermes.adapters.base import Origin, Outbound
from hermes.adapters.loopback import Loopback, Note, Packet, Room
from hermes.errors import PlatformError, Refusal, Rejected, Unreachable

PATIENCE = 20.0
"""Seconds of real time after which a test gives up waiting."""


class TroubledRoom(Room):
    """A room whose sends and link can be made to fail, and that tells when something happens in it."""

    def __init__(self, *, forgets: bool = False) -> None:
        super().__init__(forgets=forgets)
        self.acknowledged: list[str] = []
        """The ids of packets that were taken off the wire, in order."""
        self.tries: list[Outbound] = []
        """Every send that reached the room, shown or not."""
        self.edits: list[tuple[str, str]] = []
        """The message and its new text, of every edit that was made."""
        self.typed: list[str] = []
        """The chats in which somebody was seen typing."""
        self.stuck_typing = False
        """Who says that somebody types waits for ever."""
        self._edit_troubles: deque[PlatformError] = deque()
        self._send_troubles: deque[PlatformError | None] = deque()
        self._link_troubles: deque[Exception] = deque()
        self._held: defaultdict[str, list[asyncio.Event]] = defaultdict(list)
        self._news = asyncio.Event()

    # -- what a test does to it ---------------------------------------------------------------------------------

    def fail_sends(self, *troubles: PlatformError | None) -> None:
        """The next sends end like this, one after another; None lets one through."""
        self._send_troubles.extend(troubles)

    def fail_edits(self, *troubles: PlatformError) -> None:
        """The next edits end like this, one after another."""
        self._edit_troubles.extend(troubles)

    def remove(self, message: str) -> None:
        """Somebody deletes a message."""
        self.shown = [note for note in self.shown if note.id != message]

    def break_link(self, *troubles: Exception) -> None:
        """Whoever reads is thrown out with the first, whoever comes back with the next."""
        self._link_troubles.extend(troubles)
        self._spoken.set()

    def hold(self, chat: str) -> asyncio.Event:
        """Sends to `chat` hang until the event is set."""
        self._held[chat].append(asyncio.Event())
        return self._held[chat][-1]

    def texts(self, chat: str | None = None) -> list[str]:
        """What is shown, in order."""
        return [note.text for note in self.shown if chat in {None, note.chat}]

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until `seen` is true; looked at whenever something happens here."""
        async with asyncio.timeout(PATIENCE):
            while not seen():
                self._news.clear()
                await self._news.wait()

    async def shows(self, count: int, chat: str | None = None) -> list[str]:
        """Wait until `count` messages are shown; gives the texts of all."""
        with suppress(TimeoutError):
            await self.until(lambda: len(self.texts(chat)) >= count)
        assert len(self.texts(chat)) >= count, f"waited for {count} messages, got {self.texts(chat)}"
        return self.texts(chat)

    # -- what it does itself --------------------------------------------------------------------------------------

    async def read(self) -> Packet:
        while not (self._wire or self._link_troubles):
            self._spoken.clear()
            await self._spoken.wait()
        if self._link_troubles:
            raise self._link_troubles.popleft()
        return await super().read()

    async def acknowledge(self) -> None:
        self.acknowledged.append(self._wire[0].id)
        await super().acknowledge()
        self._news.set()

    async def post(self, out: Outbound) -> str:
        self.tries.append(out)
        self._news.set()
        for gate in self._held[out.origin.chat_id]:
            await gate.wait()
        trouble = self._send_troubles.popleft() if self._send_troubles else None
        if isinstance(trouble, Unreachable) and trouble.maybe_done:
            await super().post(out)  # it is shown, and only the platform's answer is lost
        if trouble is not None:
            raise trouble
        shown = await super().post(out)
        self._news.set()
        return shown

    def revise(self, message: str, text: str) -> None:
        """A message gets another text."""
        if self._edit_troubles:
            raise self._edit_troubles.popleft()
        if message not in {note.id for note in self.shown}:
            raise Rejected("loopback", Refusal.GONE)
        self.shown = [replace(note, text=text) if note.id == message else note for note in self.shown]
        self.edits.append((message, text))
        self._news.set()

    def see_typing(self, chat: str) -> None:
        """Somebody types."""
        self.typed.append(chat)
        self._news.set()

    def last(self) -> Note:
        """The newest message in the room."""
        return self.shown[-1]


class LiveLoopback(Loopback):
    """The loopback with the powers that most chats have: messages change, and people see somebody type."""

    room: TroubledRoom

    async def edit(self, message_id: str, out: Outbound) -> None:
        """Show `out` instead."""
        self.room.revise(message_id, out.markdown)

    async def typing(self, origin: Origin) -> None:
        """Somebody types."""
        self.room.see_typing(origin.chat_id)
        if self.room.stuck_typing:
            await asyncio.Event().wait()
