"""What the rest of Hermes asks of the store, in operations of the domain.

Two implementations keep these promises under one contract suite: SQLite (sessions/store.py and its siblings)
and the in-memory twin (sessions/memory.py). Nothing here speaks of SQL, files or connections, and nothing
assumes that one process is alone: leases and generations decide who may write.
"""

from collections.abc import Sequence
from typing import Protocol

from hermes.sessions.filters import Filter, Lineage, Stamp
from hermes.sessions.model import (
    Arrival,
    Birth,
    Claim,
    ConversationId,
    Counts,
    Delivery,
    Forgotten,
    Found,
    InboxRow,
    Lease,
    Message,
    Move,
    NewDelivery,
    Page,
    Query,
    RouteRow,
    Scope,
    Sending,
    Session,
    SessionId,
    SessionKey,
    Settlement,
    Split,
    Step,
    TurnId,
    TurnRow,
    ViewEntry,
    Window,
)


class Routes(Protocol):
    """The routing index: where a key leads."""

    async def open(self, key: SessionKey, birth: Birth) -> Session:
        """The live session behind `key`, made from `birth` if there is none. The origin of `birth` is recorded."""
        ...

    async def find(self, key: SessionKey) -> Session | None:
        """The live session behind `key`, if there is one."""
        ...

    async def bind(self, key: SessionKey, conversation: ConversationId, *, origin: str, at: float) -> Session:
        """Lead `key` to an existing conversation; gives its tip. Raises SessionNotFound."""
        ...

    async def start_over(self, lease: Lease, key: SessionKey, birth: Birth, *, reason: str) -> Session:
        """End the live session with `reason` and lead `key` to a new conversation that knows its predecessor.

        One transaction. Raises TitleTaken, LeaseLost.
        """
        ...

    async def routes(self) -> tuple[RouteRow, ...]:
        """The whole index, by key."""
        ...

    async def key_of(self, conversation: ConversationId) -> tuple[SessionKey, str] | None:
        """The key that last led to the conversation, and its origin as JSON."""
        ...


class SessionStore(Routes, Protocol):
    """Sessions and their rows."""

    async def commit(self, lease: Lease, step: Step) -> tuple[Message, ...]:
        """Write `step` whole or not at all; gives the appended rows. Raises LeaseLost, TakenBack, StoreLocked.

        Counters, usage, preview and last activity of the session move with it.
        """
        ...

    async def get(self, session: SessionId, scope: Scope) -> Session:
        """Exactly this segment. Raises SessionNotFound, also when `scope` does not allow it."""
        ...

    async def tip(self, conversation: ConversationId) -> Session:
        """The conversation's live segment. Raises SessionNotFound."""
        ...

    async def resolve(self, reference: str, scope: Scope) -> Session:
        """The live tip behind an exact id, a title (of any segment), a unique prefix of an id, or `latest`.

        Raises SessionNotFound, AmbiguousSession.
        """
        ...

    async def latest(self, source: str, scope: Scope) -> Session:
        """The tip that was last active among those of `source`. Raises SessionNotFound."""
        ...

    async def list(self, page: Page, scope: Scope) -> tuple[Session, ...]:
        """Tips, last active first; one row a conversation; empty conversations are left out."""
        ...

    async def history(self, session: SessionId) -> tuple[Message, ...]:
        """What the model is shown: the view resolved, then the session's own rows; undone rows are gone."""
        ...

    async def transcript(
        self, conversation: ConversationId, scope: Scope, *, after: int = 0, limit: int = 500
    ) -> tuple[Message, ...]:
        """What people said and got, over all segments, each row once, by id; no summaries, no undone rows."""
        ...

    async def rename(self, session: SessionId, title: str | None, *, by_person: bool) -> Session:
        """Set the conversation's title. A title by a person is never replaced by one that is not.

        Raises TitleTaken (people), while a clash of a made title is numbered ` #2`, ` #3` …
        """
        ...

    async def end(self, session: SessionId, *, reason: str, at: float) -> None:
        """Close a session that nobody is in any more; the first reason stays. Speaking in it again reopens it."""
        ...

    async def archive(self, conversation: ConversationId, scope: Scope, *, archived: bool) -> None:
        """Hide the whole lineage from lists, or show it again."""
        ...

    async def select(self, wanted: Filter, scope: Scope) -> tuple[Lineage, ...]:
        """Conversations that meet `wanted`, the first begun first, also such in which nothing was said."""
        ...

    async def stamp(self, conversation: ConversationId, scope: Scope) -> Stamp:
        """What a conversation holds now, with its delegates. Raises SessionNotFound."""
        ...

    async def delete(
        self, conversation: ConversationId, scope: Scope, *, now: float, unchanged: Stamp | None = None
    ) -> None:
        """Remove the whole lineage with its delegates, rows and routes; from the first moment nobody sees it.

        Raises SessionNotFound; LeaseBusy while a turn thinks about it; StillNeeded while a branch shows rows of it;
        Changed when its stamp is not `unchanged` any more.
        """
        ...

    async def split(self, lease: Lease, parent: SessionId, split: Split) -> Session:
        """Close `parent`, make its child with the view and the summary, and move the tip: one transaction."""
        ...

    async def replace(self, lease: Lease, session: SessionId, view: Sequence[ViewEntry]) -> None:
        """Persist a pruned view of the session without a split: its own rows so far, some with placeholders."""
        ...

    async def mark_undone(self, lease: Lease, session: SessionId, first: int, *, by: int) -> int:
        """Take the rows from `first` on out of the conversation; gives how many. `by` is the row that did it."""
        ...

    async def answer_of(self, turn: TurnId) -> Message | None:
        """The last words of the assistant in a turn."""
        ...

    async def turn_messages(self, turn: TurnId) -> tuple[Message, ...]:
        """All rows that a turn appended, in order."""
        ...


