"""The three layers in their order, cheapest first: clear old tool results, find what may go, sum it up.

Pure apart from the summariser that is handed in. Nothing is ever removed: a result is a view of rows that stay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from hermes.compression.boundaries import Cut, cut
from hermes.compression.digest import digest
from hermes.compression.policy import CompressionPolicy, OnFailure
from hermes.compression.prune import SMALLEST_CHARACTERS, clear, view
from hermes.compression.repair import SYNTHETIC, validate_and_repair
from hermes.compression.summary import (
    FRAME_TOKENS,
    ROW_TOKENS,
    Summarise,
    SummaryRequest,
    accept,
    as_row,
    budget_for,
    pieces,
    previous,
)
from hermes.compression.tokens import Meter
from hermes.errors import CompressionStuckError, ModelError
from hermes.sessions.model import Message, NewMessage, ViewEntry

MIN_SHRINK = 0.9
"""A compression that leaves this share of the tokens or more was in vain. From the specification."""

PRUNED_ENOUGH = 0.8
"""Clearing alone will do when it ends below this share of the trigger: nearer, the next turns would be due again."""

INTERRUPTED = "interrupted, outcome unknown"
"""Stands for missing results while a history is measured and read; no view holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the model that answers can hold. All figures are tokens."""

    window: int
    """The whole window, answer included."""
    system_tokens: int = 0
    """System prompt and tool list, which no compression touches."""
    reserve: int = 0
    """Kept free for the answer."""
    meter: Meter = field(default_factory=Meter)
    summariser_window: int | None = None
    """None: the same as `window`."""

    @property
    def room(self) -> int:
        """The longest prompt that can be sent."""
        return self.window - self.reserve

    def prompt(self, rows: Sequence[NewMessage]) -> int:
        """The size of a request with these rows."""
        return self.system_tokens + self.meter.rows(rows)

    def worth(self, before: int, after: int) -> bool:
        """Whether going from `before` to `after` is progress: a tenth less, or the difference between no and yes."""
        return after < MIN_SHRINK * before or after <= self.room < before


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The history stays as it is, and can be sent."""

    tokens: int
    trouble: str | None = None
    """Why a summary that was wanted could not be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Some tool results are cleared; the view holds all rows that can be sent, in order."""

    view: tuple[ViewEntry, ...]
    before: int
    after: int
    trouble: str | None = None
    """Why a summary that was wanted could not be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Head and tail stay; the summary between them stands for the rows in `covered`.

    Each row of the history is in exactly one of the three. The tail is never empty. It may still be too long to
    send; a further compression of it then makes progress again or raises CompressionStuckError.
    """

    head: tuple[ViewEntry, ...]
    summary: NewMessage
    tail: tuple[ViewEntry, ...]
    covered: tuple[int, ...]
    before: int
    after: int
    trouble: str | None = None
    """Why the summary is a digest and not a model's."""


Fitted = Unchanged | Pruned | Compressed


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compression before any model is asked: what would stay, and the most that the result would cost."""

    cut: Cut
    summary_budget: int
    before: int
    after: int

    def request(self, focus: str = "") -> SummaryRequest:
        """What the summary has to speak of."""
        return SummaryRequest(
            rows=self.cut.news, previous=previous(self.cut.summaries), focus=focus, budget=self.summary_budget
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One history to be looked at, repaired and measured once."""

    history: Sequence[Message]
    rows: tuple[Message, ...]
    before: int
    budget: Budget
    policy: CompressionPolicy

    @classmethod
    def of(cls, history: Sequence[Message], budget: Budget, policy: CompressionPolicy) -> Self:
        rows = validate_and_repair(history, INTERRUPTED)
        return cls(history=history, rows=rows, before=budget.prompt(rows), budget=budget, policy=policy)

    def due(self, tokens: float) -> bool:
        """Whether the policy would have this history compressed if its prompt took `tokens`."""
        return self.policy.due(int(tokens), self.budget.window, messages=len(self.rows))

    def cut(self, last: int) -> Cut:
        """The history in three, with at least `last` rows in the tail."""
        filling = min(self.policy.trigger_tokens(self.budget.window), self.before)
        return cut(
            self.rows,
            first=self.policy.protect_first_n,
            last=last,
            tail_tokens=int(self.policy.target_ratio * filling),
            meter=self.budget.meter,
        )


async def fit(
    history: Sequence[Message],
    *,
    budget: Budget,
    policy: CompressionPolicy,
    summarise: Summarise | None,
    at: float,
    focus: str = "",
) -> Fitted:
    """Make room in `history` if `policy` says that it is time.

    Clears old tool results where that is enough, and compresses otherwise; see `compress`. Raises
    CompressionStuckError when the history cannot be sent and nothing makes it smaller.
    """
    case = _Case.of(history, budget, policy)
    if not case.due(case.before):
        ahead = policy.prune_due(case.before)
        pruned = _prune_old(case, policy.proactive_prune_min_result_chars) if ahead else None
        return pruned or Unchanged(tokens=case.before)
    pruned = _prune_old(case)
    if pruned and not case.due(pruned.after / PRUNED_ENOUGH):
        return pruned
    return await _compress(case, summarise, at=at, focus=focus)


