"""How many tokens a text costs, without asking anybody.

The provider's own count always wins where there is one. An estimate is what is left for rows that no model has
seen yet; `Meter` scales it by how far the last estimate was from the truth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from hermes.sessions.model import Message, NewMessage

CHARACTERS_PER_TOKEN = 4
"""Of English and of code, over the vocabularies of the large providers. No text here is estimated thinner than that."""

ROW_OVERHEAD = 4
"""Tokens that role and separators add to each row, after OpenAI's published counting recipe (3 to 4)."""

RATIO_RANGE = (0.25, 4.0)
"""A calibration outside of this says that the two counts were of different prompts."""


def estimate_text(text: str) -> int:
    """Tokens of `text`: a quarter for an ASCII character, one for a CJK character.

    In UTF-8 a character takes one byte (ASCII), two (Cyrillic, Greek, Arabic), three (CJK) or four (emoji). Three
    eighths of a token for each byte past the first make these 0.25, 0.63, 1 and 1.38 tokens, at the speed of an
    encoder.
    """
    characters = len(text)
    if text.isascii():
        return -(-characters // CHARACTERS_PER_TOKEN)
    further_bytes = len(text.encode("utf-8", "surrogatepass")) - characters
    return -(-(2 * characters + 3 * further_bytes) // 8)


def estimate_row(row: NewMessage) -> int:
    """Tokens of one row, calls included."""
    tokens = ROW_OVERHEAD + estimate_text(row.content)
    for call in row.tool_calls:
        tokens += ROW_OVERHEAD + estimate_text(call.name) + estimate_text(call.arguments)
    return tokens


def clip(text: str, tokens: int) -> str:
    """The start of `text`, no more than about `tokens` long and never longer."""
    tokens = max(tokens, 0)
    text = text[: CHARACTERS_PER_TOKEN * tokens]
    while (size := estimate_text(text)) > tokens:
        text = text[: min(len(text) * tokens // size, len(text) - 1)]
    return text


def excerpt(text: str, tokens: int) -> str:
    """`text`, or its start and its end with a mark between them where it is longer than `tokens`."""
    mark = "\n[…]\n"
    if estimate_text(text) <= tokens:
        return text
    room = max(tokens - estimate_text(mark), 0)
    end = room // 4
    last = text[max(len(text) - CHARACTERS_PER_TOKEN * end, 0) :] if end else ""
    return clip(text, room - end) + mark + clip(last[::-1], end)[::-1]


@dataclass(frozen=True, slots=True)
class Meter:
    """Estimates, scaled by `ratio`: the true tokens for each estimated one."""

    ratio: float = 1.0

    @classmethod
    def calibrated(cls, *, estimated: int, counted: int) -> Self:
        """From a prompt that was `estimated` by a plain `Meter()` and `counted` by the provider.

        Both figures cover the whole prompt (system prompt, tools, rows) and nothing of the answer.
        """
        if estimated <= 0 or counted <= 0:
            return cls()
        low, high = RATIO_RANGE
        return cls(min(max(counted / estimated, low), high))

    def scaled(self, estimated: int) -> int:
        """An estimate in true tokens."""
        return ceil(self.ratio * estimated)

    def text(self, text: str) -> int:
        """Tokens of a text: the system prompt, or the tool list as JSON."""
        return self.scaled(estimate_text(text))

    def rows(self, rows: Iterable[NewMessage]) -> int:
        """Tokens of rows of a conversation."""
        return self.scaled(sum(map(estimate_row, rows)))

    def grown(self, counted: int, *, through: int, history: Sequence[Message]) -> int:
        """Tokens of the prompt now, when the provider `counted` it with `through` as its last row's id.

        Looks at newer rows only, so that the check before a turn costs the same for any length of history. A count
        from before a compression or a pruning says nothing about the history after it.
        """
        newer = 0
        for row in reversed(history):
            if row.id <= through:
                break
            newer += estimate_row(row)
        return counted + self.scaled(newer)