class Leases(Protocol):
    """One turn a conversation, across processes."""

    async def take(
        self,
        conversation: ConversationId,
        *,
        owner: str,
        place: str,
        now: float,
        ttl: float,
        force: bool = False,
    ) -> Lease:
        """The lease with a fresh generation. Raises LeaseBusy while somebody's has not run out, the owner's own too:
        two keys of one process may lead to one conversation.

        `force` takes it from a living owner, whose later writes raise LeaseLost.
        """
        ...

    async def renew(self, lease: Lease, *, now: float, ttl: float) -> Lease:
        """Push the expiry. Raises LeaseLost."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give it back; a lease that is lost already is no error."""
        ...

    async def bury(self, *, owner_prefix: str, except_owner: str) -> None:
        """Free what owners hold that are known to be dead; should one live after all, its writes are fenced off."""
        ...


class Inbox(Protocol):
    """The durable queue of events. It is the only queue: mailboxes are its wake-up."""

    async def claim(
        self, arrival: Arrival, *, settle: Settlement | None = None, replies: Sequence[NewDelivery] = ()
    ) -> Claim:
        """Record an event once. `settle` (its `rows` are ignored) gives it its outcome at once, with `replies`."""
        ...

    async def find(self, platform: str, chat_id: str, event_id: str) -> InboxRow | None: ...

    async def pending(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        """Events of `key` that no turn has taken up, in order of arrival."""
        ...

    async def waiting(self, key: SessionKey, limit: int = 100) -> tuple[InboxRow, ...]:
        """Events of `key` that have no outcome yet, taken up or not, in order of arrival."""
        ...

    async def waiting_keys(self, platforms: Sequence[str], *, node: str) -> tuple[SessionKey, ...]:
        """Keys with open events that this process may work on: of its platforms, bound to no other node."""
        ...

    async def unfinished(self, key: SessionKey) -> tuple[TurnRow, tuple[InboxRow, ...]] | None:
        """A turn of `key` that began and never ended, with the events that it took up."""
        ...

    async def restart(self, lease: Lease, turn: TurnId) -> TurnRow:
        """Begin a turn again. If its last start added a row, `fruitless` falls to 0, else it grows by one."""
        ...

    async def forgive(self, turn: TurnId) -> None:
        """The last start does not count: the process was asked to stop."""
        ...

    async def take_back(self, platform: str, chat_id: str, event_id: str, *, why: str, at: float) -> InboxRow | None:
        """End an event as abandoned, unless a turn has it already; gives the row as it is then, None when unknown."""
        ...

    async def settle(self, settlement: Settlement, *, at: float, deliveries: Sequence[NewDelivery] = ()) -> None:
        """Give open events their outcome, and drop their payloads. Settled ones stay as they are.

        A turn all of whose events are settled by this has ended.
        """
        ...

    async def connected(self) -> tuple[str, ...]:
        """Nodes whose connections have events or deliveries open."""
        ...

    async def abandon(self, node: str, *, at: float) -> int:
        """End what the connections of a node that is gone left open: events (gives how many), turns, deliveries."""
        ...


class Outbox(Protocol):
    """The duty to show words, kept until it is done."""

    async def add(self, deliveries: Sequence[NewDelivery]) -> None:
        """Record duties outside a turn. A key that is there already is left as it is."""
        ...

    async def stream(self, lease: Lease, duty: NewDelivery) -> Delivery:
        """The record of an answer that is being written, made unless it is there. Raises LeaseLost.

        It is not due and holds nothing up. The words come with the turn's last write, under the same key; if that
        write brings none, the record ends as dead.
        """
        ...

    async def live(self, lease: Lease, delivery: int, message_id: str) -> None:
        """The words so far are shown by this message. Raises LeaseLost."""
        ...

    async def due(self, platforms: Sequence[str], *, node: str, now: float, limit: int = 100) -> tuple[Delivery, ...]:
        """Duties whose time has come, oldest first, at most one chain a chat: never past an older one of its chat."""
        ...

    async def next_due(self, platforms: Sequence[str], *, node: str) -> float | None:
        """When the earliest duty that no older one of its chat holds up comes due."""
        ...

    async def take_off(self, delivery: int) -> None:
        """It is about to be shown: from here on a crash leaves its fate open."""
        ...

    async def shown(self, delivery: int, message_ids: Sequence[str]) -> None:
        """These pieces are visible."""
        ...

    async def settle(
        self, delivery: int, state: Sending, *, at: float, message_ids: Sequence[str] = (), why: str = ""
    ) -> None:
        """SENT, UNKNOWN or DEAD; the ids join the rows that hold the words."""
        ...

    async def postpone(self, delivery: int, *, until: float, why: str) -> None:
        """It was not shown; try again later. Counts an attempt."""
        ...

    async def of_turn(self, turn: TurnId) -> tuple[Delivery, ...]:
        """What a turn gave to be shown, whatever became of it."""
        ...

    async def in_flight(self, platforms: Sequence[str], *, node: str) -> tuple[Delivery, ...]:
        """Duties that a process died over: asked once, before this process sends anything."""
        ...


class Chats(Protocol):
    """Chats that go on under another id."""

    async def move(self, move: Move) -> tuple[SessionKey, ...]:
        """Routes, homes, and whatever waits or is owed follow; gives the keys under which something waits now.

        Moving twice changes nothing more.
        """
        ...

    async def aliases(self) -> tuple[tuple[str, str, str], ...]:
        """Platform, old id, newest id, of every chat that has moved."""
        ...


class Bookmarks(Protocol):
    """How far each platform's adapter has read."""

    async def find(self, platform: str, name: str) -> tuple[str, float] | None:
        """What was kept last, and when."""
        ...

    async def keep(self, platform: str, name: str, value: str, *, at: float) -> None: ...


class Search(Protocol):
    """Finding what was said. No input raises; bad syntax is searched as words."""

    async def discover(self, query: Query, scope: Scope) -> Found: ...

    async def scroll(self, session: SessionId, around: int, window: int, scope: Scope) -> Window:
        """Messages around an anchor of the session's conversation. Raises SessionNotFound."""
        ...


class Roles(Protocol):
    """Who was let in by pairing, and as what."""

    async def request(self, platform: str, user_id: str, *, name: str, code: str, at: float, ttl: float) -> str | None:
        """The open code of this stranger (the one there is, or `code`), or None when they must wait.

        At most 3 open codes a platform and one new code in ten minutes a person.
        """
        ...

    async def requests(self, now: float) -> tuple[tuple[str, str, str, float], ...]:
        """Open requests: platform, user id, name, until when."""
        ...

    async def approve(self, platform: str, code: str, *, role: str, at: float) -> str:
        """Redeem a code once; gives the user id. Raises UserError: unknown, run out, or too many wrong tries."""
        ...

    async def revoke(self, platform: str, user_id: str) -> bool: ...

    async def role_of(self, platform: str, user_id: str) -> str | None: ...

    async def granted(self) -> tuple[tuple[str, str, str, float], ...]:
        """Grants: platform, user id, role, since when."""
        ...


class Books(Protocol):
    """Figures for people and for health checks."""

    async def counts(self) -> Counts: ...

    async def data_version(self) -> int:
        """Changes whenever another process has written."""
        ...

    async def purge(self, *, before: float) -> int:
        """Drop events and deliveries that were settled before then; their counts stay in the books. Gives how many."""
        ...

    async def mend_index(self) -> int:
        """Feed a chunk of what the search index once refused; gives how many rows it took."""
        ...

    async def close(self) -> None:
        """Write what waits, and give the store back."""
        ...


class Upkeep(Protocol):
    """What is done for a store that lives for years; each call works in small steps beside turns."""

    async def claim(self, job: str, *, now: float, every: float) -> bool:
        """Whether it is time for `job`, which is done once in `every` seconds whatever process asks.

        Who is told so says `done` at the end; one that never does is begun again by somebody after ten minutes.
        """
        ...

    async def done(self, job: str, *, now: float) -> None:
        """The job that was claimed is done."""
        ...

    async def close_idle(self, *, before: float, now: float) -> int:
        """End open conversations that were last active before then, unless a turn thinks about one; gives how many."""
        ...

    async def clear(self) -> None:
        """Finish deletions that a stop has interrupted."""
        ...

    async def shrink(self) -> int:
        """Give the space of what was deleted back to the disk; gives how many pages."""
        ...

    async def forget(self, platform: str, source: str, user_id: str, *, now: float) -> Forgotten:
        """Erase a person: their conversations, their words in rooms, what is settled in their chats, their rights.

        Nothing of it can be read in the file afterwards, apart from backups.
        """
        ...


class Store(SessionStore, Books, Protocol):
    """The whole store, one port a concern."""

    @property
    def leases(self) -> Leases: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def chats(self) -> Chats: ...
    @property
    def bookmarks(self) -> Bookmarks: ...
    @property
    def search(self) -> Search: ...
    @property
    def roles(self) -> Roles: ...
    @property
    def upkeep(self) -> Upkeep: ...
