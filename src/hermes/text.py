"""Text from outside, made safe to keep. Pure; used once, where text enters."""

import re

REPLACEMENT = "\ufffd"

_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""The categories Cc, Zl and Zp of Unicode."""

_ROOM = 8
"""Characters to look at for each that is wanted: enough for all but heaps of blanks."""


def repair(text: str) -> str:
    """`text` with lone surrogates and NULs replaced by U+FFFD; everything else survives byte for byte.

    A pair of surrogates that some JSON encoders leave apart is joined to the character it stands for.
    """
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def one_line(text: str, cap: int) -> str:
    """`text` on one line, without control or format characters, at most `cap` characters long.

    For names, titles and topics that other people chose: they are data wherever they are shown.
    """
    line = _joined(text[: cap * _ROOM])
    if len(line) <= cap and len(text) > cap * _ROOM:
        line = _joined(text)
    return line if len(line) <= cap else line[: cap - 1].rstrip() + "…"


def _joined(text: str) -> str:
    return " ".join(_BREAK.sub(" ", repair(text)).split())
