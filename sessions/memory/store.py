"""The twin itself: sessions, their rows and views, and where keys lead."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from hermes.errors import AmbiguousSession, LeaseLost, SessionNotFound, TitleTaken
from hermes.sessions.filters import Filter, Lineage, Stamp
from hermes.sessions.memory import lineages
from hermes.sessions.memory.chats import MemoryBookmarks, MemoryChats
from hermes.sessions.memory.leases import MemoryLeases, fence
from hermes.sessions.memory.queues import (
    MemoryInbox,
    MemoryOutbox,
    add_deliveries,
    drop_settled,
    drop_streams,
    settle,
    take_up,
)
from hermes.sessions.memory.roles import MemoryRoles
from hermes.sessions.memory.search import MemorySearch
from hermes.sessions.memory.tables import SAID, Route, Tables, Turn
from hermes.sessions.memory.upkeep import MemoryUpkeep
from hermes.sessions.model import (
    MACHINE_SOURCES,
    Birth,
    ConversationId,
    Counts,
    Kind,
    Lease,
    Link,
    Message,
    NewMessage,
    Page,
    Role,
    RouteRow,
    Scope,
    Session,
    SessionId,
    SessionKey,
    Snapshot,
    Split,
    Step,
    TurnId,
    TurnRow,
    Usage,
    ViewEntry,
)
from hermes.sessions.titles import next_free
from hermes.text import one_line

PREVIEW = 60
"""Characters of a session's preview."""


