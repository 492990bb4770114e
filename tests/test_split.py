"""Long answers in pieces: each fits, nothing is lost, code stays code, and nobody sees half a character."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.adapters.base import Limits
from hermes.adapters.split import characters, split, utf8_bytes, utf16

TELEGRAM = Limits(text=4096, measure=utf16)
DISCORD = Limits(text=2000)
IRC = Limits(text=512, measure=utf8_bytes(overhead=30))

FAMILY = "👨‍👩‍👧‍👦"
CLUSTERS = [FAMILY, "👍🏽", "🇫🇷", "e\u0301", "\r\n", "🏴\U000e0067\U000e0062\U000e007f", "❤️", "a", "你", "🎩"]
PROSE = st.lists(st.sampled_from([*CLUSTERS, "word", " ", "\n", "\n\n", ". ", "。", "**bold**", "-", "`x`"])).map(
    "".join
)
LIMITS = st.builds(
    Limits,
    text=st.integers(min_value=60, max_value=120),
    measure=st.sampled_from([characters, utf16, utf8_bytes(4)]),
)


def rebuilt_with_white_space_only_lost(text: str, pieces: tuple[str, ...]) -> bool:
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0 or text[at:found].strip():
            return False
        at = found + len(piece)
    return not text[at:].strip()


@given(text=PROSE, limits=LIMITS)
def test_every_piece_fits_and_only_white_space_at_cuts_is_lost(text: str, limits: Limits) -> None:
    pieces = split(text, limits)
    assert all(limits.measure(piece) <= limits.text for piece in pieces)
    assert all(piece.strip() for piece in pieces)
    assert rebuilt_with_white_space_only_lost(text, pieces)


@given(text=st.text(alphabet="`~ \nxy\t", max_size=300), limits=LIMITS)
@example(text="```\n" + "`" * 200 + "\n```", limits=Limits(text=60))
def test_any_heap_of_fences_fits_and_keeps_its_words(text: str, limits: Limits) -> None:
    pieces = split(text, limits)
    assert all(limits.measure(piece) <= limits.text for piece in pieces)
    assert re.sub(r"[^xy]", "", "".join(pieces)).count("x") >= text.count("x")


@given(clusters=st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=80), limit=st.integers(20, 40))
def test_nobody_sees_half_a_character(clusters: list[str], limit: int) -> None:
    pieces = split("".join(clusters), Limits(text=limit, measure=utf16))
    for piece in pieces:
        assert unicodedata.category(piece[0]) not in {"Mn", "Mc", "Me", "Cf"}
        assert not "\U0001f3fb" <= piece[0] <= "\U0001f3ff"
        assert not piece.endswith("\u200d")
        assert len(re.findall("[\U0001f1e6-\U0001f1ff]", piece)) % 2 == 0
    assert "".join("".join(pieces).split()) == "".join("".join(clusters).split())


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("near", ["", " ", "\n"])
def test_a_long_reply_with_emoji_is_cut_between_emoji(shift: int, near: str) -> None:
    text = "a" * shift + "🎩" * 2046 + near + "🎩" * 1000
    pieces = split(text, TELEGRAM)
    assert all(utf16(piece) <= 4096 and piece.encode() for piece in pieces)
    assert "".join(pieces) == text.replace(near, "") if near else text


def test_surrogates_that_were_never_joined_are_not_parted_further() -> None:
    pieces = split("x" + "\ud83c\udfa9" * 30, Limits(text=20))
    assert all(len(piece) % 2 == (1 if piece.startswith("x") else 0) for piece in pieces)


LINES = st.lists(st.text(alphabet="abc =(){}#你", max_size=20), min_size=20, max_size=60)


@given(
    lines=LINES,
    marker=st.sampled_from(["```", "~~~", "````"]),
    language=st.sampled_from(["", "py", "c++"]),
    limits=LIMITS,
)
def test_code_in_pieces_is_fenced_everywhere_and_rejoins(
    lines: list[str], marker: str, language: str, limits: Limits
) -> None:
    pieces = split("\n".join([f"{marker}{language}", *lines, marker]), limits)
    code = []
    for piece in pieces:
        opening, *inside, closing = piece.split("\n")
        assert (opening, closing) == (f"{marker}{language}", marker)
        assert limits.measure(piece) <= limits.text
        code += inside
    assert code == lines


def test_a_long_code_block_on_discord() -> None:
    block = "\n".join(["```python", *(f"line {n} = {n * n}" for n in range(300)), "```"])
    pieces = split(f"Here it is:\n\n{block}\n\nDone.", DISCORD)
    assert len(pieces) > 2
    assert all(piece.count("```") % 2 == 0 and len(piece) <= 2000 for piece in pieces)
    assert all(piece.startswith("```python\n") for piece in pieces[1:])
    assert pieces[-1].endswith("```\n\nDone.")


@pytest.mark.parametrize("short_by", range(10))
def test_the_closing_fence_always_finds_room(short_by: int) -> None:
    text = "```\n" + "x" * (2000 - 4 - short_by) + "\n" + "y" * 50 + "\n```"
    pieces = split(text, DISCORD)
    assert all(len(piece) <= 2000 for piece in pieces)
    assert all(piece.startswith("```\n") and piece.endswith("\n```") for piece in pieces)


def test_the_indentation_of_code_survives_a_cut() -> None:
    lines = [f"    indented {n}" for n in range(20)]
    pieces = split("\n".join(["```", *lines, "```"]), Limits(text=80))
    assert [line for piece in pieces for line in piece.split("\n")[1:-1]] == lines


def test_a_fence_in_a_list_keeps_its_indentation() -> None:
    pieces = split("- so:\n\n  ```sh\n" + "  echo\n" * 20 + "  ```", Limits(text=60))
    assert all(piece.startswith("  ```sh\n") for piece in pieces[1:])
    assert all(piece.endswith("\n  ```") for piece in pieces)


def test_a_block_that_fits_into_the_next_piece_is_not_cut() -> None:
    block = "```\n" + "code\n" * 10 + "```"
    assert split("word " * 8 + "\n\n" + block, Limits(text=70)) == (("word " * 8).strip(), block)


@pytest.mark.parametrize(
    ("limit", "text", "pieces"),
    [
        (18, "one two.\n\nthree four\nfive", ("one two.", "three four\nfive")),
        (18, "one two three\nfour five six", ("one two three", "four five six")),
        (18, "That is so. Then it was not", ("That is so.", "Then it was not")),
        (10, "这是第一句话。这是第二句话", ("这是第一句话。", "这是第二句话")),
        (18, "alpha beta gamma delta epsilon", ("alpha beta gamma", "delta epsilon")),
        (18, "abcdefghijklmnopqrstuvwxyz", ("abcdefghijklmnopqr", "stuvwxyz")),
    ],
)
def test_cuts_fall_where_they_hurt_least(limit: int, text: str, pieces: tuple[str, ...]) -> None:
    assert split(text, Limits(text=limit)) == pieces


def test_many_short_lines_that_fit_are_one_message() -> None:
    text = "\n".join(["short line here"] * 40)
    assert split(text, DISCORD) == (text,)


def test_bytes_count_where_the_platform_counts_bytes() -> None:
    pieces = split("汉" * 500, IRC)
    assert all(len(piece.encode()) + 30 <= 512 for piece in pieces)
    assert "".join(pieces) == "汉" * 500


def test_a_text_that_fits_is_left_exactly_as_it_is() -> None:
    assert split("  a\n\n", DISCORD) == ("  a\n\n",)


@pytest.mark.parametrize("blank", ["", " ", "\n\n", " \n" * 5000])
def test_there_is_nothing_to_show_of_blank_text(blank: str) -> None:
    assert split(blank, DISCORD) == ()


def test_a_limit_that_holds_no_character_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        split("你好", Limits(text=2, measure=utf8_bytes(0)))


@pytest.mark.parametrize("unit", ["word ", "a", "```\nx\n```\n", "\n", "你好。", "`"])
def test_a_megabyte_is_no_trouble(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert all(utf16(piece) <= 4096 for piece in split(text, TELEGRAM))
