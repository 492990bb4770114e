"""A server of Telegram's Bot API, with the people behind it, faked at the wire and as strict as the real one."""

import asyncio
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

from aiohttp import web

TOKEN = "4242:the-secret-of-the-tests"
USERNAME = "hermes_bot"
BOT = {"id": 4242, "is_bot": True, "first_name": "Hermes", "username": USERNAME}
LONGEST = 4096
COMMAND = re.compile(r"/\w+(?:@\w+)?")
MENTION = re.compile(r"@\w{3,}")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of the bot's."""

    method: str
    facts: Mapping[str, str]
    at: float
    """Monotonic seconds."""

    @property
    def chat(self) -> str | None:
        return self.facts.get("chat_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message of the bot's as people see it now."""

    id: int
    chat: int
    text: str
    entities: tuple[Json, ...] = ()
    thread: int | None = None
    reply_to: int | None = None
    drafts: tuple[str, ...] = ()
    """What it showed before, oldest first."""
    at: float = field(default_factory=time.monotonic)


# What can go wrong with one call. -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """The server says no."""

    code: int
    description: str
    parameters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broken:
    """The server's proxy says that the server is in trouble, in HTML."""

    code: int = 502


@dataclass(frozen=True, slots=True)
class Garbage:
    """An answer that nobody expects."""

    body: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The connection breaks before anything has happened."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It happens, and the connection breaks before the answer."""


@dataclass(frozen=True, slots=True)
class Silent:
    """No answer ever comes, and nothing has happened."""


Fault = Refused | Broken | Garbage | Dropped | Lost | Silent


def flood(seconds: int) -> Refused:
    """Flood control."""
    return Refused(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})


CHAT_NOT_FOUND = Refused(400, "Bad Request: chat not found")
BLOCKED = Refused(403, "Forbidden: bot was blocked by the user")
UNPARSABLE = Refused(400, "Bad Request: can't parse entities: unsupported start tag")
UNAUTHORIZED = Refused(401, "Unauthorized")
CONFLICT = Refused(
    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)


