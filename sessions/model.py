"""The values that the store keeps and gives back. Frozen, valid at birth, free of SQL."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType

SessionKey = NewType("SessionKey", str)
"""Where a conversation is held: `agent:<profile>:<platform>:…`. Made by gateway/routing.py alone."""
SessionId = NewType("SessionId", str)
"""One segment of a conversation: `YYYYMMDD_HHMMSS_<hex>`."""
ConversationId = NewType("ConversationId", str)
"""A lineage of segments: the id of its first one."""
TurnId = NewType("TurnId", str)


class Role(StrEnum):
    """Who says a message, in the words that model providers use."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Kind(StrEnum):
    """What a row is for. Search, bookends and counters look at talk and tool rows only."""

    TALK = "talk"
    TOOL = "tool"
    SUMMARY = "summary"
    """Stands for rows that a view leaves out."""
    CARRIED = "carried"
    """History that a stateless caller brought along."""


class Link(StrEnum):
    """How a session came from its parent."""

    COMPRESSION = "compression"
    BRANCH = "branch"
    DELEGATE = "delegate"
    RESET = "reset"


class Outcome(StrEnum):
    """What became of an inbound event; each ends in exactly one."""

    ANSWERED = "answered"
    MERGED = "merged"
    COMMAND = "command"
    REJECTED = "rejected"
    ABANDONED = "abandoned"
    DEAD = "dead"


