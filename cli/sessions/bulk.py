"""What bulk commands say before they touch many conversations, and how they ask."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from hermes.cli.columns import cut, fit, printable
from hermes.errors import UserError
from hermes.sessions.filters import Lineage, Selection

SHOWN = 15
"""Conversations that are listed; the others are counted."""
NAME = 48
"""Columns of a name."""


def day(at: float, zone: tzinfo | None) -> str:
    """A moment as lists of conversations show it; None is the system's zone."""
    return f"{datetime.fromtimestamp(at, UTC).astimezone(zone):%Y-%m-%d %H:%M}"


def described(found: Sequence[Lineage], zone: tzinfo | None) -> list[str]:
    """How many, the oldest and the newest of them, and the first few by name."""
    if not found:
        return []
    recent = sorted(found, key=lambda one: one.last_active)
    span = f"oldest last active {day(recent[0].last_active, zone)}, newest {day(recent[-1].last_active, zone)}"
    lines = [f"  {fit(_name(one), NAME)} {day(one.last_active, zone)}  {one.tip.id}" for one in recent[:SHOWN]]
    more = [f"  … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return [f"{plural(len(found))}: {span}", *lines, *more]


def skipped(selection: Selection, how: str) -> list[str]:
    """The sentence about open conversations that a filter matched too; nothing when there are none."""
    number = len(selection.open)
    if not number:
        return []
    sessions = "1 open session matched and was" if number == 1 else f"{number} open sessions matched and were"
    return [f"{sessions} skipped{how}"]


def plural(number: int) -> str:
    """`1 conversation`, `2 conversations`."""
    return "1 conversation" if number == 1 else f"{number} conversations"


def confirmed(question: str, *, assume_yes: bool) -> bool:
    """Whether the person agrees. Raises UserError where nobody can be asked."""
    if assume_yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("Nobody can be asked here. Say --yes to do it.")
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().casefold() in {"y", "yes", "j", "ja", "是"}


def _name(one: Lineage) -> str:
    return cut(printable(" ".join(one.name.split())) or "—", NAME)
