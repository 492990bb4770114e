"""Titles stay readable, unique and short whatever people and models write."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import UserError
from hermes.sessions.titles import LIMIT, clean, family, next_free, numbered

_SPECIAL = "\u200b\u200c\u200d\u200e\u202e\u2066\ufeff\ufe0f\x00\x07\t\n\u3000 #2aأیख्👩🏽🚀🏴🇩🇪\U000e0067\u0301"
titles = st.text(st.one_of(st.characters(), st.sampled_from(_SPECIAL)), max_size=LIMIT)
"""Any text, with what is hard about titles far more often than chance would have it."""

names = titles.map(clean).filter(bool).map(str)
numbers = st.integers(min_value=2, max_value=9999)


class TestCleaning:
    @pytest.mark.parametrize(
        ("written", "kept"),
        [
            ("  my \t research\nproject ", "my research project"),
            ("be\x07ll and \x9bescape", "bell and escape"),
            ("Alpha\u200bBeta", "Alpha Beta"),
            ("Alpha\ufeffBeta", "Alpha Beta"),
            ("Alpha\u200b\u200bBeta", "Alpha Beta"),
            ("src/\u200bmain", "src/main"),
            ("Al\u200dpha", "Alpha"),
            ("Al\u00adpha\u2060", "Alpha"),
            ("invoice\u202egpj.exe", "invoicegpj.exe"),
            ("\u2066left\u2069 \u200fright", "left right"),
            ("half an emoji \ud83d", "half an emoji \ufffd"),
        ],
    )
    def test_characters_that_hide_or_turn_text_are_gone(self, written: str, kept: str) -> None:
        assert clean(written) == kept

    @pytest.mark.parametrize(
        "title",
        [
            "👩🏽‍🚀 launch",
            "👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥 🐈‍⬛ 👁️‍🗨️",
            "🏴󠁧󠁢󠁥󠁮󠁧󠁿 against 🇩🇪",
            "می‌خواهم",
            "क्‍ष and র‍্য",
            "重构登录模块",
            "café · cafe\u0301 · Ångström",
            "C++ & 50% of #42",
        ],
    )
    def test_what_people_can_see_stays_whole(self, title: str) -> None:
        assert clean(title) == title

    @pytest.mark.parametrize("nothing", ["", "  \n", "\u200b\u200d", "\x01\x1b", "\u202e \u200f"])
    def test_a_title_of_nothing_is_none(self, nothing: str) -> None:
        assert clean(nothing) is None

    def test_a_title_of_a_hundred_characters_fits(self) -> None:
        assert clean("字" * 100) == "字" * 100

    def test_a_longer_title_is_refused_with_the_limit_and_its_length(self) -> None:
        with pytest.raises(UserError, match=r"100 characters.*101"):
            clean("x" * 101)

    def test_blanks_and_invisible_characters_do_not_count(self) -> None:
        assert clean("\u202e" * 50 + "x" * 100 + " " * 50) == "x" * 100

    @given(titles)
    def test_cleaning_twice_changes_nothing(self, title: str) -> None:
        once = clean(title)
        assert once is None or clean(once) == once

    @given(titles)
    def test_no_control_character_and_no_turned_text_is_ever_left(self, title: str) -> None:
        for character in clean(title) or "":
            assert unicodedata.category(character) != "Cc"
            assert unicodedata.bidirectional(character) not in {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDF"}


class TestNumbers:
    @pytest.mark.parametrize(
        ("title", "parts"),
        [
            ("my project", ("my project", 1)),
            ("my project #2", ("my project", 2)),
            ("my project #12", ("my project", 12)),
            ("my project #1", ("my project #1", 1)),
            ("my project #02", ("my project #02", 1)),
            ("ticket #90210", ("ticket #90210", 1)),
            ("#2", ("#2", 1)),
            ("C#2", ("C#2", 1)),
            ("a #2 #3", ("a #2", 3)),
        ],
    )
    def test_a_title_tells_its_name_and_its_number(self, title: str, parts: tuple[str, int]) -> None:
        assert family(title) == parts

    @given(names)
    def test_a_title_is_made_again_from_its_parts(self, title: str) -> None:
        assert numbered(*family(title)) == title

    @given(names, numbers)
    def test_a_numbered_title_is_clean_short_and_tells_its_number(self, name: str, n: int) -> None:
        title = numbered(name, n)
        stem, told = family(title)
        assert clean(title) == title
        assert told == n
        assert name.startswith(stem)

    def test_a_name_that_fits_is_not_shortened(self) -> None:
        assert numbered("x" * 97, 2) == "x" * 97 + " #2"
        assert numbered("x" * 98, 2) == "x" * 97 + " #2"

    @pytest.mark.parametrize("whole", ["👩🏽‍🚀", "e\u0301\u0302", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪"])
    def test_a_name_is_never_cut_inside_a_character(self, whole: str) -> None:
        assert numbered("x" * 96 + whole + "yyy", 2) == "x" * 96 + " #2"


class TestFreeTitles:
    def test_a_free_title_is_taken_as_it_is(self) -> None:
        assert next_free("Hello", set().__contains__) == "Hello"

    def test_a_taken_title_gets_the_first_free_number(self) -> None:
        assert next_free("Hello", {"Hello", "Hello #2", "Hello #4"}.__contains__) == "Hello #3"

    def test_a_numbered_title_goes_on_counting(self) -> None:
        assert next_free("Hello #2", {"Hello #2"}.__contains__) == "Hello #3"

    @given(names, st.integers(min_value=1, max_value=30))
    def test_every_asker_gets_another_title(self, name: str, askers: int) -> None:
        taken: set[str] = set()
        for _ in range(askers):
            taken.add(next_free(name, taken.__contains__))
        assert len(taken) == askers
        assert all(clean(title) == title for title in taken)
