"""Text in columns, also where characters are wide, joined or invisible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.columns import columns_of, cut, fit

FAMILY = "👩\u200d👩\u200d👧"
HEART = "❤\ufe0f"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("重构认证", 8),
        ("é", 1),
        ("e\u0301", 1),
        ("🎉", 2),
        (FAMILY, 2),
        (HEART, 2),
        ("👍🏽", 2),
        ("🇨🇳", 2),
        ("a\u200bb", 2),
    ],
)
def test_wide_joined_and_invisible_characters_are_counted_as_terminals_show_them(text: str, columns: int) -> None:
    assert columns_of(text) == columns


@given(st.text(max_size=60), st.integers(2, 40))
def test_a_field_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert columns_of(fit(text, width)) == width


@given(st.text(max_size=60), st.integers(2, 40))
def test_what_fits_is_left_as_it_is_and_what_does_not_says_so(text: str, width: int) -> None:
    shown = cut(text, width)
    assert shown == text if columns_of(text) <= width else shown.endswith("…")


def test_a_cut_never_leaves_half_of_a_joined_picture_hanging() -> None:
    assert cut(f"{FAMILY}{FAMILY}", 3) == f"{FAMILY}…"
