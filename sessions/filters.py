"""Which conversations are meant: one set of conditions for prune, archive and export. Pure.

All conditions look at a conversation as a whole: sums over its segments, the names that any of them had, the end of
its last one.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from hermes.errors import UserError
from hermes.sessions.model import ConversationId, Session, Usage


@dataclass(frozen=True, slots=True)
class Lineage:
    """A conversation as a whole: its segments, oldest first, and the live one of them."""

    segments: tuple[Session, ...]
    tip: Session

    @property
    def conversation(self) -> ConversationId:
        return self.tip.conversation

    @property
    def source(self) -> str:
        return self.tip.source

    @property
    def started_at(self) -> float:
        return min(one.started_at for one in self.segments)

    @property
    def last_active(self) -> float:
        return max(one.last_active for one in self.segments)

    @property
    def ended_at(self) -> float | None:
        """When its live segment ended; None: it is open."""
        return self.tip.ended_at

    @property
    def message_count(self) -> int:
        return sum(one.message_count for one in self.segments)

    @property
    def tool_call_count(self) -> int:
        return sum(one.tool_call_count for one in self.segments)

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.segments), Usage())

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.usage.input_tokens + self.usage.output_tokens

    @property
    def name(self) -> str:
        """Its title, or its first words."""
        return self.tip.title or self.tip.preview


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Bounds of a figure, both included; None: none."""

    least: float | None = None
    most: float | None = None

    def holds(self, figure: float) -> bool:
        return (self.least is None or figure >= self.least) and (self.most is None or figure <= self.most)


ANY = Range()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions that all have to hold; one that is left out always does.

    `after` and `before` bound the whole conversation: it began at `after` or later and was last active before
    `before`. So the old of which the newest words are young are never taken for old. Raises UserError when nothing
    can lie between them.
    """

    after: float | None = None
    before: float | None = None
    source: str | None = None
    title: str | None = None
    """A part of any of its titles, whatever the case; so are `model` and `branch` of theirs."""
    model: str | None = None
    branch: str | None = None
    provider: str | None = None
    """Whole, whatever the case."""
    cwd: str | None = None
    """The folder that its people worked in, or one above."""
    user: str | None = None
    chat_id: str | None = None
    chat_kind: str | None = None
    end_reason: str | None = None
    messages: Range = ANY
    tokens: Range = ANY
    cost: Range = ANY
    """USD."""
    tool_calls: Range = ANY
    archived: bool | None = None
    """Only the archived, or only the others."""

    def __post_init__(self) -> None:
        if self.after is not None and self.before is not None and self.after >= self.before:
            raise UserError(
                "Nothing can lie in this window: it ends before it begins. Older-than and before set its end, "
                "newer-than and after its beginning."
            )

    @property
    def narrows(self) -> bool:
        """Whether there is any condition beside `archived`."""
        return self != Filter(archived=self.archived)

    def holds(self, one: Lineage) -> bool:
        """Whether the conversation meets every condition."""
        return all(condition(one) for condition in self._conditions())

    def _conditions(self) -> Iterator[Callable[[Lineage], bool]]:
        yield lambda one: self.after is None or one.started_at >= self.after
        yield lambda one: self.before is None or one.last_active < self.before
        yield lambda one: self.source in {None, one.source}
        yield lambda one: _any_has(self.title, (each.title for each in one.segments))
        yield lambda one: _any_has(self.model, (each.model for each in one.segments))
        yield lambda one: _any_has(self.branch, (each.git_branch for each in one.segments))
        yield lambda one: _any_is(self.provider, (each.provider for each in one.segments))
        yield lambda one: self.cwd is None or any(_below(self.cwd, each.cwd) for each in one.segments)
        yield lambda one: self.user in {None, one.tip.user_id}
        yield lambda one: self.chat_id in {None, one.tip.chat_id}
        yield lambda one: self.chat_kind in {None, one.tip.chat_kind}
        yield lambda one: self.end_reason in {None, one.tip.end_reason}
        yield lambda one: self.messages.holds(one.message_count)
        yield lambda one: self.tokens.holds(one.tokens)
        yield lambda one: self.cost.holds(one.usage.cost_usd)
        yield lambda one: self.tool_calls.holds(one.tool_call_count)
        yield lambda one: self.archived in {None, one.tip.archived}


@dataclass(frozen=True, slots=True)
class Selection:
    """Conversations that a filter matched, oldest first; a bulk command touches the ended ones alone."""

    ended: tuple[Lineage, ...]
    open: tuple[Lineage, ...]

    @classmethod
    def of(cls, lineages: Sequence[Lineage]) -> Self:
        """Told apart by their end."""
        return cls(
            ended=tuple(one for one in lineages if one.ended_at is not None),
            open=tuple(one for one in lineages if one.ended_at is None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a conversation with its delegates holds at one moment: equal stamps, equal contents."""

    conversations: tuple[ConversationId, ...]
    """Its own and those of its delegates."""
    last_message: int
    messages: int
    undone: int
    facts: tuple[tuple[str, str | None, float | None], ...]
    """Id, title and end of every segment."""


def _any_has(part: str | None, names: Iterable[str | None]) -> bool:
    return part is None or any(part.casefold() in name.casefold() for name in names if name is not None)


def _any_is(whole: str | None, names: Iterable[str | None]) -> bool:
    return whole is None or any(whole.casefold() == name.casefold() for name in names if name is not None)


def _below(folder: str, cwd: str | None) -> bool:
    above = folder.rstrip(os.sep)
    return cwd is not None and (cwd == above or cwd.startswith(above + os.sep))
