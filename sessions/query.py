"""What a person types into a search, made safe and exact. Pure.

The language: words (all of them), "phrases", OR, NOT, AND, prefix*, and ( ) around parts. Everything else is text:
`C++`, `it's`, `gateway/run.py`, an operator without its operand, a quote without its twin. Nothing raises.

An expression has two readings that mean the same: a MATCH string for the full-text index, where each term is a
quoted phrase of its words, and a test on text itself for rows that the index cannot find.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hermes.sessions.cjk import WORD, is_run, pairs, plain, search_text
from hermes.text import REPLACEMENT, repair

MAX_CHARACTERS = 2_000
"""Of a query; what follows is not read."""
MAX_TOKENS = 100
"""Terms, operators and brackets. SQLite refuses expressions deeper than 256."""
MAX_DEPTH = 8
"""Brackets inside brackets; deeper ones are not read."""

_TOKEN = re.compile(r'"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<word>[^\s"()]+)|(?P<bracket>[()])')
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_TYPED = str.maketrans(
    dict.fromkeys("“”„‟", '"') | dict.fromkeys(f"，。、；：？！…（）《》「」『』【】{REPLACEMENT}", " ")
)
"""Other quotes are quotes; the punctuation of scripts without blanks parts words."""


class _Folds(dict[int, str]):
    """The folded form of each character, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        base, *marks = list(unicodedata.normalize("NFKD", character))
        folded = base.casefold() if all("\u0300" <= mark <= "\u036f" for mark in marks) else character
        self[code] = folded if len(folded) == 1 else character
        return self[code]


_FOLDS = _Folds()


def tidy(text: str) -> str:
    """`text` on one line with single blanks, its characters composed and plain."""
    return " ".join(plain(unicodedata.normalize("NFC", text)).split())


def fold(text: str) -> str:
    """`text` without case, accents and widths, character for character: positions stay what they were."""
    return text.lower() if text.isascii() else text.translate(_FOLDS)


@dataclass(frozen=True, slots=True)
class Term:
    """A word or a phrase; with `prefix`, its last word may go on."""

    text: str
    prefix: bool = False

    @property
    def words(self) -> list[str]:
        """The words as the index tells them apart; none for pure punctuation."""
        return WORD.findall(self.text)

    def match(self) -> str:
        """The term as a phrase of FTS5. What is written without blanks is found inside longer runs."""
        *inner, last = self.words
        goes_on = self.prefix
        tokens = [(search_text(word) or word).strip() for word in inner]
        if is_run(last):
            goes_on = len(last) == 1
            tokens += pairs(last) or [last]
        else:
            tokens.append(last)
        return f'"{" ".join(tokens)}"{" *" if goes_on else ""}'

    def holds(self, folded: str) -> bool:
        """Whether folded text has the term, letter by letter."""
        return fold(self.text) in folded


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of `parts`, and none of `without`."""

    parts: tuple["Node", ...]
    without: tuple["Node", ...] = ()

    def match(self) -> str:
        """For FTS5, in brackets of its own."""
        parts = " AND ".join(part.match() for part in self.parts)
        excluded = " OR ".join(part.match() for part in self.without)
        return f"(({parts}) NOT ({excluded}))" if excluded else f"({parts})"

    def holds(self, folded: str) -> bool:
        """Whether folded text has all that is wanted and nothing that is not."""
        return all(part.holds(folded) for part in self.parts) and not any(part.holds(folded) for part in self.without)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of `parts`."""

    parts: tuple["Node", ...]

    def match(self) -> str:
        """For FTS5, in brackets of its own."""
        return f"({' OR '.join(part.match() for part in self.parts)})"

    def holds(self, folded: str) -> bool:
        """Whether folded text has any of the parts."""
        return any(part.holds(folded) for part in self.parts)


Node = Term | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Expression:
    """A query that was understood."""

    root: Node

    @property
    def match(self) -> str | None:
        """For `MATCH`; None when the query is punctuation alone, which no index holds."""
        return self.root.match() if all(term.words for term in self.terms) else None

    @property
    def terms(self) -> tuple[Term, ...]:
        """What a reader wants to see marked, in the order typed."""
        return tuple(_wanted(self.root))

    def holds(self, content: str) -> bool:
        """Whether the text has what was asked, letter by letter, whatever its case, accents and blanks."""
        return self.root.holds(fold(tidy(content)))


def _wanted(node: Node) -> Iterator[Term]:
    if isinstance(node, Term):
        yield node
        return
    for part in node.parts:
        yield from _wanted(part)


def _all_of(wanted: Sequence[Node], unwanted: Sequence[Node]) -> Node | None:
    """Nothing can be searched by what is unwanted alone: then that is what is wanted."""
    if not wanted:
        wanted, unwanted = unwanted, ()
    if len(wanted) == 1 and not unwanted:
        return wanted[0]
    return AllOf(tuple(wanted), tuple(unwanted)) if wanted else None


def parse(text: str) -> Expression | None:
    """The expression behind `text`; None when there is nothing to search for."""
    tokens = list(islice(_tokens(text[:MAX_CHARACTERS]), MAX_TOKENS))
    terms = [token for token in tokens if isinstance(token, Term)]
    if not terms:  # operators alone are words like any other
        tokens = [Term(token) for token in tokens if isinstance(token, str) and token in _OPERATORS]
    elif any(term.words for term in terms):
        tokens = [token for token in tokens if not isinstance(token, Term) or token.words]
    root = _Parser(tokens).read()
    return None if root is None else Expression(root)


def _tokens(text: str) -> Iterator[Term | str]:
    """Terms, and as plain strings the operators and brackets."""
    typed = plain(unicodedata.normalize("NFC", repair(text).translate(_TYPED)))
    for found in _TOKEN.finditer(typed):
        if found["bracket"] or found["word"] in _OPERATORS:
            yield found.group()
            continue
        words = " ".join((found["phrase"] or found["word"] or "").split())
        bare = words if found["word"] is None else words.strip("*")
        if bare:
            yield Term(bare, prefix=bool(found["star"]) or (found["word"] or "").endswith("*"))


class _Parser:
    """Recursive descent over tokens. OR binds weakest; whatever has no sense is passed over."""

    def __init__(self, tokens: list[Term | str]) -> None:
        self._rest = tokens[::-1]

    def read(self) -> Node | None:
        """The whole query; None when there is no term in it."""
        return self._any_of(depth=0)

    def _any_of(self, depth: int) -> Node | None:
        parts = [part for part in self._alternatives(depth) if part is not None]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _alternatives(self, depth: int) -> Iterator[Node | None]:
        yield self._all_together(depth)
        while self._rest and self._rest[-1] == "OR":
            self._rest.pop()
            yield self._all_together(depth)

    def _all_together(self, depth: int) -> Node | None:
        wanted: list[Node] = []
        unwanted: list[Node] = []
        negated = False
        while self._rest and self._rest[-1] != "OR":
            piece = self._rest.pop()
            if piece == ")" and depth > 0:
                self._rest.append(piece)
                break
            if piece == "NOT":
                negated = True
            elif (node := self._operand(piece, depth)) is not None:
                (unwanted if negated else wanted).append(node)
                negated = False
        return _all_of(wanted, unwanted)

    def _operand(self, piece: Term | str, depth: int) -> Node | None:
        if isinstance(piece, Term):
            return piece
        if piece != "(" or depth == MAX_DEPTH:
            return None
        node = self._any_of(depth + 1)
        if self._rest:
            self._rest.pop()  # the closing bracket, which alone ends the inner part early
        return node
