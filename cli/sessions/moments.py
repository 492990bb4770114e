"""Points in time as people type them: how long ago (`5h`, `30m`, `2d`, `1w`), days, or a date. Pure."""

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
LONGEST = 99_999
"""A longer number is no number of days or hours: somebody left the dashes out of a date."""
_AGO = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhdw]?)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that is not fixed yet: so many seconds ago, or a date and time, which may lack its zone."""

    seconds: float | None = None
    date: datetime | None = None

    def at(self, now: float, zone: tzinfo | None) -> float:
        """Seconds since the epoch. A time without a zone is one in `zone`; None is the system's."""
        if self.date is None:
            return now - (self.seconds or 0.0)
        date = self.date if self.date.tzinfo or zone is None else self.date.replace(tzinfo=zone)
        try:
            return date.timestamp()
        except (ValueError, OverflowError):  # the first and the last day that the calendar knows
            return date.replace(tzinfo=UTC).timestamp()


def moment(text: str) -> Moment:
    """What was typed. Raises argparse.ArgumentTypeError with what can be."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None and float(ago["number"]) <= LONGEST:
        return Moment(seconds=float(ago["number"]) * SECONDS[ago["unit"].lower() or "d"])
    try:  # without dashes it would be a date to Python, and a number of days to people
        return Moment(date=datetime.fromisoformat(text.strip() if "-" in text else ""))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected how long ago (5h, 30m, 2d, 1w), a number of days, or a date such as "
            '2026-07-05 or "2026-07-05 14:30"'
        ) from error
