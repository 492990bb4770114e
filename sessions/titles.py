"""The names of conversations: how they are cleaned, numbered and told apart. Pure."""

import re
import unicodedata
from collections.abc import Callable
from itertools import groupby

from hermes.errors import UserError
from hermes.text import repair

LIMIT = 100
"""The longest title in characters, so that a list keeps one line a conversation."""

_NUMBERED = re.compile(r"(?P<stem>.*\S) #(?P<number>[1-9][0-9]{0,3})")
"""Longer figures behind a `#` are a ticket's or a ship's number and stay in the name."""

_ZERO_WIDTH_SPACES = frozenset("\u200b\ufeff")
_ZERO_WIDTH_JOINER = "\u200d"
_JOINERS = frozenset(f"\u200c{_ZERO_WIDTH_JOINER}")
_EMOJI_STYLE = "\ufe0f"
_BLACK_FLAG = "\U0001f3f4"
_VIRAMA = 9
"""The combining class of the sign that joins consonants in Indic scripts."""


def clean(title: str) -> str | None:
    """`title` on one line, without characters that hide or turn text; None when nothing is left.

    Joiners stay where they shape what people see: inside emoji, Arabic and Indic words. Raises UserError when it
    is longer than `LIMIT` characters.
    """
    line = " ".join(_without_invisible(repair(title)).split())
    if len(line) > LIMIT:
        raise UserError(f"A title has at most {LIMIT} characters; this one has {len(line)}. Choose a shorter one.")
    return line or None


def family(title: str) -> tuple[str, int]:
    """The name that a title shares with its numbered siblings, and its own number: `name #3` is `("name", 3)`."""
    match = _NUMBERED.fullmatch(title)
    if match is None or match["number"] == "1":
        return title, 1
    return match["stem"], int(match["number"])


def numbered(title: str, n: int) -> str:
    """`title #n`, the name shortened where the whole would pass `LIMIT`; number 1 is the plain name."""
    if n == 1:
        return title
    suffix = f" #{n}"
    return _shortened(title, LIMIT - len(suffix)) + suffix


def next_free(title: str, taken: Callable[[str], bool]) -> str:
    """`title` itself, or its first later sibling for which `taken` says no."""
    stem, n = family(title)
    free = title
    while taken(free):
        n += 1
        free = numbered(stem, n)
    return free


def _without_invisible(text: str) -> str:
    runs = [(hidden, "".join(run)) for hidden, run in groupby(text, _invisible)]
    edges = ["", *(run for _, run in runs), ""]
    return "".join(
        _meaning(before[-1:], run, after[:1]) if hidden else run
        for before, (hidden, run), after in zip(edges, runs, edges[2:], strict=False)
    )


def _invisible(character: str) -> bool:
    """Control and format characters; white space is none of them."""
    return unicodedata.category(character) in {"Cc", "Cf"} and not character.isspace()


def _meaning(before: str, run: str, after: str) -> str:
    """What is kept of a run of invisible characters between two visible ones (empty at the ends)."""
    if before == _BLACK_FLAG and all(map(_is_tag, run)):
        return run
    if _ZERO_WIDTH_JOINER in run and (_is_emoji(before) or before == _EMOJI_STYLE) and _is_emoji(after):
        return _ZERO_WIDTH_JOINER
    if _is_shaped(before, after):
        return next((character for character in run if character in _JOINERS), "")
    apart = before.isalnum() and after.isalnum() and not _ZERO_WIDTH_SPACES.isdisjoint(run)
    return " " if apart else ""


def _is_tag(character: str) -> bool:
    """The letters inside the flags of England, Scotland, Wales."""
    return "\U000e0020" <= character <= "\U000e007f"


def _is_emoji(character: str) -> bool:
    return "\U0001f000" <= character <= "\U0001faff" or (
        character != "" and (character == "↔" or unicodedata.category(character) == "So")
    )


def _is_shaped(before: str, after: str) -> bool:
    """Whether the script around a joiner changes its letters by it."""
    if before == "":
        return False
    if unicodedata.combining(before) == _VIRAMA or (after != "" and unicodedata.combining(after) == _VIRAMA):
        return True
    return (
        unicodedata.bidirectional(before) in {"AL", "NSM"} and after != "" and unicodedata.bidirectional(after) == "AL"
    )


def _shortened(name: str, room: int) -> str:
    """The start of `name` that fits, never cut inside what people see as one character."""
    if len(name) <= room:
        return name
    end = room
    while end and _are_glued(name[end - 1], name[end]):
        end -= 1
    return name[: end or room].rstrip()


def _are_glued(left: str, right: str) -> bool:
    return (
        left in _JOINERS
        or right in _JOINERS
        or _is_tag(right)
        or unicodedata.category(right).startswith("M")
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or (_is_flag_letter(left) and _is_flag_letter(right))
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