async def compress(
    history: Sequence[Message],
    *,
    budget: Budget,
    policy: CompressionPolicy,
    summarise: Summarise | None,
    at: float,
    focus: str = "",
) -> Fitted:
    """Sum up the middle of `history` now: what `/compress` and an overflow ask for.

    Without a usable summary the middle stays, at most with old tool results cleared, unless the policy says to drop
    it or the history cannot be sent at all: then a digest stands for it. Raises CompressionStuckError when the
    history cannot be sent and nothing makes it smaller; what the summariser raises beyond ModelError and
    TimeoutError goes through.
    """
    return await _compress(_Case.of(history, budget, policy), summarise, at=at, focus=focus)


def plan(history: Sequence[Message], *, budget: Budget, policy: CompressionPolicy) -> Plan:
    """What `compress` would do. Where nothing can go, `after` is `before`.

    The tail keeps `protect_last_n` rows unless the result would be due again at once: then fewer, down to one
    exchange. Only where that cannot be sent either do the tail's own tool results go.
    """
    return _plan(_Case.of(history, budget, policy))


async def _compress(case: _Case, summarise: Summarise | None, *, at: float, focus: str) -> Fitted:
    chosen = _plan(case)
    if not case.budget.worth(case.before, chosen.after):
        return _without_summary(case)
    request, trouble = chosen.request(focus), None
    try:
        text = await _write(request, case.budget, summarise)
    except (ModelError, TimeoutError) as error:
        trouble = str(error) or "The model for summaries took too long."
        if case.policy.on_summary_failure is OnFailure.KEEP and case.before <= case.budget.room:
            return _without_summary(case, trouble)
        text = digest(request)
    return _compressed(case, chosen.cut, text, at=at, trouble=trouble)


def _plan(case: _Case) -> Plan:
    trigger = case.policy.trigger_tokens(case.budget.window)
    tried: list[Plan] = []
    for last in _floors(case.policy.protect_last_n):
        tried.append(_costed(case, case.cut(last)))
        if tried[-1].after < trigger:
            return tried[-1]
    best = min(tried, key=lambda one: one.after)
    if best.after <= case.budget.room or not best.cut.news:
        return best
    return _costed(case, replace(best.cut, tail=clear(best.cut.tail)))


def _floors(last: int) -> Iterator[int]:
    while last > 1:
        yield last
        last //= 2
    yield 1


def _costed(case: _Case, found: Cut) -> Plan:
    if not found.news:
        return Plan(cut=found, summary_budget=0, before=case.before, after=case.before)
    budget = case.budget
    found = replace(found, head=clear(found.head))
    allowed = budget_for(budget.meter.rows(found.middle), window=budget.window)
    chosen = Plan(cut=found, summary_budget=allowed, before=case.before, after=case.before)
    summary = budget.meter.scaled(FRAME_TOKENS + chosen.request().ceiling)
    return replace(chosen, after=budget.prompt(found.head + found.tail) + summary)


async def _write(request: SummaryRequest, budget: Budget, summarise: Summarise | None) -> str:
    """The summary, brought up to date piece by piece where the middle is longer than the summariser can read."""
    if summarise is None:
        raise ModelError("No model for summaries is available.")
    window = budget.summariser_window or budget.window
    request = replace(request, row_tokens=min(ROW_TOKENS, window // 8))
    text = request.previous
    for rows in pieces(request, window=window, meter=budget.meter):
        piece = replace(request, rows=rows, previous=text)
        text = accept(await summarise(piece), piece)
    return text


def _compressed(case: _Case, kept: Cut, text: str, *, at: float, trouble: str | None) -> Compressed:
    head, tail = view(kept.head), view(kept.tail)
    shown = {SYNTHETIC, *(entry.message_id for entry in head + tail)}
    summary = as_row(text, at=at, opens=not head)
    return Compressed(
        head=head,
        summary=summary,
        tail=tail,
        covered=tuple(dict.fromkeys(row.id for row in case.history if row.id not in shown)),
        before=case.before,
        after=case.budget.prompt((*kept.head, summary, *kept.tail)),
        trouble=trouble,
    )


def _without_summary(case: _Case, trouble: str | None = None) -> Unchanged | Pruned:
    """The best that clearing can do. The tail's own results go only where the history cannot be sent with them."""
    room = case.budget.room
    pruned = _prune_old(case)
    if case.before > room and (pruned is None or pruned.after > room):
        bare = clear(case.rows)
        pruned = _pruned(case, bare)
        if pruned is None or pruned.after > room:
            raise CompressionStuckError(case.before, case.budget.prompt(bare))
    return replace(pruned, trouble=trouble) if pruned else Unchanged(tokens=case.before, trouble=trouble)


def _prune_old(case: _Case, larger_than: int = SMALLEST_CHARACTERS) -> Pruned | None:
    """Old tool results cleared, the tail spared."""
    spare = frozenset(row.id for row in case.cut(case.policy.protect_last_n).tail)
    return _pruned(case, clear(case.rows, larger_than=larger_than, spare=spare))


def _pruned(case: _Case, cleared: Sequence[Message]) -> Pruned | None:
    """None where too little would be won: each pruning makes the provider's prompt cache useless once."""
    after = case.budget.prompt(cleared)
    if not case.budget.worth(case.before, after):
        return None
    return Pruned(view=view(cleared), before=case.before, after=after)
