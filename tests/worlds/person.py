"""People before a real gateway: one at the web chat's page, one with the official client of the API."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx2
import openai

from hermes import ids
from worlds.daemon import BEARER, PATIENCE, POLL, SECRET, Daemon

Frame = Mapping[str, Any]
Row = Mapping[str, Any]
Heard = Callable[[Frame], None]


def _ignore(_frame: Frame) -> None:
    pass


class Page:
    """The web chat's page: keeps what is not acknowledged, sends it again with the same id, and reads the store.

    `heard` is called with each frame of the socket before anything else happens.
    """

    def __init__(self, daemon: Daemon, client: aiohttp.ClientSession, heard: Heard = _ignore) -> None:
        self._daemon = daemon
        self._client = client
        self._heard = heard
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._unsent: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._news = asyncio.Condition()
        self.acknowledged: set[str] = set()
        self.answers: dict[str, str] = {}
        """The last answer to each message, by the message's id."""
        self.notices: list[str] = []
        """What was shown on the way, and answers nothing."""
        self.glimpsed: list[Frame] = []
        """The `delta` and `tool` frames."""
        self.rows: dict[str, list[Row]] = {}
        """Each chat's transcript as the store last showed it."""

    async def say(self, chat: str, text: str, *, session: str | None = None) -> str:
        """Say something, now or as soon as there is a line; gives the message's id."""
        message = ids.fresh("say")
        frame = json.dumps({"t": "say", "id": message, "chat": chat, "text": text, "session": session})
        self._unsent[message] = frame
        self.rows.setdefault(chat, [])
        if self._socket is not None:
            await self._send(self._socket, frame)
        return message

    async def until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until `condition` holds; it is looked at after every frame and every reading of the store."""
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(condition)

    async def acknowledgement(self, message: str) -> None:
        """Wait until the gateway has said that the message is safe."""
        await self.until(lambda: message in self.acknowledged)

    async def answer(self, message: str, seconds: float = PATIENCE) -> str:
        """Wait for the answer to the message."""
        await self.until(lambda: message in self.answers, seconds)
        return self.answers[message]

    async def session(self, chat: str) -> str | None:
        """The id of the chat's session, where it has one."""
        if chat not in self._sessions:
            found = await self.read("/api/sessions?limit=200")
            self._sessions |= {each["chat_id"]: each["id"] for each in found["sessions"] if each["source"] == "web"}
        return self._sessions.get(chat)

    async def transcript(self, session: str) -> list[Row]:
        """All rows of a session's conversation."""
        rows: list[Row] = []
        while True:
            after = rows[-1]["id"] if rows else 0
            part = await self.read(f"/api/sessions/{session}/messages?limit=500&after={after}")
            rows += part["messages"]
            if not part["more"]:
                return rows

    async def read(self, path: str) -> Any:
        """The JSON at `path`."""
        async with self._client.get(self._daemon.url + path, headers=BEARER) as response:
            response.raise_for_status()
            return await response.json()

    async def stay(self) -> None:
        """Keep a socket open until cancelled; a lost one is opened again."""
        while True:
            try:
                async with self._client.ws_connect(f"{self._daemon.url}/ws", headers=BEARER) as socket:
                    await self._live(socket)
            except aiohttp.ClientError:
                pass  # the gateway is down or has just died: come back
            finally:
                self._socket = None
            await asyncio.sleep(POLL)

    async def _live(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        for frame in tuple(self._unsent.values()):
            await self._send(socket, frame)
        self._socket = socket
        for chat in tuple(self.rows):
            await self._refresh(chat)
        async for message in socket:
            await self._obey(json.loads(message.data))

    async def _send(self, socket: aiohttp.ClientWebSocketResponse, frame: str) -> None:
        try:
            await socket.send_str(frame)
        except ConnectionError:
            self._socket = None  # it stays unsent, and goes out on the next line

    async def _obey(self, frame: Frame) -> None:
        self._heard(frame)
        match frame["t"]:
            case "ack":
                self._unsent.pop(frame["id"], None)
                self.acknowledged.add(frame["id"])
            case "delta" | "tool":
                self.glimpsed.append(frame)
            case "answer":
                await self._hear_out(frame)
            case "error":
                raise AssertionError(frame["message"])
        await self._tell()

    async def _hear_out(self, frame: Frame) -> None:
        """An answer was heard, whether or not the store can still be read."""
        try:
            await self._refresh(frame["chat"])
        finally:
            if frame["answers"] is None:
                self.notices.append(frame["markdown"])
            else:
                self.answers[frame["answers"].removeprefix("m:")] = frame["markdown"]
            await self._tell()

    async def _refresh(self, chat: str) -> None:
        session = await self.session(chat)
        self.rows[chat] = [] if session is None else await self.transcript(session)
        await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


@asynccontextmanager
async def page(daemon: Daemon, heard: Heard = _ignore) -> AsyncIterator[Page]:
    """A page that is open while the block runs."""
    async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as tasks:
        one = Page(daemon, client, heard)
        staying = tasks.create_task(one.stay())
        yield one
        staying.cancel()


class Program:
    """A program that uses the API with the official client, and asks again with the same key until it has an answer."""

    def __init__(self, daemon: Daemon, client: openai.AsyncOpenAI, conversation: str) -> None:
        self._daemon = daemon
        self._client = client
        self._conversation = conversation

    async def ask(self, text: str, *, streamed: bool = False) -> str:
        """The answer, whole, however often the gateway dies meanwhile."""
        headers = {"Idempotency-Key": ids.fresh("key"), "X-Hermes-Session-Key": self._conversation}
        tell = self._streamed if streamed else self._whole
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await tell(text, headers)
                except (openai.APIConnectionError, openai.InternalServerError, httpx2.TransportError):
                    await self._daemon.up.wait()
                await asyncio.sleep(POLL)

    async def _whole(self, text: str, headers: Mapping[str, str]) -> str:
        answer = await self._client.chat.completions.create(
            model="fake", messages=[{"role": "user", "content": text}], extra_headers=headers
        )
        return answer.choices[0].message.content or ""

    async def _streamed(self, text: str, headers: Mapping[str, str]) -> str:
        stream = await self._client.chat.completions.create(
            model="fake", messages=[{"role": "user", "content": text}], extra_headers=headers, stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


@asynccontextmanager
async def program(daemon: Daemon, conversation: str) -> AsyncIterator[Program]:
    """A program whose questions belong to one conversation."""
    async with openai.AsyncOpenAI(base_url=f"{daemon.url}/v1", api_key=SECRET, max_retries=0) as client:
        yield Program(daemon, client, conversation)
