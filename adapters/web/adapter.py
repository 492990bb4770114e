"""The web chat's wire: a page, a socket a page, and the owner behind all of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import BaseModel, ConfigDict

from hermes.adapters.base import (
    Accepted,
    Emit,
    Guard,
    Inbound,
    Limits,
    Origin,
    Outbound,
    Platform,
    PlatformAdapter,
    Progress,
    Receipt,
    Route,
    Standing,
    Surroundings,
)
from hermes.adapters.web import frames
from hermes.adapters.web.page import Document, assemble
from hermes.errors import HermesError

OWNER_ID = "owner"
QUEUED_FRAMES = 1024
"""Frames that may wait for one slow page before its socket is closed."""
QUEUED_GLIMPSES = 256
"""From here on a waiting page gets answers only: what is glimpsed is part of the answer anyway."""
SEND_SECONDS = 20.0
"""How long one frame may take to leave."""
CLOSE_SECONDS = 5.0
"""How long a page has to agree to the end of its socket."""
HEARTBEAT_SECONDS = 30.0
BACK_SECONDS = 5.0
"""How long after a start the pages that were open before it have to come back."""


class WebConfig(BaseModel):
    """The block `platforms.web`: there is nothing to set."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Peer:
    """One open page. Frames wait here until its socket takes them; a page that falls behind is let go."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._news = asyncio.Event()
        self._open = True

    @property
    def waiting(self) -> tuple[str, ...]:
        """The frames that its socket has not taken yet."""
        return tuple(self._waiting)

    def post(self, frame: str) -> None:
        """Queue a frame that must arrive. With a full queue the page is let go instead, and reads the store again."""
        if len(self._waiting) >= QUEUED_FRAMES:
            self.leave()
        elif self._open:
            self._waiting.append(frame)
            self._news.set()

    def glimpse(self, frame: str) -> None:
        """Queue a frame that a slow page can do without."""
        if len(self._waiting) < QUEUED_GLIMPSES:
            self.post(frame)

    def leave(self) -> None:
        """Nothing more is queued, and nothing that waits is sent."""
        self._open = False
        self._waiting.clear()
        self._news.set()

    async def deliver(self, socket: web.WebSocketResponse) -> None:
        """Send what is queued until the page leaves, is let go, or takes too long; then close `socket`."""
        try:
            while (frame := await self._next()) is not None:
                async with asyncio.timeout(SEND_SECONDS):
                    await socket.send_str(frame)
        except (ConnectionError, TimeoutError):
            self.leave()
        await socket.close(code=WSCloseCode.GOING_AWAY)

    async def _next(self) -> str | None:
        while not self._waiting:
            if not self._open:
                return None
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


class WebChat:
    """The owner's pages as a chat platform. Every page sees every frame, so that all of them stay in step."""

    limits = Limits(text=200_000, idempotent_sends=True)

    def __init__(self, surroundings: Surroundings, document: Document) -> None:
        self._instance = surroundings.instance
        self._clock = surroundings.clock
        self._document = document
        self._peers: set[Peer] = set()
        self._visited = asyncio.Event()
        self._opened = surroundings.clock.monotonic()
        self._emit: Emit | None = None

    async def listen(self, emit: Emit) -> None:
        """Hear pages until cancelled. Those that are open then still see the answers that come; see `close`."""
        self._emit = emit
        try:
            await asyncio.Event().wait()
        finally:
            self._emit = None

    def close(self) -> None:
        """Let go of every page; they come back by themselves."""
        for peer in self._peers:
            peer.leave()

    async def send(self, out: Outbound) -> Receipt:
        """Show `out` on every open page. A page that is not open reads answers from the store later.

        Just after a start the first page is waited for: what is due then may be a notice that no store holds.
        """
        await self._pages_are_back()
        frame = frames.answered(out)
        for peer in self._peers:
            peer.post(frame)
        return Receipt((out.key,))

    async def _pages_are_back(self) -> None:
        left = self._opened + BACK_SECONDS - self._clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                await self._visited.wait()

    def progress(self, glimpse: Progress) -> None:
        """Show what is being thought to whoever watches."""
        frame = frames.glimpsed(glimpse)
        for peer in self._peers:
            peer.glimpse(frame)

    def routes(self) -> Sequence[Route]:
        """The page for anybody (it holds no data), the socket for the owner."""
        return (
            Route(method="GET", path="/", handler=self._page, guard=Guard.OPEN),
            Route(method="GET", path="/ws", handler=self._socket, guard=Guard.OWNER),
        )

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(body=self._document.body, headers=self._document.headers)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self._emit is None:
            raise web.HTTPServiceUnavailable(text="Hermes is starting or stopping. The page tries again by itself.")
        # Frames between our limit and this one are answered with a sentence; aiohttp hangs up on larger ones.
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, timeout=CLOSE_SECONDS, max_msg_size=4 * frames.FRAME_BYTES
        )
        await socket.prepare(request)
        with self._joined() as peer:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(peer.deliver(socket))
                await self._read(socket, peer)
                peer.leave()
        return socket

    @contextmanager
    def _joined(self) -> Iterator[Peer]:
        peer = Peer()
        self._peers.add(peer)
        self._visited.set()
        try:
            yield peer
        finally:
            self._peers.discard(peer)

    async def _read(self, socket: web.WebSocketResponse, peer: Peer) -> None:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                peer.post(frames.failed(None, "Only text frames are understood."))
                continue
            try:
                await self._obey(frames.decode(message.data), peer)
            except frames.BadFrame as error:
                peer.post(frames.failed(error.frame, str(error)))

    async def _obey(self, frame: frames.Frame, peer: Peer) -> None:
        match frame:
            case frames.Ping():
                peer.post(frames.pong())
            case frames.Say():
                accepted = await self._hand_over(frame, frame.text, peer, continues=frame.session)
                if accepted is not None and accepted.standing is Standing.FRESH:
                    self._tell_others(frame, peer)
            case frames.Stop():
                await self._hand_over(frame, "/stop", peer)

    async def _hand_over(
        self, frame: frames.Say | frames.Stop, text: str, peer: Peer, *, continues: str | None = None
    ) -> Accepted | None:
        if self._emit is None:
            return None  # without an acknowledgement the page keeps the words, and sends them when it is back
        inbound = Inbound(
            event_id=f"m:{frame.id}",
            origin=self._origin(frame.chat),
            text=text,
            at=self._clock.now(),
            continues=continues,
        )
        try:
            accepted = await self._emit(inbound)
        except HermesError as error:
            peer.post(frames.failed(frame.id, str(error)))
            return None
        peer.post(frames.acknowledged(frame.id))
        if accepted.answer is not None:
            peer.post(frames.answered(accepted.answer))
        return accepted

    def _origin(self, chat: str) -> Origin:
        return Origin(platform=self._instance, chat_id=chat, user_id=OWNER_ID, user_name="Owner")

    def _tell_others(self, say: frames.Say, speaker: Peer) -> None:
        frame = frames.said(say)
        for peer in self._peers - {speaker}:
            peer.post(frame)


@asynccontextmanager
async def _open(_: WebConfig, surroundings: Surroundings) -> AsyncIterator[PlatformAdapter]:
    chat = WebChat(surroundings, await asyncio.to_thread(assemble, surroundings.instance))
    try:
        yield chat
    finally:
        chat.close()


PLATFORM = Platform("web", WebConfig, _open)