class Sending(StrEnum):
    """Where a delivery stands. SENT, UNKNOWN and DEAD are ends."""

    STREAMING = "streaming"
    """Its first piece is visible while the turn still runs."""
    DUE = "due"
    IN_FLIGHT = "in_flight"
    SENT = "sent"
    UNKNOWN = "unknown"
    """It may have been shown, and was shown once more with a mark."""
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model asks for a tool. `arguments` is the JSON text that the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one or more model calls. `cost_usd` is 0 where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Whose words these are: the platform's stable id, and the name they chose."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A row to append."""

    role: Role
    content: str
    at: float
    kind: Kind = Kind.TALK
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    tokens: int | None = None
    finish_reason: str | None = None
    sender: Person | None = None
    platform_message_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.role is Role.TOOL) != (self.tool_call_id is not None):
            raise ValueError("a tool result names its call, and nothing else does")
        if self.tool_calls and self.role is not Role.ASSISTANT:
            raise ValueError("only the assistant calls tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(NewMessage):
    """A row as it stands. `id` grows with time over the whole store."""

    id: int
    session_id: SessionId
    turn: TurnId | None = None
    undone_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEntry:
    """One row of an ancestor (or of the session itself) that a view keeps, as it is or with a placeholder."""

    message_id: int
    replacement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One segment of a conversation, with what lists and filters ask for."""

    id: SessionId
    conversation: ConversationId
    source: str
    """The entry it came through: a platform's instance name, `api-server`, `cli` …"""
    started_at: float
    last_active: float
    key: SessionKey | None = None
    parent: SessionId | None = None
    link: Link | None = None
    user_id: str | None = None
    """Whose it is; None when a room shares it."""
    chat_id: str | None = None
    chat_kind: str | None = None
    thread_id: str | None = None
    title: str | None = None
    title_by_person: bool = False
    model: str | None = None
    provider: str | None = None
    model_config: str | None = None
    system_prompt: str | None = None
    tools: str | None = None
    """The tool list as JSON, as the first request sent it."""
    usage: Usage = Usage()
    message_count: int = 0
    tool_call_count: int = 0
    preview: str = ""
    """The first words that a person said, on one line."""
    cwd: str | None = None
    git_branch: str | None = None
    ended_at: float | None = None
    end_reason: str | None = None
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What a session is born with, should one be needed."""

    id: SessionId
    source: str
    at: float
    origin: str
    """The origin as JSON: where its answers go."""
    user_id: str | None = None
    chat_id: str | None = None
    chat_kind: str | None = None
    thread_id: str | None = None
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    parent: SessionId | None = None
    link: Link | None = None
    """How it comes from `parent`: both are given, or neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The stable start of every request of a session: kept so that providers can cache it."""

    model: str
    provider: str
    system_prompt: str
    tools: str

    def on(self, session: Session) -> Session:
        """The session with this start."""
        return replace(
            session, model=self.model, provider=self.provider, system_prompt=self.system_prompt, tools=self.tools
        )


@dataclass(frozen=True, slots=True)
class Room:
    """A chat whose shared conversation its members may read."""

    source: str
    chat_id: str
    thread_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose sessions a reader may see. Every read takes one."""

    owner: bool = False
    source: str | None = None
    user_id: str | None = None
    rooms: frozenset[Room] = frozenset()

    def allows(self, session: Session) -> bool:
        """The rule itself; the SQL in the store says the same."""
        if self.owner:
            return True
        if session.user_id is not None:
            return (session.source, session.user_id) == (self.source, self.user_id)
        return Room(session.source, session.chat_id or "", session.thread_id) in self.rooms


OWNER = Scope(owner=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """Where a key leads now. `origin` is JSON."""

    key: SessionKey
    session: SessionId
    origin: str
    updated_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to think about a conversation. Fencing is by `generation` alone; the expiry only frees the dead."""

    conversation: ConversationId
    owner: str
    generation: int
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An inbound event to record. `origin` and `payload` are JSON; the store does not read them."""

    platform: str
    chat_id: str
    event_id: str
    key: SessionKey
    origin: str
    payload: str
    at: float
    node: str | None = None
    """Set when the asker is a connection of one process and goes with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """A recorded event. `payload` is None once it has its outcome."""

    id: int
    platform: str
    chat_id: str
    event_id: str
    key: SessionKey
    origin: str
    payload: str | None
    received_at: float
    node: str | None = None
    turn: TurnId | None = None
    outcome: Outcome | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The result of recording an event: a repeat shows the row that was there before."""

    row: InboxRow
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """An outcome for some inbound events."""

    rows: tuple[int, ...]
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """The duty to show words. `origin` is JSON; `key` is unique for ever."""

    key: str
    platform: str
    chat_id: str
    origin: str
    markdown: str
    at: float
    reply_to: str | None = None
    answers: str | None = None
    """The event id of the question."""
    session: SessionId | None = None
    turn: TurnId | None = None
    node: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(NewDelivery):
    """A duty as it stands. `message_ids` are the pieces that are visible, in order."""

    id: int
    state: Sending
    attempts: int
    not_before: float
    message_ids: tuple[str, ...] = ()
    why: str = ""
    live_id: str | None = None
    """The message that shows the words so far: finishing edits it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something belongs: the key of its conversation, and its origin as JSON."""

    key: SessionKey
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A chat goes on under the id `to`."""

    platform: str
    chat_id: str
    to: str
    at: float
    follow: Callable[[str], Place | None]
    """From an origin to where it belongs now; None: it is of another chat. Pure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A turn that was started. `fruitless` counts past starts in a row that added no row to the one they began with."""

    id: TurnId
    key: SessionKey
    session_id: SessionId
    started_at: float
    fruitless: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Everything that one write of a turn changes, in one transaction, fenced by the turn's lease."""

    turn: TurnId
    session: SessionId
    at: float
    messages: tuple[NewMessage, ...] = ()
    usage: Usage = Usage()
    api_calls: int = 0
    snapshot: Snapshot | None = None
    key: SessionKey | None = None
    """Given with the first write of a turn: the key whose turn it is."""
    runs: tuple[int, ...] = ()
    """Inbox rows that the turn takes up."""
    settles: tuple[Settlement, ...] = ()
    deliveries: tuple[NewDelivery, ...] = ()
    ends: str | None = None
    """The turn's end in a word, when this is its last write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A compression's result: the child's view and summary. The child's own rows follow them."""

    child: SessionId
    head: tuple[ViewEntry, ...]
    summary: NewMessage | None
    tail: tuple[ViewEntry, ...]
    at: float
    snapshot: Snapshot | None = None
    """The child's own stable start: a compression is the one place where it is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list: the newest first, `limit` rows, only those active before `before`."""

    limit: int = 20
    before: float | None = None
    source: str | None = None
    workspace: str | None = None
    """Part of the folder's path, whatever the case of ASCII letters."""
    include_archived: bool = False
    include_machines: bool = True


MACHINE_SOURCES = frozenset({"batch", "cron", "webhook"})
"""Entries that no person sits behind; lists and searches put people's conversations first."""


class Order(StrEnum):
    """How hits are sorted: by relevance, or by time on top of it."""

    RELEVANCE = "relevance"
    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. `text` may be anything a person types."""

    text: str
    limit: int = 3
    order: Order = Order.RELEVANCE
    roles: frozenset[Role] = frozenset({Role.USER, Role.ASSISTANT})
    exclude: ConversationId | None = None
    """The conversation that asks: its own words do not crowd out the rest."""
    window: int = 5
    bookends: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some messages of one conversation around an anchor."""

    session: Session
    anchor: int
    messages: tuple[Message, ...]
    before: int
    """How many messages of talk come before the anchor inside the window; fewer than asked means the start."""
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A conversation that matches, with enough around the match to understand it."""

    session: Session
    snippet: str
    window: Window
    bookend_start: tuple[Message, ...]
    bookend_end: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search brought. `partial`: the index had nothing and the scan ran out of its time."""

    hits: tuple[Hit, ...]
    partial: bool = False
    hidden: int = 0
    """Matching conversations that were left out because they are the asking one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The books of the inbox and the outbox: received = open + the sum of the outcomes, and so for deliveries."""

    inbound: dict[str, int] = field(default_factory=dict)
    outbound: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What went with a person."""

    conversations: int
    shared: int
    """Messages in conversations that others share: their words were erased, the rows stay."""
    kept: tuple[ConversationId, ...] = ()
    """Conversations that could not go: a turn thinks about them, or somebody else's branch shows rows of them."""
