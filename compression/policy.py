"""When to make room, and how much of the history is left alone. The keys are those of `compression:`."""

from dataclasses import dataclass
from enum import StrEnum


class OnFailure(StrEnum):
    """What becomes of the middle when no summary of it can be had."""

    KEEP = "keep"
    """It stays, for as long as the history can be sent at all."""
    DROP = "drop"
    """A digest that needs no model takes its place at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One reason to make room: `reading` of `limit`, in the unit that the key's name says."""

    key: str
    reading: int
    limit: int

    @property
    def share(self) -> float:
        """How near it is; it fires at 1."""
        return self.reading / max(self.limit, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionPolicy:
    """The settings of compression, with the defaults of the specification. Raises ValueError outside their ranges."""

    enabled: bool = True
    progress_notices: bool = False
    threshold: float = 0.50
    """Share of the window at which room is made."""
    threshold_tokens: int | None = None
    """The same as a number of tokens; the lower of the two counts."""
    target_ratio: float = 0.20
    """Share of the threshold that the tail may fill."""
    protect_last_n: int = 20
    protect_first_n: int = 3
    idle_compact_after_seconds: float = 0
    """0: never."""
    hygiene_threshold: float = 0.85
    """Share of the window at which the gateway makes room between turns."""
    hygiene_hard_message_limit: int = 5000
    """0: no limit."""
    hygiene_timeout_seconds: float = 30
    """How long the summariser may be silent."""
    hygiene_total_ceiling_seconds: float = 600
    """How long it may take, talking or not."""
    hygiene_failure_cooldown_seconds: float = 300
    proactive_prune_tokens: int = 0
    """Prompt size from which old tool results are cleared without a model. 0: off."""
    proactive_prune_min_result_chars: int = 8000
    on_summary_failure: OnFailure = OnFailure.KEEP

    def __post_init__(self) -> None:
        for key in ("threshold", "target_ratio", "hygiene_threshold"):
            if not 0 < getattr(self, key) <= 1:
                raise ValueError(f"compression.{key} is a share: above 0, at most 1")
        for key in ("protect_last_n", "protect_first_n", "hygiene_hard_message_limit", "proactive_prune_tokens"):
            if getattr(self, key) < 0:
                raise ValueError(f"compression.{key} cannot be negative")

    def trigger_tokens(self, window: int) -> int:
        """The prompt size at which room is made, for a model with this `window`."""
        share = int(window * self.threshold)
        return share if self.threshold_tokens is None else min(share, self.threshold_tokens)

    def triggers(self, tokens: int, window: int, *, messages: int = 0) -> tuple[Trigger, ...]:
        """Every reason to compress, nearest first."""
        readings = (
            Trigger(key="threshold", reading=tokens, limit=self.trigger_tokens(window)),
            Trigger(key="hygiene_threshold", reading=tokens, limit=int(window * self.hygiene_threshold)),
            Trigger(key="hygiene_hard_message_limit", reading=messages, limit=self.hygiene_hard_message_limit),
        )
        return tuple(sorted((one for one in readings if one.limit > 0), key=lambda one: one.share, reverse=True))

    def due(self, tokens: int, window: int, *, messages: int = 0) -> bool:
        """Whether a prompt of `tokens` with `messages` rows has to be compressed before it is sent."""
        return self.enabled and any(one.share >= 1 for one in self.triggers(tokens, window, messages=messages))

    def prune_due(self, tokens: int) -> bool:
        """Whether old tool results are to be cleared although nothing has to be compressed."""
        return self.enabled and 0 < self.proactive_prune_tokens <= tokens
