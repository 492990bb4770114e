"""Long answers in pieces that a platform takes: at borders where it hurts least, code blocks whole or reopened.

Pure, and linear in the text as long as the measure is. The words of all pieces, put together, are the words of
the input: only white space at the cuts and the added fence lines differ. In code, only the line break at a cut.
"""

import bisect
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hermes.adapters.base import Limits

Measure = Callable[[str], int]

characters: Measure = len


def utf16(text: str) -> int:
    """UTF-16 units, by which Telegram and Matrix clients count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8_bytes(overhead: int) -> Measure:
    """UTF-8 bytes plus `overhead` of the protocol's own, as for IRC's lines."""
    return lambda text: len(text.encode("utf-8", "surrogatepass")) + overhead


def split(markdown: str, limits: Limits) -> tuple[str, ...]:
    """`markdown` in pieces of at most `limits.text` by `limits.measure`; none for blank text.

    Raises ValueError when the limit cannot hold a single character of the text.
    """
    pieces = _Splitter(markdown, limits).pieces() if limits.measure(markdown) > limits.text else [markdown]
    return tuple(piece for piece in pieces if piece.strip())


MAX_MARKER = 20
MAX_INFO = 100
"""A longer fence or info string is taken for text: it could not be repeated in every piece."""

CLUSTER = 64
"""Characters to look back for the start of what a reader sees as one; longer heaps of accents are cut."""

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)

_PARAGRAPH = re.compile(r"(?=\n[ \t]*\n)")
_LINE = re.compile(r"(?=\n)")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？；]+[\"'”’」』）]*")
_BLANK = re.compile(r"(?=\s)")

_BORDERS = (
    # pattern, the part of the piece that must be filled at least, whether it may lie in code
    (_PARAGRAPH, 0.5, False),
    (_LINE, 0.5, True),
    (_SENTENCE, 0.5, False),
    (_BLANK, 0.5, False),
    (_LINE, 0.0, True),
    (_BLANK, 0.0, False),
)
"""Where to cut, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Code:
    """A fenced block: its lines lie in text[inside:closing], between the opening line and the closing one."""

    start: int
    inside: int
    closing: int
    end: int
    reopen: str
    close: str


def _code_blocks(text: str) -> list[_Code]:
    """All fenced blocks, in order. One that is never closed reaches to the end."""
    blocks: list[_Code] = []
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opening is None:
            opening = line if _opens(line) else None
        elif _closes(line, opening):
            blocks.append(_code(opening, line.start(), line.end()))
            opening = None
    if opening is not None:
        blocks.append(_code(opening, len(text), len(text)))
    return blocks


def _opens(line: re.Match[str]) -> bool:
    _, marker, info = line.groups()
    return len(marker) <= MAX_MARKER and len(info) <= MAX_INFO and not ("`" in marker and "`" in info)


def _closes(line: re.Match[str], opening: re.Match[str]) -> bool:
    return line[2].startswith(opening[2]) and not line[3].strip()


def _code(opening: re.Match[str], closing: int, end: int) -> _Code:
    indent, marker, info = opening.groups()
    language = (info.split() or [""])[0]
    return _Code(
        start=opening.start(),
        inside=opening.end() + 1,
        closing=closing,
        end=end,
        reopen=f"{indent}{marker}{language}\n",
        close=f"\n{indent}{marker}",
    )


