"""What the full-text index sees of text in scripts that are written without blanks. Pure.

SQLite's word tokenizer takes a run of Chinese, Japanese or Korean for one word, and a Latin word that touches it for
a part of that word. So each run is given to the index as its overlapping pairs, with its last character behind them:

    修改youer服务端  ->  修改 改 youer 服务 务端 端

A term of two or more characters is then the phrase of its pairs; every single character starts a token, so one
character is the prefix of one. The last character also keeps two neighbouring runs from making a pair together.
(Measured against SQLite's trigram tokenizer: a third of the writing cost, and terms of two characters are found.)
"""

import operator
import re
import unicodedata

_UNSPACED = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # iteration marks and Han numerals
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # hangul
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
)
_HALF_WIDTH = "\uff66-\uffdc"
_RUN = re.compile(f"[{_UNSPACED}]+")
WORD = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
"""A run, or a word of any other script, as the index tells words apart; of plain text."""
SPACED = f"[^\\W_{_UNSPACED}]"
"""The pattern of one character that joins its neighbours to a word."""
_ANY = re.compile(f"[{_UNSPACED}{_HALF_WIDTH}]")
_VARIANT = re.compile(
    f"[{_HALF_WIDTH}\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"  # half width; full width digits and letters
    "\u1100-\u11ff\u3099\u309a\uf900-\ufaff\U0002f800-\U0002fa1f]"  # decomposed hangul and kana; compatibility Han
)


def search_text(content: str) -> str | None:
    """What the index should see instead of `content`; None when it can see the content itself.

    Half and full width forms, decomposed hangul and kana and compatibility ideographs become the plain ones.
    """
    if content.isascii() or not _ANY.search(content):
        return None
    return _RUN.sub(_spread, plain(content))


def plain(text: str) -> str:
    """`text` with the variant forms of characters replaced by the plain ones, where there are any."""
    return unicodedata.normalize("NFKC", text) if _VARIANT.search(text) else text


def is_run(word: str) -> bool:
    """Whether a word is written in a script without blanks."""
    return _RUN.match(word) is not None


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a run's characters; none for a single character."""
    return [*map(operator.add, run, run[1:])]


def _spread(run: re.Match[str]) -> str:
    characters = run.group()
    return f" {' '.join([*pairs(characters), characters[-1]])} "
