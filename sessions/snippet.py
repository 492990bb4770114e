"""The few words around a match, marked. Pure."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from hermes.sessions.cjk import SPACED, WORD, is_run
from hermes.sessions.query import Expression, Term, fold, tidy

WIDTH = 160
"""Characters around the first match, marks and dots aside."""
LEAD = 50
"""How many of them come before it."""
MARKED = 12
"""Different terms of a query that are marked; a pattern of a hundred costs a second."""
OPEN, CLOSE = ">>>", "<<<"

_BETWEEN = r"[\W_]*"


def snippet(content: str, expression: Expression) -> str:
    """A piece of `content` on one line, with every match in it between `>>>` and `<<<`.

    Whole words are marked where there are any, as the index finds them; else the letters wherever they stand, as
    the scan does. Without either (the index folds more than this module does) it is the beginning.
    """
    line = tidy(content)
    matches = _matches(line, expression.terms)
    start = max(0, min((matches[0].start() if matches else 0) - LEAD, len(line) - WIDTH))
    end = start + WIDTH
    shown = "".join(_marked(line, start, end, (match for match in matches if start <= match.start() < end)))
    return f"{'…' if start else ''}{shown}{'…' if end < len(line) else ''}"


def _matches(line: str, terms: Iterable[Term]) -> list[re.Match[str]]:
    folded = fold(line)
    marked = sorted(islice(dict.fromkeys(terms), MARKED), key=lambda term: -len(term.text))
    for pattern in (_as_words, _as_letters):
        either = "|".join(map(pattern, marked))
        if matches := list(re.finditer(either, folded)):
            return matches
    return []


def _as_words(term: Term) -> str:
    """The term's words one after the other, whatever stands between them; its own punctuation where it is there."""
    words = WORD.findall(fold(term.text))
    if not words:
        return _as_letters(term)
    before = "" if is_run(words[0]) else f"(?<!{SPACED})"
    after = "" if is_run(words[-1]) or term.prefix else f"(?!{SPACED})"
    apart = _BETWEEN.join(map(re.escape, words))
    return f"{before}(?:{_as_letters(term)}|{apart}){after}"


def _as_letters(term: Term) -> str:
    return re.escape(fold(term.text))


def _marked(line: str, start: int, end: int, matches: Iterable[re.Match[str]]) -> Iterator[str]:
    at = start
    for match in matches:
        yield line[at : match.start()]
        at = min(match.end(), end)
        yield f"{OPEN}{line[match.start() : at]}{CLOSE}"
    yield line[at:end]
