"""What a platform is to the gateway: plain values in, plain values out.

A platform module holds a wire and nothing else: no sessions, no retries, no splitting, no access rules.
Those exist once, in the gateway.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from hermes.clock import Clock

if TYPE_CHECKING:
    from aiohttp import web

C = TypeVar("C")


class ChatKind(StrEnum):
    """Who reads a chat: one person, a group, or the followers of a channel."""

    DIRECT = "dm"
    GROUP = "group"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a message came from, and so where its answer goes. Ids are canonical, names are data."""

    platform: str
    """The instance's name in the configuration: `telegram`, `telegram@work`."""
    chat_id: str
    kind: ChatKind = ChatKind.DIRECT
    thread_id: str | None = None
    user_id: str | None = None
    chat_name: str = ""
    user_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message or goes with one; `path` lies below the media cache."""

    kind: str
    mime: str
    path: str
    name: str = ""


class Lifetime(StrEnum):
    """How long somebody waits for the answer."""

    CHAT = "chat"
    """The chat stays: after a crash the question is taken up again."""
    CONNECTION = "connection"
    """The asker is a connection: when it ends, the question is abandoned and nothing is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A line of history that the caller brings along (a stateless HTTP request)."""

    role: str
    """`user` or `assistant`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One event from a platform that may want an answer."""

    event_id: str
    """Unique within platform + chat, the same on every redelivery: `m:<id>`, `e:<id>:<edit time>`, `cb:<id>`."""
    origin: Origin
    text: str
    at: float
    reply_to: str | None = None
    quoted: str | None = None
    attachments: tuple[Attachment, ...] = ()
    mentions_me: bool = False
    edits: str | None = None
    """The event id of the message that this one corrects."""
    lifetime: Lifetime = Lifetime.CHAT
    alone: bool = False
    """It wants an answer of its own: a request is never merged with others or steered into a running turn."""
    continues: str | None = None
    """A session that an owner's client names by id; the answer belongs to it."""
    carried: tuple[Carried, ...] = ()
    instructions: str = ""
    """A caller's own system text, laid over the core prompt when the session starts."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hangup:
    """The connection that asked `event_id` is gone: nobody waits for its answer any more."""

    origin: Origin
    event_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A chat goes on under another id, as a Telegram group that became a supergroup: what is kept for it follows."""

    platform: str
    """The instance's name."""
    chat_id: str
    to: str
    """Its id from now on."""


Event = Inbound | Hangup | Moved


class Standing(StrEnum):
    """What became of an event that was handed over."""

    FRESH = "fresh"
    """Recorded just now; an answer will come."""
    PENDING = "pending"
    """Seen before and still being worked on; its one answer will come."""
    SETTLED = "settled"
    """Seen before and finished; `answer` holds the words, if there were any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What an answer cost, in the model's tokens."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """One message to show. `key` is the idempotency key: the same key is never shown twice."""

    key: str
    origin: Origin
    markdown: str
    reply_to: str | None = None
    """The platform's id of the message that this one answers."""
    attachments: tuple[Attachment, ...] = ()
    answers: str | None = None
    """The event id of the question, for platforms that pair requests with responses."""
    session: str | None = None
    """The session that the words belong to, for clients that show or name it."""
    tokens: Tokens = Tokens()
    plain: bool = False
    """Show the words as they stand: the platform did not understand them when they were formatted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The event is on disk: the platform may be told so."""

    standing: Standing
    answer: Outbound | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The platform's ids of the messages that are now visible."""

    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the platform can take at once."""

    text: int
    """The longest message, counted by `measure`."""
    measure: Callable[[str], int] = len
    """Characters, UTF-16 units or bytes, with the platform's own overhead."""
    edits_per_minute: int = 20
    idempotent_sends: bool = False
    """Sending the same key again cannot show the words twice."""


class Emit(Protocol):
    """Hand an event to the gateway. When it returns, the event is safe on disk and may be acknowledged."""

    async def __call__(self, event: Event, /) -> Accepted: ...


class PlatformAdapter(Protocol):
    """The whole duty of a platform."""

    limits: Limits

    async def listen(self, emit: Emit) -> None:
        """Receive until cancelled: entering connects, cancelling leaves. Raises PlatformError when the link is lost."""
        ...

    async def send(self, out: Outbound) -> Receipt:
        """Show one message. Raises PlatformError, never returns a failure."""
        ...


