"""Moments as exports write them. Pure."""

from datetime import UTC, datetime, tzinfo


def utc(at: float) -> str:
    """ISO 8601 in UTC with milliseconds, for programs: `2026-07-05T09:00:00.000Z`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def local(at: float, zone: tzinfo | None) -> str:
    """For people, in their zone; None is the system's: `2026-07-05 09:00:00 +02:00`."""
    moment = datetime.fromtimestamp(at, UTC).astimezone(zone)
    return f"{moment:%Y-%m-%d %H:%M:%S} {moment.isoformat()[-6:]}"
