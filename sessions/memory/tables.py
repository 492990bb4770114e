"""What the twin keeps: one plain container a table, shared by the ports that work on them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hermes.errors import SessionNotFound
from hermes.sessions.model import (
    ConversationId,
    Delivery,
    InboxRow,
    Kind,
    Message,
    Scope,
    Session,
    SessionId,
    SessionKey,
    TurnId,
    TurnRow,
    ViewEntry,
)

SAID = frozenset({Kind.TALK, Kind.TOOL})
"""The kinds that people see, search and count."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a key leads, and where its answers go."""

    conversation: ConversationId
    origin: str
    updated_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A conversation's lease; a free one has no owner and keeps its generation."""

    owner: str | None
    place: str
    generation: int
    expires_at: float


@dataclass(slots=True)
class Turn:
    """A turn as it stands."""

    row: TurnRow
    rows_at_start: int = 0
    ended: bool = False


@dataclass(slots=True)
class Tables:
    """Everything at once. Dicts keep the order of insertion, which is the order of ids."""

    sessions: dict[SessionId, Session] = field(default_factory=dict)
    tips: dict[ConversationId, SessionId] = field(default_factory=dict)
    routes: dict[SessionKey, Route] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    views: dict[SessionId, tuple[ViewEntry, ...]] = field(default_factory=dict)
    leases: dict[ConversationId, Held] = field(default_factory=dict)
    turns: dict[TurnId, Turn] = field(default_factory=dict)
    inbox: dict[int, InboxRow] = field(default_factory=dict)
    outbox: dict[int, Delivery] = field(default_factory=dict)
    inbox_ends: dict[int, float] = field(default_factory=dict)
    """When events got their outcome."""
    outbox_ends: dict[int, float] = field(default_factory=dict)
    """When deliveries were settled."""
    purged_inbox: Counter[str] = field(default_factory=Counter)
    purged_outbox: Counter[str] = field(default_factory=Counter)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def tip(self, conversation: ConversationId) -> Session:
        """The live segment. Raises SessionNotFound."""
        if conversation not in self.tips:
            raise SessionNotFound(conversation)
        return self.sessions[self.tips[conversation]]

    def visible_tip(self, conversation: ConversationId, scope: Scope) -> Session:
        """The live segment, if `scope` allows it. Raises SessionNotFound."""
        tip = self.tip(conversation)
        if not scope.allows(tip):
            raise SessionNotFound(conversation)
        return tip

    def used_tips(self, scope: Scope) -> list[Session]:
        """The live segments of conversations in which something was said, last active first."""
        used = {self.sessions[row.session_id].conversation for row in self.messages.values() if row.kind in SAID}
        tips = [self.tip(conversation) for conversation in used]
        return sorted(filter(scope.allows, tips), key=lambda tip: (tip.last_active, tip.id), reverse=True)

    def lineage(self, conversation: ConversationId) -> list[Session]:
        """All segments, oldest first."""
        return [session for session in self.sessions.values() if session.conversation == conversation]

    def said_in(self, conversation: ConversationId) -> list[Message]:
        """What people said and got, over all segments, by id; undone rows are gone."""
        return [
            row
            for row in self.messages.values()
            if row.kind in SAID and row.undone_by is None and self.sessions[row.session_id].conversation == conversation
        ]

    def rows_of_turn(self, turn: TurnId) -> list[Message]:
        """All rows that a turn appended, in order."""
        return [row for row in self.messages.values() if row.turn == turn]

    def answer_of(self, turn: TurnId) -> Message | None:
        """The last row of a turn in which the assistant says something."""
        spoken = [row for row in self.rows_of_turn(turn) if row.role == "assistant" and row.content]
        return spoken[-1] if spoken else None

    def change(self, session: SessionId, **changes: Any) -> Session:
        """Put a changed session in the place of the old one."""
        changed = replace(self.sessions[session], **changes)
        self.sessions[session] = changed
        return changed
