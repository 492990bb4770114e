"""When, as people type it."""

import argparse
import contextlib
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.sessions.moments import moment

NOW = 1_800_000_000.0
SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5h", 18_000),
        ("30m", 1_800),
        ("2d", 172_800),
        ("1w", 604_800),
        ("90", 7_776_000),
        ("1.5 H", 5_400),
        ("10s", 10),
    ],
)
def test_a_duration_is_so_long_ago(text: str, seconds: float) -> None:
    assert moment(text).at(NOW, None) == NOW - seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-05", datetime(2026, 7, 5, tzinfo=SHANGHAI)),
        ("2026-07-05 14:30", datetime(2026, 7, 5, 14, 30, tzinfo=SHANGHAI)),
        ("2026-07-05T14:30Z", datetime(2026, 7, 5, 14, 30, tzinfo=UTC)),
        ("2026-07-05T14:30+05:30", datetime(2026, 7, 5, 14, 30, tzinfo=timezone(timedelta(hours=5.5)))),
    ],
)
def test_a_date_is_in_the_configured_zone_unless_it_says_which(text: str, expected: datetime) -> None:
    assert moment(text).at(NOW, SHANGHAI) == expected.timestamp()


@pytest.mark.parametrize(
    "text", ["", "5x", "h", "-3d", "yesterday", "2026-13-01", "2026-02-30", "5h 3m", "٣d", "1e3d", "nan", "20260705"]
)
def test_anything_else_says_what_can_be_typed(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected how long ago"):
        moment(text)


@given(st.text() | st.datetimes().map(str) | st.from_regex(r"\d{1,30}[smhdw]?", fullmatch=True))
def test_nothing_raises_anything_else(text: str) -> None:
    with contextlib.suppress(argparse.ArgumentTypeError):
        for zone in (SHANGHAI, None):
            assert isinstance(moment(text).at(NOW, zone), float)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59"])
def test_the_edges_of_the_calendar_are_moments_too(text: str) -> None:
    assert abs(moment(text).at(NOW, SHANGHAI)) > NOW
    assert abs(moment(text).at(NOW, None)) > NOW