class _Splitter:
    """One text on its way into pieces."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._blocks = _code_blocks(text)
        self._starts = [block.start for block in self._blocks]

    def pieces(self) -> Iterator[str]:
        start = 0
        while start < len(self._text):
            cut = self._cut(start)
            yield self._piece(start, cut)
            start = self._resume(cut)

    def _block_at(self, place: int) -> _Code | None:
        """The block that `place` falls into, its fence lines included."""
        index = bisect.bisect_right(self._starts, place) - 1
        return self._blocks[index] if index >= 0 and place < self._blocks[index].end else None

    def _code_at(self, place: int) -> _Code | None:
        """The block whose code `place` falls into."""
        block = self._block_at(place)
        return block if block is not None and block.inside <= place < block.closing else None

    def _piece(self, start: int, cut: int) -> str:
        """What is shown for text[start:cut]: code closed and reopened, unless the limit is too small even for that."""
        framed = self._framed(start, cut)
        return framed if self._fits(framed) else self._text[start:cut]

    def _framed(self, start: int, cut: int) -> str:
        before, after = self._code_at(start), self._code_at(cut)
        body = self._text[start:cut]
        if after is None and cut < len(self._text):
            body = body.rstrip()
        return f"{before.reopen if before else ''}{body}{after.close if after else ''}"

    def _fits(self, piece: str) -> bool:
        return self._limits.measure(piece) <= self._limits.text

    def _cut(self, start: int) -> int:
        """Where the piece that begins at `start` ends: after it, and where the piece fits."""
        farthest = self._farthest(start, self._framed)
        if farthest == len(self._text):
            return farthest
        for place in self._places(start, farthest):
            if self._may_cut(start, place) and self._fits(self._framed(start, place)):
                return place
        return self._raw_cut(start)

    def _places(self, start: int, farthest: int) -> Iterator[int]:
        for pattern, share, in_code in _BORDERS:
            first = start + max(1, int((farthest - start) * share))
            for place in reversed([found.end() for found in pattern.finditer(self._text, first, farthest + 2)]):
                if place <= farthest and (in_code or self._block_at(place) is None):
                    yield place
        place = _boundary(self._text, start, farthest)
        yield place
        if (block := self._block_at(place)) is not None:
            yield block.start

    def _may_cut(self, start: int, place: int) -> bool:
        """Not inside a fence line, and never so that no code would be left on one side of a fence."""
        block = self._block_at(place)
        if place <= start or block is None or place == block.start:
            return place > start
        return max(start, block.inside) < place < block.closing - 1

    def _raw_cut(self, start: int) -> int:
        """As far as the bare text fits: for limits that a fence does not fit into."""
        place = self._farthest(start, lambda first, last: self._text[first:last])
        if place == start:
            raise ValueError(f"a limit of {self._limits.text} cannot hold {self._text[start]!r}")
        return _boundary(self._text, start, place)

    def _farthest(self, start: int, piece: Callable[[int, int], str]) -> int:
        """The last place up to which a piece fits. Every character counts at least one."""
        low, high = start, min(len(self._text), start + self._limits.text)
        if self._fits(piece(start, high)):
            return high
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(piece(start, middle)):
                low = middle
            else:
                high = middle
        return low

    def _resume(self, cut: int) -> int:
        """Where the next piece begins: past one line break in code, elsewhere past white space.

        The indentation of a line is kept.
        """
        if self._code_at(cut) is not None:
            return cut + 1 if self._text[cut] == "\n" else cut
        blank = _WHITE.match(self._text, cut)
        assert blank is not None
        return blank.end()


_WHITE = re.compile(r"(?:\s*\n)?(?:(?<!\n)\s+)?")


def _boundary(text: str, start: int, place: int) -> int:
    """`place`, or the nearest place before it that parts nothing that readers see as one character."""
    for candidate in range(place, max(start, place - CLUSTER), -1):
        if candidate == len(text) or not _joined(text, start, candidate):
            return candidate
    return place - 1 if place - 1 > start and _is_pair(text, place) else place


def _joined(text: str, start: int, place: int) -> bool:
    """Do the characters before and after `place` belong together?"""
    before, after = text[place - 1], text[place]
    return (
        _is_pair(text, place)
        or before == _ZWJ
        or after == _ZWJ
        or (before, after) == ("\r", "\n")
        or unicodedata.category(after) in {"Mn", "Mc", "Me"}
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags, as in the flag of Scotland
        or (_is_regional(before) and _is_regional(after) and _regionals_before(text, start, place) % 2 == 1)
    )


_ZWJ = "\u200d"


def _is_pair(text: str, place: int) -> bool:
    """Is `place` between the halves of a surrogate pair?"""
    return place < len(text) and "\ud800" <= text[place - 1] <= "\udbff" and "\udc00" <= text[place] <= "\udfff"


def _is_regional(character: str) -> bool:
    """Letters that make a flag in pairs."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_before(text: str, start: int, place: int) -> int:
    first = place
    while first > start and _is_regional(text[first - 1]):
        first -= 1
    return place - first
