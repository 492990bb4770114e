"""Choosing one conversation of many: what is typed, what matches, what is selected, what stands on the screen. Pure.

A `Picker` is a value: each key gives the next one. Words of other people reach the screen without anything that could
steer a terminal, and without the characters that terminals join into one picture or not, as each sees fit.
"""

import dataclasses
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hermes.cli.columns import columns_of, cut, fit
from hermes.cli.listing import ago
from hermes.sessions.model import ConversationId, Session, SessionId
from hermes.sessions.query import fold, tidy
from hermes.text import one_line

TYPED_CAP = 200
"""Characters of a filter; what is pasted beyond them is dropped."""
NAME_CAP = 400
"""Characters of a name; no terminal shows more on a line."""

HEADINGS = "Title", "Last Active", "Source", "ID"
WHEN, SOURCE, ID = 11, 10, 24
"""Columns. An id from elsewhere may be longer; the rule above the preview has it whole."""
LEAST_NAME = 16
"""Columns that a name keeps before a secondary column goes."""
MARKS = "› ", "  "
"""What stands before the selected row and before the others: the selection is seen without colours too."""

FIND = "Find: "
LEAST_TYPED = 8
HINT = "Enter resumes · Esc leaves · Ctrl-U empties the filter"
NO_MATCH = "Nothing matches. Ctrl-U empties the filter."
LOADING = "…"
NO_WORDS = "No words are kept of it."

SMALL, MEDIUM = 8, 10
"""Lines of a terminal from which there is room for headings and a preview, and for a hint besides."""
MOST_PREVIEW = 14

_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_STYLES = {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0x1F3FB, 0x1F400))}
"""Variation selectors and skin tones: they change how wide their neighbour is, on some terminals."""
_FLAGS = {0x1F1E6 + number: chr(ord("A") + number) for number in range(26)}
"""The letters that flags are made of, as plain ones: a flag is as wide as its two letters on few terminals only."""


class Tone(StrEnum):
    """How a piece of a line looks; the values are prompt_toolkit's style strings."""

    PLAIN = ""
    DIM = "dim"
    CHOSEN = "reverse"


Piece = tuple[Tone, str]
Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One conversation, with its texts ready to be matched."""

    id: SessionId
    conversation: ConversationId
    name: str
    source: str
    last_active: float
    folded: str
    """Everything that a filter looks at, without case and accents."""

    def holds(self, words: Iterable[str]) -> bool:
        """Whether each of the folded words occurs somewhere."""
        return all(word in self.folded for word in words)


def row_of(session: Session) -> Row:
    """The row of a conversation: named by its title, else by its first words."""
    seen = " ".join((session.title or "", session.preview, session.source, session.id))
    return Row(
        id=session.id,
        conversation=session.conversation,
        name=session.title or session.preview,
        source=session.source,
        last_active=session.last_active,
        folded=fold(tidy(seen)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """Rows, what is typed to narrow them, and which of the remaining is selected. Made by `opened`.

    `found` are the rows that match, in their order. While there are any, one of them is selected.
    """

    rows: tuple[Row, ...]
    typed: str
    found: tuple[Row, ...]
    at: int
    """The selected row's place in `found`."""
    wanted: Row | None
    """The row that was selected last: selected again as soon as it matches, when nothing did in between."""
    top: int
    """The first row of `found` that is in sight."""

    @property
    def selected(self) -> Row | None:
        """The row that Enter chooses; None when nothing matches."""
        return self.found[self.at] if self.found else None

    def with_more(self, text: str) -> "Picker":
        """`text` was typed or pasted."""
        spaced = "".join(" " if one.isspace() else one for one in text)
        return self._narrowed((self.typed + plain(spaced))[:TYPED_CAP])

    def with_less(self) -> "Picker":
        """The last character was taken back."""
        return self._narrowed(self.typed[:-1])

    def unfiltered(self) -> "Picker":
        """What was typed was taken back as a whole."""
        return self._narrowed("")

    def moved(self, by: int) -> "Picker":
        """The selection went down by so many rows (up, below 0), and not beyond an end."""
        if not self.found:
            return self
        at = min(max(self.at + by, 0), len(self.found) - 1)
        return dataclasses.replace(self, at=at, wanted=self.found[at])

    def scrolled(self, height: int) -> "Picker":
        """With the selected row inside the `height` rows in sight, and none of those left empty without need."""
        top = max(min(self.top, self.at), self.at - height + 1)
        return dataclasses.replace(self, top=max(min(top, len(self.found) - height), 0))

    def _narrowed(self, typed: str) -> "Picker":
        words = fold(tidy(typed)).split()
        found = tuple(row for row in self.rows if row.holds(words))
        at = next((place for place, row in enumerate(found) if row is self.wanted), 0)
        wanted = found[at] if found else self.wanted
        return dataclasses.replace(self, typed=typed, found=found, at=at, wanted=wanted)


def opened(rows: Sequence[Row]) -> Picker:
    """A picker in which nothing is typed yet and the first row is selected."""
    every = tuple(rows)
    return Picker(rows=every, typed="", found=every, at=0, wanted=every[0] if every else None, top=0)