class MemoryStore:
    """The whole store in memory: the `Store` port."""

    def __init__(self) -> None:
        self._tables = Tables()
        self.leases = MemoryLeases(self._tables)
        self.inbox = MemoryInbox(self._tables)
        self.outbox = MemoryOutbox(self._tables)
        self.search = MemorySearch(self._tables)
        self.roles = MemoryRoles()
        self.chats = MemoryChats(self._tables)
        self.bookmarks = MemoryBookmarks()
        self.upkeep = MemoryUpkeep(self._tables, self.roles)

    # Routes

    async def open(self, key: SessionKey, birth: Birth) -> Session:
        route = self._tables.routes.get(key)
        if route is None:
            return self._bear(key, birth, title=birth.title and next_free(birth.title, self._is_taken))
        return await self.bind(key, route.conversation, origin=birth.origin, at=birth.at)

    async def find(self, key: SessionKey) -> Session | None:
        route = self._tables.routes.get(key)
        return None if route is None else self._tables.tip(route.conversation)

    async def bind(self, key: SessionKey, conversation: ConversationId, *, origin: str, at: float) -> Session:
        tip = self._tables.tip(conversation)
        self._tables.routes[key] = Route(conversation, origin, at)
        return self._tables.change(tip.id, ended_at=None, end_reason=None)

    async def start_over(self, lease: Lease, key: SessionKey, birth: Birth, *, reason: str) -> Session:
        fence(self._tables, lease)
        self._refuse_if_taken(birth.title, birth.id)
        old = self._tables.tip(lease.conversation)
        self._tables.change(old.id, ended_at=birth.at, end_reason=reason)
        return self._bear(key, replace(birth, parent=old.id, link=Link.RESET), title=birth.title)

    async def routes(self) -> tuple[RouteRow, ...]:
        return tuple(
            RouteRow(
                key=key,
                session=self._tables.tips[route.conversation],
                origin=route.origin,
                updated_at=route.updated_at,
            )
            for key, route in sorted(self._tables.routes.items())
        )

    async def key_of(self, conversation: ConversationId) -> tuple[SessionKey, str] | None:
        routes = [
            (r.updated_at, key, r.origin) for key, r in self._tables.routes.items() if r.conversation == conversation
        ]
        if not routes:
            return None
        _, key, origin = max(routes)
        return key, origin

    def _bear(self, key: SessionKey, birth: Birth, *, title: str | None) -> Session:
        session = Session(
            id=birth.id,
            conversation=ConversationId(birth.id),
            source=birth.source,
            started_at=birth.at,
            last_active=birth.at,
            key=key,
            parent=birth.parent,
            link=birth.link,
            user_id=birth.user_id,
            chat_id=birth.chat_id,
            chat_kind=birth.chat_kind,
            thread_id=birth.thread_id,
            title=title,
            title_by_person=title is not None,
            cwd=birth.cwd,
            git_branch=birth.git_branch,
        )
        self._tables.sessions[session.id] = session
        self._tables.tips[session.conversation] = session.id
        self._tables.routes[key] = Route(session.conversation, birth.origin, birth.at)
        return session

    # Finding sessions

    async def get(self, session: SessionId, scope: Scope) -> Session:
        found = self._tables.sessions.get(session)
        if found is None or not scope.allows(found):
            raise SessionNotFound(session)
        return found

    async def tip(self, conversation: ConversationId) -> Session:
        return self._tables.tip(conversation)

    async def resolve(self, reference: str, scope: Scope) -> Session:
        visible = [session for session in self._tables.sessions.values() if scope.allows(session)]
        for session in visible:
            if session.id == reference:
                return self._tables.tip(session.conversation)
        for session in visible:
            if session.title == reference:
                return self._tables.tip(session.conversation)
        fitting = {s.conversation: s.id for s in visible if reference and s.id.startswith(reference)}
        if len(fitting) > 1:
            raise AmbiguousSession(reference, tuple(fitting.values()))
        for conversation in fitting:
            return self._tables.tip(conversation)
        if reference == "latest":
            return _first([tip for tip in self._tables.used_tips(scope) if not tip.archived], reference)
        raise SessionNotFound(reference)

    async def latest(self, source: str, scope: Scope) -> Session:
        tips = [tip for tip in self._tables.used_tips(scope) if tip.source == source and not tip.archived]
        return _first(tips, f"latest of {source}")

    async def list(self, page: Page, scope: Scope) -> tuple[Session, ...]:
        return tuple(tip for tip in self._tables.used_tips(scope) if _is_on(page, tip))[: page.limit]

    # Rows

    async def commit(self, lease: Lease, step: Step) -> tuple[Message, ...]:
        self._fence(lease, step.session)
        take_up(self._tables, step.turn, step.runs)
        if step.key is not None:
            turn = TurnRow(id=step.turn, key=step.key, session_id=step.session, started_at=step.at)
            self._tables.turns[step.turn] = Turn(turn, rows_at_start=len(step.messages))
        rows = tuple(self._append(step.session, message, step.turn) for message in step.messages)
        self._count(step, rows)
        for settlement in step.settles:
            settle(self._tables, settlement, step.at)
        add_deliveries(self._tables, step.deliveries)
        if step.ends is not None and step.turn in self._tables.turns:
            self._tables.turns[step.turn].ended = True
            drop_streams(self._tables, step.at)
        return rows

    async def history(self, session: SessionId) -> tuple[Message, ...]:
        view = self._tables.views.get(session, ())
        named = {entry.message_id for entry in view}
        own = (row for row in self._tables.messages.values() if row.session_id == session and row.id not in named)
        rows = (*map(self._resolved, view), *own)
        return tuple(row for row in rows if row.undone_by is None)

    async def transcript(
        self, conversation: ConversationId, scope: Scope, *, after: int = 0, limit: int = 500
    ) -> tuple[Message, ...]:
        self._tables.visible_tip(conversation, scope)
        return tuple(row for row in self._tables.said_in(conversation) if row.id > after)[:limit]

    async def mark_undone(self, lease: Lease, session: SessionId, first: int, *, by: int) -> int:
        self._fence(lease, session)
        rows = [
            row
            for row in self._tables.messages.values()
            if self._tables.sessions[row.session_id].conversation == lease.conversation
            and first <= row.id < by
            and row.kind is not Kind.SUMMARY
            and row.undone_by is None
        ]
        for row in rows:
            self._tables.messages[row.id] = replace(row, undone_by=by)
        return len(rows)

    async def answer_of(self, turn: TurnId) -> Message | None:
        return self._tables.answer_of(turn)

    async def turn_messages(self, turn: TurnId) -> tuple[Message, ...]:
        return tuple(self._tables.rows_of_turn(turn))

    # Conversations

    async def rename(self, session: SessionId, title: str | None, *, by_person: bool) -> Session:
        named = await self.get(session, Scope(owner=True))
        tip = self._tables.tip(named.conversation)
        if tip.title_by_person and not by_person:
            return tip
        if by_person:
            self._refuse_if_taken(title, tip.conversation)
        elif title is not None:
            title = next_free(title, lambda name: self._holder(name, tip.conversation) is not None)
        for segment in self._tables.lineage(tip.conversation):
            if segment.title == title:
                self._tables.change(segment.id, title=None)
        return self._tables.change(tip.id, title=title, title_by_person=by_person and title is not None)

    async def end(self, session: SessionId, *, reason: str, at: float) -> None:
        if (await self.get(session, Scope(owner=True))).ended_at is None:
            self._tables.change(session, ended_at=at, end_reason=reason)

    async def archive(self, conversation: ConversationId, scope: Scope, *, archived: bool) -> None:
        self._tables.visible_tip(conversation, scope)
        for segment in self._tables.lineage(conversation):
            self._tables.change(segment.id, archived=archived)

    async def select(self, wanted: Filter, scope: Scope) -> tuple[Lineage, ...]:
        return lineages.select(self._tables, wanted, scope)

    async def stamp(self, conversation: ConversationId, scope: Scope) -> Stamp:
        return lineages.stamp(self._tables, conversation, scope)

    async def delete(
        self, conversation: ConversationId, scope: Scope, *, now: float, unchanged: Stamp | None = None
    ) -> None:
        lineages.delete(self._tables, conversation, scope, now, unchanged)

    async def split(self, lease: Lease, parent: SessionId, split: Split) -> Session:
        self._fence(lease, parent)
        ended = self._tables.change(parent, ended_at=split.at, end_reason=Link.COMPRESSION.value)
        child = replace(
            ended,
            id=split.child,
            parent=parent,
            link=Link.COMPRESSION,
            started_at=split.at,
            title=ended.title and next_free(ended.title, self._is_taken),
            system_prompt=None,
            tools=None,
            usage=Usage(),
            message_count=0,
            tool_call_count=0,
            ended_at=None,
            end_reason=None,
        )
        self._tables.sessions[child.id] = child
        self._tables.tips[child.conversation] = child.id
        summary = [] if split.summary is None else [self._append(child.id, split.summary, None)]
        entries = [ViewEntry(message_id=row.id) for row in summary]
        self._tables.views[child.id] = (*split.head, *entries, *split.tail)
        return self._tables.change(child.id, **_columns(split.snapshot))

    async def replace(self, lease: Lease, session: SessionId, view: Sequence[ViewEntry]) -> None:
        self._fence(lease, session)
        self._tables.views[session] = tuple(view)

    # Books

    async def counts(self) -> Counts:
        tables = self._tables
        inbound = tables.purged_inbox + Counter(str(row.outcome or "open") for row in tables.inbox.values())
        outbound = tables.purged_outbox + Counter(
            str(delivery.state) if number in tables.outbox_ends else "open"
            for number, delivery in tables.outbox.items()
        )
        return Counts(
            inbound={"received": inbound.total(), **inbound},
            outbound={"created": outbound.total(), **outbound},
            sessions=dict(Counter(tables.tip(conversation).source for conversation in tables.tips)),
            messages=sum(row.kind in SAID for row in tables.messages.values()),
        )

    async def data_version(self) -> int:
        return 0

    async def purge(self, *, before: float) -> int:
        return drop_settled(self._tables, lambda _row, at: at < before)

    async def mend_index(self) -> int:
        return 0

    async def close(self) -> None:
        """Nothing waits to be written."""

    # What the operations share

    def _fence(self, lease: Lease, session: SessionId) -> None:
        """A lease is good for the sessions of its own conversation."""
        fence(self._tables, lease)
        found = self._tables.sessions.get(session)
        if found is None or found.conversation != lease.conversation:
            raise LeaseLost(f"The lease of {lease.conversation} does not cover session {session}.")

    def _append(self, session: SessionId, message: NewMessage, turn: TurnId | None) -> Message:
        facts = {fact.name: getattr(message, fact.name) for fact in fields(NewMessage)}
        row = Message(id=next(self._tables.ids), session_id=session, turn=turn, **facts)
        self._tables.messages[row.id] = row
        return row

    def _count(self, step: Step, rows: Sequence[Message]) -> None:
        session = self._tables.sessions[step.session]
        said = [row for row in rows if row.kind in SAID]
        first = next((row.content for row in said if row.role is Role.USER and row.kind is Kind.TALK), "")
        self._tables.change(
            session.id,
            last_active=max([session.last_active, *(row.at for row in rows)]),
            message_count=session.message_count + len(said),
            tool_call_count=session.tool_call_count + sum(len(row.tool_calls) for row in rows),
            preview=session.preview or one_line(first, PREVIEW),
            usage=session.usage + step.usage,
            **_columns(step.snapshot),
        )

    def _resolved(self, entry: ViewEntry) -> Message:
        row = self._tables.messages[entry.message_id]
        return row if entry.replacement is None else replace(row, content=entry.replacement)

    def _holder(self, title: str, asking: str | None = None) -> Session | None:
        """Who of another conversation has this title."""
        sessions = self._tables.sessions.values()
        return next((s for s in sessions if s.title == title and s.conversation != asking), None)

    def _is_taken(self, title: str) -> bool:
        return self._holder(title) is not None

    def _refuse_if_taken(self, title: str | None, asking: str) -> None:
        if title is None:
            return
        holder = self._holder(title, asking)
        if holder is not None:
            raise TitleTaken(title, holder.id, holder.source)


def _first(tips: Sequence[Session], reference: str) -> Session:
    if not tips:
        raise SessionNotFound(reference)
    return tips[0]


def _is_on(page: Page, tip: Session) -> bool:
    return (
        (page.before is None or tip.last_active < page.before)
        and page.source in {None, tip.source}
        and (page.workspace is None or page.workspace.lower() in (tip.cwd or "").lower())
        and (page.include_archived or not tip.archived)
        and (page.include_machines or not (tip.source in MACHINE_SOURCES or tip.link is Link.DELEGATE))
    )


def _columns(snapshot: Snapshot | None) -> Mapping[str, str]:
    if snapshot is None:
        return {}
    return {fact.name: getattr(snapshot, fact.name) for fact in fields(Snapshot)}
