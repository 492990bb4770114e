"""Text from outside, made safe to keep. Pure; used once, where text enters."""

import unicodedata

REPLACEMENT = "\ufffd"


def repair(text: str) -> str:
    """`text` with lone surrogates and NULs replaced by U+FFFD; everything else survives byte for byte.

    A pair of surrogates that some JSON encoders leave apart is joined to the character it stands for.
    """
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def one_line(text: str, cap: int) -> str:
    """`text` on one line, without control or format characters, at most `cap` characters long.

    For names, titles and topics that other people chose: they are data wherever they are shown.
    """
    words = "".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in repair(text))
    line = " ".join(words.split())
    return line if len(line) <= cap else line[: cap - 1].rstrip() + "…"