# -- the screen ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """How the lines of a terminal are shared: one for the filter, the others here."""

    heading: int
    table: int
    preview: int
    """With the rule above it."""
    hint: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands on the screen. The cursor is on the first line, behind its first `cursor` characters."""

    lines: tuple[Line, ...]
    cursor: int


def plan(height: int) -> Plan:
    """The shares at this height; the table has what the others leave."""
    heading = 1 if height >= SMALL else 0
    preview = min(height // 3, MOST_PREVIEW) if height >= SMALL else 0
    hint = 1 if height >= MEDIUM else 0
    return Plan(heading, max(height - 1 - heading - preview - hint, 0), preview, hint)


def show(picker: Picker, *, width: int, height: int, now: float, words: Sequence[str] | None) -> Shown:
    """The screen, no line wider than `width` and no more than `height` of them.

    `words` are the preview of the selected row, None while they are on the way. Rows are shown from `picker.top` on.
    """
    if width < 1 or height < 1:
        return Shown((), 0)
    shares = plan(height)
    first, cursor = _filter_line(picker, width)
    lines = [
        first,
        *_table(picker, shares, width, now),
        *_preview(picker.selected, words, width, shares.preview),
        *([((Tone.DIM, cut(HINT, width)),)] * shares.hint),
    ]
    return Shown(tuple(lines), cursor)


def _filter_line(picker: Picker, width: int) -> tuple[Line, int]:
    """What is typed, with how many rows it leaves at the right; and the characters before the cursor."""
    count = f"{len(picker.found)} of {len(picker.rows)}"
    label = FIND if width >= len(FIND) + LEAST_TYPED else ""
    if width < len(label) + LEAST_TYPED + len(count):
        count = ""
    room = width - len(label) - len(count) - 1  # the cursor stands behind the last character
    typed = _end_of(picker.typed, room)
    gap = " " * (room + 1 - columns_of(typed)) if count else ""
    return ((Tone.DIM, label), (Tone.PLAIN, typed), (Tone.DIM, gap + count)), len(label) + len(typed)


def _end_of(text: str, room: int) -> str:
    while columns_of(text) > room:
        text = text[1:]
    return text


def _table(picker: Picker, shares: Plan, width: int, now: float) -> list[Line]:
    widths = columns(width)
    lines: list[Line] = [((Tone.DIM, cut(heading(widths), width)),)] * shares.heading
    seen = picker.found[picker.top : picker.top + shares.table]
    for row in seen:
        name, rest = cells(row, widths, now)
        if row is picker.selected:
            lines.append(((Tone.CHOSEN, fit(MARKS[0] + name + rest, width)),))
        else:
            lines.append(((Tone.PLAIN, cut(MARKS[1] + name, width)), (Tone.DIM, rest)))
    if not seen and shares.table:
        lines.append(((Tone.DIM, cut(NO_MATCH, width)),))
    return lines + [()] * (shares.heading + shares.table - len(lines))


def _preview(row: Row | None, words: Sequence[str] | None, width: int, height: int) -> list[Line]:
    """The last of `words` that have room, below a rule with the whole id, which the table may have no room for."""
    if not height:
        return []
    name = cut(f"── {label_of(row.id)} ", width) if row else ""
    rule: Line = ((Tone.DIM, name + "─" * (width - columns_of(name))),)
    told = [] if row is None else [LOADING] if words is None else list(words) or [NO_WORDS]
    room = height - 1
    shown: list[Line] = [((Tone.PLAIN, cut(plain(line)[:NAME_CAP], width)),) for line in told[-room:]]
    return [rule, *shown, *([()] * (room - len(shown)))]


# -- columns ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide each column is, without the blank before it; 0 for one that is left out."""

    name: int
    when: int
    source: int
    id: int


def columns(width: int) -> Columns:
    """The columns that a terminal of this width has room for: the id goes first, then the source, then the time."""
    room = width - len(MARKS[0])
    rest = [WHEN, SOURCE, ID]
    while rest and room - sum(rest) - len(rest) < LEAST_NAME:
        rest.pop()
    name = max(room - sum(rest) - len(rest), 1)
    when, source, session, *_ = *rest, 0, 0, 0
    return Columns(name, when, source, session)


def heading(widths: Columns) -> str:
    """The names of the columns, to stand above them."""
    return MARKS[1] + "".join(_aligned(HEADINGS, widths))


def cells(row: Row, widths: Columns, now: float) -> tuple[str, str]:
    """The name of a row, and its secondary facts as one text to stand behind it."""
    facts = (label_of(row.name) or "—", ago(now - row.last_active), label_of(row.source), label_of(row.id))
    return _aligned(facts, widths)


def _aligned(facts: tuple[str, str, str, str], widths: Columns) -> tuple[str, str]:
    name, *rest = facts
    fields = zip(rest, (widths.when, widths.source, widths.id), strict=True)
    return fit(name, widths.name), "".join(f" {fit(fact, width)}" for fact, width in fields if width)


def label_of(text: str) -> str:
    """Somebody's text as a label: one line, plain, and no longer than anybody can see."""
    return plain(one_line(text, NAME_CAP))


def plain(text: str) -> str:
    """`text` without what steers a terminal, and without what terminals do not agree on the width of."""
    if text.isascii() and text.isprintable():
        return text
    kept = (one for one in text if one not in _STYLES and unicodedata.category(one) not in _STEERING)
    return "".join(kept).translate(_FLAGS)