@runtime_checkable
class CanEdit(Protocol):
    """The platform can change a message that it has shown."""

    async def edit(self, message_id: str, out: Outbound) -> None:
        """Make the message show `out` instead; what it shows already is no error.

        Raises PlatformError: Rejected with GONE when the message is not there any more.
        """
        ...


@runtime_checkable
class CanType(Protocol):
    """The platform can show that an answer is being written."""

    async def typing(self, origin: Origin) -> None:
        """Show it for some seconds; it fades by itself. Raises PlatformError."""
        ...


@runtime_checkable
class CanOpenThread(Protocol):
    """The platform can open a fresh thread below a chat."""

    async def open_thread(self, origin: Origin, title: str) -> Origin: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A glimpse of a running turn. Best effort: a lost glimpse costs nothing, the Outbound holds it all."""

    origin: Origin
    answers: str
    """The event id of the question."""
    session: str
    text: str = ""
    """Words that join the answer so far."""
    tool: str | None = None
    """A tool that starts, or with `done`, has ended."""
    done: bool = False


@runtime_checkable
class CanStream(Protocol):
    """The platform shows words as they are thought. Must not wait: a slow client loses glimpses, not the turn."""

    def progress(self, glimpse: Progress) -> None: ...


class Pulse:
    """When a platform last gave a sign of life: a poll that was answered, a heartbeat.

    `silence` is the number of seconds without one after which the link is dead, above the platform's own rhythm.
    """

    def __init__(self, clock: Clock, *, silence: float) -> None:
        self._clock = clock
        self._felt = clock.monotonic()
        self.silence = silence
        self.last: float | None = None
        """Seconds since the epoch; None: there was none yet."""

    def beat(self) -> None:
        """The platform lives."""
        self.last = self._clock.now()
        self.rest()

    def rest(self) -> None:
        """Start to count anew, without a sign of life: the link is being opened."""
        self._felt = self._clock.monotonic()

    def still_for(self) -> float:
        """Seconds since the last sign, or since counting began."""
        return self._clock.monotonic() - self._felt


@runtime_checkable
class HasPulse(Protocol):
    """The platform answers even when nobody speaks, so that its silence means something.

    Such an adapter is up from its first beat on, not from the moment it starts to listen.
    """

    pulse: Pulse


class Guard(StrEnum):
    """Who may call a route. The gateway's HTTP server holds the keys; adapters only name the door."""

    OPEN = "open"
    """Anybody: static pages without data, and callbacks that carry a signature of their own."""
    OWNER = "owner"
    """The secret as bearer token, or the browser's login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One HTTP address that an adapter answers."""

    method: str
    path: str
    handler: "Callable[[web.Request], Awaitable[web.StreamResponse]]"
    guard: Guard


@runtime_checkable
class CanServe(Protocol):
    """The platform speaks HTTP: its routes are mounted on the gateway's one server."""

    def routes(self) -> Sequence[Route]: ...


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far something was read, and when that was kept (seconds since the epoch)."""

    value: str
    at: float


class Bookmarks(Protocol):
    """An adapter's own places in what it reads, kept over restarts. Raises StoreError."""

    async def find(self, name: str) -> Bookmark | None: ...

    async def keep(self, name: str, value: str) -> None:
        """On disk when it returns."""
        ...


class LooseBookmarks:
    """Bookmarks that last as long as the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, Bookmark] = {}

    async def find(self, name: str) -> Bookmark | None:
        return self._kept.get(name)

    async def keep(self, name: str, value: str) -> None:
        self._kept[name] = Bookmark(value, self._clock.now())


Menu = Mapping[str, Mapping[str, str]]
"""What people can choose from: by language (`en`, `zh`), each command's name and a line about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an adapter is given when it is opened."""

    instance: str
    """Its name in the configuration; the platform part of every origin it makes."""
    clock: Clock
    cache: Path
    """Where media may be kept."""
    bookmarks: Bookmarks
    model_name: str = "hermes"
    """What the agent calls itself to clients that list models."""
    menu: Menu = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Platform(Generic[C]):
    """What a platform module exports as PLATFORM: the target of its entry point."""

    name: str
    config: type[C]
    """A pydantic model: the block below `platforms.<name>`, without `enabled`."""
    open: Callable[[C, Surroundings], AbstractAsyncContextManager[PlatformAdapter]]
