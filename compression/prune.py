"""Layer 1: old tool results give way to a line that says what was there. No model is needed."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from hermes.compression.repair import SYNTHETIC
from hermes.sessions.model import Message, Role, ViewEntry

CLEARED = "[Old tool output cleared]"
"""How every placeholder starts; also how one is known again."""

SMALLEST_CHARACTERS = 200
"""Results up to this size cost no more than their placeholder would save."""


def placeholder(row: Message) -> str:
    """The line in place of a result: enough to know what ran and to ask for the original."""
    return f"{CLEARED} {(row.tool_name or 'tool')[:64]}, {len(row.content)} characters, kept as message {row.id}"


def is_cleared(row: Message) -> bool:
    """Whether the row's content is a placeholder already."""
    return row.role is Role.TOOL and row.content.startswith(CLEARED)


def clear(
    rows: Iterable[Message], *, larger_than: int = SMALLEST_CHARACTERS, spare: Collection[int] = ()
) -> tuple[Message, ...]:
    """`rows` with every stored tool result above `larger_than` characters cleared, but for the ids to `spare`."""
    limit = max(larger_than, SMALLEST_CHARACTERS)
    return tuple(
        replace(row, content=placeholder(row)) if len(row.content) > limit and _clearable(row, spare) else row
        for row in rows
    )


def view(rows: Iterable[Message]) -> tuple[ViewEntry, ...]:
    """What the store has to remember to show `rows`; rows that stand in no store are left to the next repair."""
    return tuple(
        ViewEntry(message_id=row.id, replacement=row.content if is_cleared(row) else None)
        for row in rows
        if row.id != SYNTHETIC
    )


def _clearable(row: Message, spare: Collection[int]) -> bool:
    return row.role is Role.TOOL and row.id != SYNTHETIC and row.id not in spare and not is_cleared(row)
