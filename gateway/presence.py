"""What a chat sees of a turn while it runs: that somebody types, the words as they come, that work still goes on.

Best effort: whatever goes wrong here is logged, and the turn goes on. The answer itself is delivery's duty.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, TypeVar

import structlog

from hermes.adapters.base import CanEdit, CanStream, CanType, Lifetime, PlatformAdapter, Progress
from hermes.errors import PlatformError, StoreError
from hermes.gateway.closing import answer_key
from hermes.gateway.letters import Letter, reply
from hermes.gateway.live import Editor, LiveAnswer
from hermes.gateway.node import Node
from hermes.gateway.paces import Paces
from hermes.gateway.work import Work
from hermes.sessions.model import NewDelivery, SessionId

log = structlog.get_logger(__name__)

T = TypeVar("T")

TYPING_SECONDS = 4.0
"""How often it is said again that somebody types; Telegram shows it for 5 s, Discord for 10."""

NOTICE_SECONDS = 180.0
"""Where no message grows, a line says after this long that work goes on, then after twice as long each time."""

CALL_SECONDS = 20.0
"""How long one call may take: what it would show is old by then."""

LAST_CALL_SECONDS = 2 * CALL_SECONDS
"""How long the end of a turn waits for what is being shown, so that none of it lands after the answer."""


class Screen(Protocol):
    """What a turn tells while it runs. Never waits."""

    def said(self, text: str) -> None:
        """Words that join the running step's."""
        ...

    def tool(self, name: str, *, done: bool) -> None:
        """A tool starts, or has ended."""
        ...

    def kept(self) -> None:
        """The running step is on disk; the next one begins with no words."""
        ...


@dataclass(frozen=True, slots=True)
class Powers:
    """What an adapter can do while an answer is written. Found out once: asking a protocol takes its time."""

    streams: CanStream | None = None
    types: CanType | None = None
    edits: Editor | None = None

    @classmethod
    def of(cls, adapter: PlatformAdapter) -> "Powers":
        """The adapter itself, under each power that it has."""
        return cls(
            streams=adapter if isinstance(adapter, CanStream) else None,
            types=adapter if isinstance(adapter, CanType) else None,
            edits=adapter if isinstance(adapter, CanEdit) else None,
        )


class Presences:
    """Makes each turn's screen, by what its chat's platform can do."""

    def __init__(
        self,
        node: Node,
        adapters: Mapping[str, PlatformAdapter],
        paces: Paces,
        *,
        tasks: asyncio.TaskGroup,
        ring: Callable[[], None],
    ) -> None:
        self._node = node
        self._powers = {name: Powers.of(adapter) for name, adapter in adapters.items()}
        self._paces = paces
        self._tasks = tasks
        self._ring = ring

    def of(self, work: Work, asked: Letter, session: SessionId) -> AbstractAsyncContextManager[Screen]:
        """The turn's screen, alive while the block runs. Once it is left, nothing is under way any more."""
        origin = work.inbound.origin
        adapter = self._powers.get(origin.platform, Powers())
        if adapter.streams is not None:
            return nullcontext(Glimpses(adapter.streams, work, session))
        line = Line(self._paces, (origin.platform, origin.chat_id))
        shows: list[Show] = []
        screen: Screen = Blank()
        if adapter.types is not None:
            shows.append(Typing(self._node, work, adapter.types, line))
        if adapter.edits is not None and self._node.config().gateway.streaming.enabled:
            screen = live = LiveAnswer(self._node, work, self._duty(work, asked, session), adapter.edits, line.call)
            shows.append(live)
        elif work.inbound.lifetime is Lifetime.CHAT:
            shows.append(Notices(self._node, work, asked, self._ring))
        return Presence(screen, shows, line, self._tasks)

    def _duty(self, work: Work, asked: Letter, session: SessionId) -> NewDelivery:
        duty = reply(asked, "", key=answer_key(work.turn), at=self._node.clock.now())
        return replace(duty, turn=work.turn, session=session)


class Show(Protocol):
    """Something that a chat is shown of a turn."""

    async def run(self) -> None:
        """Until cancelled, or until there is no more to show."""
        ...


