"""Layer 2: which rows stay as they are. The head defines the task, the tail is the work at hand.

Cuts fall between exchanges only, so that a call never loses its results. They need a repaired history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from hermes.compression.tokens import Meter
from hermes.sessions.model import Kind, Message, Role

Exchange = tuple[Message, ...]
"""The smallest part that may be cut off: one row, or a row with calls and all its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A history in three. Together they hold each row once; `head + middle + tail` need not be its order.

    `tail` holds the last thing that a person said, and what that answers, even where long work by tools lies behind
    it: these rows are then lifted out of the middle.
    """

    head: tuple[Message, ...]
    middle: tuple[Message, ...]
    tail: tuple[Message, ...]

    @property
    def summaries(self) -> tuple[Message, ...]:
        """Earlier summaries, which the next one replaces. They are always in the middle."""
        return tuple(row for row in self.middle if row.kind is Kind.SUMMARY)

    @property
    def news(self) -> tuple[Message, ...]:
        """The rows of the middle that no summary speaks of yet."""
        return tuple(row for row in self.middle if row.kind is not Kind.SUMMARY)


def cut(rows: Sequence[Message], *, first: int, last: int, tail_tokens: int, meter: Meter) -> Cut:
    """Keep at least the `first` rows and the `last` rows, and as many more at the end as `tail_tokens` pay for.

    The head ends early where an earlier summary or the last request begins. Neither end splits an exchange, so
    both may hold a few rows more than asked.
    """
    parts = exchanges(rows)
    anchors = _anchors(parts)
    head_end = _head_end(parts, first, before=min(anchors, default=len(parts)))
    tail_start = _tail_start(parts, head_end, last, tail_tokens, meter)
    lifted = [at for at in anchors if at < tail_start]
    middle = [parts[at] for at in range(head_end, tail_start) if at not in lifted]
    tail = [parts[at] for at in lifted] + parts[tail_start:]
    return Cut(head=_flat(parts[:head_end]), middle=_flat(middle), tail=_flat(tail))


def exchanges(rows: Sequence[Message]) -> list[Exchange]:
    """A repaired history in its smallest parts."""
    starts = [at for at, row in enumerate(rows) if row.role is not Role.TOOL]
    return [tuple(rows[start:end]) for start, end in pairwise([*starts, len(rows)])]


def _anchors(parts: Sequence[Exchange]) -> list[int]:
    """Where the last request is, and before it what it answers: "option 2" means nothing without the options."""
    request = _last(parts, Role.USER, before=len(parts))
    if request is None:
        return []
    question = _last(parts, Role.ASSISTANT, before=request)
    return [request] if question is None else [question, request]


def _last(parts: Sequence[Exchange], role: Role, *, before: int) -> int | None:
    found = (at for at in range(before - 1, -1, -1) if parts[at][0].role is role and not _is_summary(parts[at]))
    return next(found, None)


def _head_end(parts: Sequence[Exchange], first: int, *, before: int) -> int:
    end = rows = 0
    while end < before and rows < first and not _is_summary(parts[end]):
        rows += len(parts[end])
        end += 1
    return end


def _tail_start(parts: Sequence[Exchange], head_end: int, last: int, tail_tokens: int, meter: Meter) -> int:
    start, rows, tokens = len(parts), 0, 0
    while start > head_end and not _is_summary(parts[start - 1]):
        size = meter.rows(parts[start - 1])
        if rows >= max(last, 1) and tokens + size > tail_tokens:
            break
        start -= 1
        rows += len(parts[start])
        tokens += size
    return start


def _is_summary(part: Exchange) -> bool:
    return part[0].kind is Kind.SUMMARY


def _flat(parts: Sequence[Exchange]) -> tuple[Message, ...]:
    return tuple(chain.from_iterable(parts))