class No(Exception):
    """A call that the server refuses."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.description)
        self.refused = refused


@dataclass(kw_only=True)
class Chat:
    """A chat as the server keeps it."""

    id: int
    type: str
    title: str = "Room"
    is_forum: bool = False
    topics: set[int] = field(default_factory=set)
    moved_to: int | None = None
    blocked: bool = False
    ids: Any = field(default_factory=lambda: count(1))

    def as_json(self) -> dict[str, Any]:
        if self.type == "private":
            return {"id": self.id, "type": "private", "first_name": f"User {self.id}"}
        forum = {"is_forum": True} if self.is_forum else {}
        return {"id": self.id, "type": self.type, "title": self.title, **forum}


async def nothing(_: Call) -> None:
    pass


class TelegramWorld:
    """Use as `async with TelegramWorld() as world`; point the bot at `world.url`."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.before: Callable[[Call], Awaitable[None]] = nothing
        """Called before each call takes effect."""
        self.after: Callable[[Call], Awaitable[None]] = nothing
        """Called after each call took effect, before its answer goes out."""
        self.journal: list[Call] = []
        self.messages: dict[tuple[int, int], Shown] = {}
        """What people see, by chat and id, in the order in which it appeared."""
        self.commands: dict[str, list[Json]] = {}
        """The menus by language."""
        self.acknowledged: list[int] = []
        """The ids of messages that will not be delivered again."""
        self.per_minute: int | None = None
        """Flood control: how many messages and edits a chat takes in a minute."""
        self.webhook: str | None = None
        self.port = 0
        self._chats: dict[int, Chat] = {}
        self._updates: deque[dict[str, Any]] = deque()
        self._update_ids = count(1_000_001)
        self._dates = count(1_800_000_000)
        self._faults: defaultdict[str, deque[tuple[Fault, str | None]]] = defaultdict(deque)
        self._recent: defaultdict[int, deque[float]] = defaultdict(deque)
        self._poll: asyncio.Event | None = None
        """Set to end the poll that waits now, for the sake of another."""
        self._news = asyncio.Condition()
        self._closing = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        self._runner = web.AppRunner(app, access_log=None)
        self._server: asyncio.Server | None = None
        self.chat(1)

    @property
    def url(self) -> str:
        """For `platforms.telegram.base_url`."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await self.come_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self._tell()
        self.go_away()
        await self._runner.cleanup()

    async def come_back(self) -> None:
        """Listen (again), at the same address."""
        if self._server is None:
            assert self._runner.server is not None
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._runner.server, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    def go_away(self) -> None:
        """Refuse connections, and break those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        assert self._runner.server is not None
        for connection in list(self._runner.server.connections):
            if connection.transport is not None:
                connection.transport.abort()

    # -- people -----------------------------------------------------------------------------------------------------

    def chat(self, id_: int, type_: str | None = None, *, forum: bool = False, topics: Sequence[int] = ()) -> Chat:
        """The chat with this id, made unless it is there: private for people's ids, a group for others."""
        kind = type_ or ("private" if id_ > 0 else "supergroup" if id_ < -1_000_000_000_000 or forum else "group")
        chat = self._chats.setdefault(id_, Chat(id=id_, type=kind, is_forum=forum))
        chat.topics |= set(topics)
        return chat

    async def say(
        self,
        text: str | None,
        *,
        chat: int = 1,
        user: int = 2,
        message: int | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        kind: str | None = None,
        update: str = "message",
        **extra: Any,
    ) -> int:
        """Somebody says something; gives the message's id. `extra` joins the message as the wire carries it."""
        where = self.chat(chat, kind)
        number = next(where.ids) if message is None else message
        said: dict[str, Any] = {
            "message_id": number,
            "date": next(self._dates),
            "chat": {**where.as_json(), **({} if kind is None else {"type": kind})},
            "from": {"id": user, "is_bot": False, "first_name": f"User {user}"},
        }
        if text is not None:
            said |= {"text": text, "entities": _entities(text)}
        if thread is not None:
            said |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            said["reply_to_message"] = self._as_json(self.messages[chat, reply_to])
        await self.push({update: {**said, **extra}})
        return number

    async def push(self, update: Json) -> None:
        """An update, whatever it holds."""
        self._updates.append({"update_id": next(self._update_ids), **update})
        await self._tell()

    async def push_again(self, update_id: int, update: Json) -> None:
        """An update under a number of the test's choosing: a repeat, or one out of order."""
        self._updates.append({"update_id": update_id, **update})
        await self._tell()

    async def upgrade(self, chat: int, to: int) -> None:
        """A group becomes a supergroup: both chats say so, and the old one takes nothing any more."""
        old = self.chat(chat, "group")
        self.chat(to, "supergroup")
        await self.say(None, chat=chat, migrate_to_chat_id=to)
        await self.say(None, chat=to, migrate_from_chat_id=chat)
        old.moved_to = to

    def shown(self, chat: int | None = None) -> list[str]:
        """The texts that people see, in order."""
        return [one.text for one in self.messages.values() if chat in {None, one.chat}]

    def delete(self, chat: int, message: int) -> None:
        """Somebody deletes a message of the bot's."""
        del self.messages[chat, message]

    async def until(self, true: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something is true; looked at after every call."""
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(true)

    # -- faults -----------------------------------------------------------------------------------------------------

    def will(self, method: str, *faults: Fault, chat: int | None = None) -> None:
        """The next calls of a method (to a chat) go wrong like this, one after another."""
        self._faults[method].extend((fault, None if chat is None else str(chat)) for fault in faults)

    def _next_fault(self, call: Call) -> Fault | None:
        waiting = self._faults[call.method]
        if waiting and waiting[0][1] in {None, call.chat}:
            return waiting.popleft()[0]
        return None

    # -- the server -------------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        facts = {**request.query, **{name: str(value) for name, value in (await request.post()).items()}}
        call = Call(method=request.match_info["method"], facts=facts, at=time.monotonic())
        self.journal.append(call)
        await self._tell()
        if request.match_info["token"] != self.token:
            return _refusal(UNAUTHORIZED)
        await self.before(call)
        fault = self._next_fault(call)
        match fault:
            case Refused():
                return _refusal(fault)
            case Broken():
                return web.Response(
                    status=fault.code, text="<html><h1>Bad Gateway</h1></html>", content_type="text/html"
                )
            case Garbage():
                return web.Response(text=fault.body, content_type="application/json")
            case Dropped():
                return _hang_up(request)
            case Silent():
                await self._closing.wait()
                return _hang_up(request)
        try:
            result = await self._do(call)
        except No as no:
            return _refusal(no.refused)
        await self.after(call)
        await self._tell()
        return _hang_up(request) if isinstance(fault, Lost) else web.json_response({"ok": True, "result": result})

    async def _do(self, call: Call) -> Any:
        methods: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
            "getMe": lambda _: {**BOT, "can_join_groups": True},
            "deleteWebhook": self._delete_webhook,
            "setMyCommands": self._set_commands,
            "sendMessage": self._send,
            "editMessageText": self._edit,
            "sendChatAction": self._type,
        }
        if call.method == "getUpdates":
            return await self._get_updates(call.facts)
        if call.method not in methods:
            raise No(Refused(404, "Not Found"))
        return methods[call.method](call.facts)

    async def _get_updates(self, facts: Mapping[str, str]) -> list[Json]:
        if self.webhook is not None:
            raise No(Refused(409, "Conflict: can't use getUpdates method while webhook is active"))
        if self._poll is not None:
            self._poll.set()
        self._forget(int(facts.get("offset", 0)))
        await self._tell()
        mine = self._poll = asyncio.Event()
        allowed = json.loads(facts.get("allowed_updates", "[]"))
        try:
            async with asyncio.timeout(int(facts.get("timeout", 0))):
                await self._something(mine)
        except TimeoutError:
            return []
        finally:
            if self._poll is mine:
                self._poll = None
        if mine.is_set():
            raise No(CONFLICT)
        return [update for update in list(self._updates)[:100] if not allowed or set(update) & set(allowed)]

    async def _something(self, over: asyncio.Event) -> None:
        async with self._news:
            await self._news.wait_for(lambda: bool(self._updates) or over.is_set() or self._closing.is_set())

    def _forget(self, offset: int) -> None:
        for update in [update for update in self._updates if update["update_id"] < offset]:
            self._updates.remove(update)
            said = update.get("message") or update.get("channel_post") or {}
            if "message_id" in said:
                self.acknowledged.append(said["message_id"])

    def _delete_webhook(self, facts: Mapping[str, str]) -> bool:
        assert facts.get("drop_pending_updates", "false").lower() == "false"
        self.webhook = None
        return True

    def _set_commands(self, facts: Mapping[str, str]) -> bool:
        commands = json.loads(facts["commands"])
        for each in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", each["command"]) or not 1 <= len(each["description"]) <= 256:
                raise No(Refused(400, "Bad Request: BOT_COMMAND_INVALID"))
        self.commands[facts.get("language_code", "")] = commands
        return True

    def _send(self, facts: Mapping[str, str]) -> Json:
        chat = self._reachable(facts)
        text, entities = self._words(facts)
        reply_to = self._reply_to(chat, facts)
        number = next(chat.ids)
        thread = int(facts["message_thread_id"]) if "message_thread_id" in facts else None
        shown = Shown(id=number, chat=chat.id, text=text, entities=entities, thread=thread, reply_to=reply_to)
        self.messages[chat.id, number] = shown
        return self._as_json(shown)

    def _edit(self, facts: Mapping[str, str]) -> Json:
        chat = self._reachable(facts)
        text, entities = self._words(facts)
        old = self.messages.get((chat.id, int(facts["message_id"])))
        if old is None:
            raise No(Refused(400, "Bad Request: message to edit not found"))
        if (old.text, old.entities) == (text, entities):
            raise No(
                Refused(
                    400,
                    "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                    "the same as a current content and reply markup of the message",
                )
            )
        new = replace(old, text=text, entities=entities, drafts=(*old.drafts, old.text))
        self.messages[chat.id, old.id] = new
        return self._as_json(new)

    def _type(self, facts: Mapping[str, str]) -> bool:
        self._reachable(facts, counts=False)
        return True

    def _reachable(self, facts: Mapping[str, str], *, counts: bool = True) -> Chat:
        """The chat, if the bot may write there now."""
        chat = self._chats.get(int(facts["chat_id"]))
        if chat is None:
            raise No(CHAT_NOT_FOUND)
        if chat.moved_to is not None:
            upgraded = "Bad Request: group chat was upgraded to a supergroup chat"
            raise No(Refused(400, upgraded, {"migrate_to_chat_id": chat.moved_to}))
        if chat.blocked:
            raise No(BLOCKED)
        if "message_thread_id" in facts and int(facts["message_thread_id"]) not in chat.topics:
            raise No(Refused(400, "Bad Request: message thread not found"))
        if counts and self.per_minute is not None:
            self._control_flood(chat.id, self.per_minute)
        return chat

    def _control_flood(self, chat: int, limit: int) -> None:
        recent, now = self._recent[chat], time.monotonic()
        while recent and recent[0] < now - 60:
            recent.popleft()
        if len(recent) >= limit:
            raise No(flood(int(recent[0] + 60 - now) + 1))
        recent.append(now)

    def _words(self, facts: Mapping[str, str]) -> tuple[str, tuple[Json, ...]]:
        text = facts.get("text", "")
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2
        if not text.strip():
            raise No(Refused(400, "Bad Request: message text is empty"))
        if units > LONGEST:
            raise No(Refused(400, "Bad Request: message is too long"))
        entities = tuple(json.loads(facts.get("entities", "[]")))
        if any(
            each["offset"] < 0 or each["length"] < 1 or each["offset"] + each["length"] > units for each in entities
        ):
            raise No(Refused(400, "Bad Request: ENTITY_BOUNDS_INVALID"))
        return text, entities

    def _reply_to(self, chat: Chat, facts: Mapping[str, str]) -> int | None:
        reply = json.loads(facts.get("reply_parameters", "null"))
        return None if reply is None else int(reply["message_id"])

    def _as_json(self, shown: Shown) -> dict[str, Any]:
        thread = {} if shown.thread is None else {"message_thread_id": shown.thread, "is_topic_message": True}
        return {
            "message_id": shown.id,
            "date": next(self._dates),
            "chat": self._chats[shown.chat].as_json(),
            "from": BOT,
            "text": shown.text,
            "entities": list(shown.entities),
            **thread,
        }

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


def _entities(text: str) -> list[Json]:
    """What the app marks by itself: a command at the start, and mentions."""
    command = COMMAND.match(text)
    found = [("bot_command", command)] if command else []
    found += [("mention", each) for each in MENTION.finditer(text) if command is None or each.start() >= command.end()]
    return [{"type": kind, "offset": _units(text[: each.start()]), "length": _units(each[0])} for kind, each in found]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _refusal(refused: Refused) -> web.Response:
    facts: dict[str, Any] = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        facts["parameters"] = dict(refused.parameters)
    return web.json_response(facts, status=refused.code)


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