class Presence:
    """Runs what a chat is shown beside the turn."""

    def __init__(self, screen: Screen, shows: Sequence[Show], line: "Line", tasks: asyncio.TaskGroup) -> None:
        self._screen = screen
        self._shows = shows
        self._line = line
        self._tasks = tasks
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Screen:
        self._task = self._tasks.create_task(self._run(), name="presence")
        return self._screen

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        try:
            await self._line.hang_up()
        finally:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for show in self._shows:
                    group.create_task(show.run())
        except Exception:  # what a chat is shown on the way must not end the turn, nor the gateway
            log.exception("presence.failed")


class Line:
    """One turn's calls to its chat, one at a time, until it is hung up."""

    def __init__(self, paces: Paces, chat: tuple[str, str]) -> None:
        self._paces = paces
        self._chat = chat
        self._turn = asyncio.Lock()

    async def call(self, make: Callable[[], Awaitable[T]], /) -> T:
        """What `make` gives. Raises PlatformError."""
        async with self._turn:
            return await self._paces.call(self._chat, make, within=CALL_SECONDS)

    async def whisper(self, make: Callable[[], Awaitable[T]], /) -> T:
        """A call beside the others whose end nobody waits for. Raises PlatformError."""
        return await self._paces.call(self._chat, make, within=TYPING_SECONDS)

    async def hang_up(self) -> None:
        """Let what is under way end, within bounds; nothing goes out afterwards."""
        try:
            async with asyncio.timeout(LAST_CALL_SECONDS):
                await self._turn.acquire()
        except TimeoutError:
            log.info("presence.cut_off", adapter=self._chat[0])


class Blank:
    """A screen that nobody looks at."""

    def said(self, text: str) -> None: ...
    def tool(self, name: str, *, done: bool) -> None: ...
    def kept(self) -> None: ...


class Glimpses:
    """The screen of a platform that shows each word itself."""

    def __init__(self, adapter: CanStream, work: Work, session: SessionId) -> None:
        self._adapter = adapter
        self._inbound = work.inbound
        self._session = session

    def said(self, text: str) -> None:
        self._show(text=text)

    def tool(self, name: str, *, done: bool) -> None:
        self._show(tool=name, done=done)

    def kept(self) -> None:
        """Its reader sees the end of a step by what comes next."""

    def _show(self, *, text: str = "", tool: str | None = None, done: bool = False) -> None:
        self._adapter.progress(
            Progress(
                origin=self._inbound.origin,
                answers=self._inbound.event_id,
                session=self._session,
                text=text,
                tool=tool,
                done=done,
            )
        )


class Typing:
    """Says again and again that an answer is being written."""

    def __init__(self, node: Node, work: Work, adapter: CanType, line: Line) -> None:
        self._clock = node.clock
        self._work = work
        self._adapter = adapter
        self._line = line

    async def run(self) -> None:
        while True:
            try:
                await self._line.whisper(lambda: self._adapter.typing(self._work.inbound.origin))
            except PlatformError as error:
                log.debug("typing.failed", turn=self._work.turn, reason=error.detail)
            await self._clock.sleep(TYPING_SECONDS)


class Notices:
    """Lines that say that work goes on, rarer and rarer."""

    def __init__(self, node: Node, work: Work, asked: Letter, ring: Callable[[], None]) -> None:
        self._node = node
        self._work = work
        self._asked = asked
        self._ring = ring

    async def run(self) -> None:
        clock, began, wait = self._node.clock, self._node.clock.monotonic(), NOTICE_SECONDS
        while True:
            await clock.sleep(wait)
            wait *= 2
            try:
                await self._say(int((clock.monotonic() - began) // 60))
            except StoreError as error:
                log.info("notice.not_kept", turn=self._work.turn, reason=str(error))

    async def _say(self, minutes: int) -> None:
        text = self._node.texts.for_words(self._asked.inbound.text).say("turn.still_working", minutes=minutes)
        told = reply(self._asked, text, key=f"{self._work.turn}:still:{minutes}", at=self._node.clock.now())
        await self._node.store.outbox.add([replace(told, answers=None)])  # the answer is still to come
        self._ring()
