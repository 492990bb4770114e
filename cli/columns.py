"""Text in the columns of a terminal, where a Chinese character takes two and a joined emoji as many as its first."""

import unicodedata
from itertools import pairwise

JOINER = "\u200d"
EMOJI_STYLE = "\ufe0f"
SKIN_TONES = range(0x1F3FB, 0x1F400)
INVISIBLE = {"Mn", "Me", "Cf", "Cc"}


_CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""Words of models and of other people must not steer the terminal."""


def printable(text: str) -> str:
    """`text` without characters that steer a terminal."""
    return text.translate(_CONTROLS)


def columns_of(text: str) -> int:
    """How many columns `text` takes on one line."""
    if text.isascii():
        return len(text)
    return sum(_columns(before, here) for before, here in pairwise(f" {text}"))


def fit(text: str, width: int) -> str:
    """`text` in exactly `width` columns, cut with an ellipsis or filled with blanks."""
    shown = cut(printable(text), width)
    return shown + " " * (width - columns_of(shown))


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns; what had to go leaves an ellipsis."""
    if columns_of(text) <= width:
        return text
    while columns_of(text) > width - 1:
        text = text[:-1]
    return text.rstrip(JOINER) + "…"


def _columns(before: str, here: str) -> int:
    """The columns that `here` adds after `before`."""
    if here == EMOJI_STYLE:  # a narrow sign becomes a wide picture
        return 2 - _alone(before) if _alone(before) else 0
    if before == JOINER or (ord(here) in SKIN_TONES and _alone(before) == 2):
        return 0
    return _alone(here)


def _alone(character: str) -> int:
    if unicodedata.category(character) in INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
