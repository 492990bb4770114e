"""`hermes sessions browse`: choose a conversation on the whole screen, or by number where there is no screen."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, UIContent, UIControl, Window
from prompt_toolkit.utils import is_dumb_terminal

from hermes.cli.columns import cut
from hermes.cli.listing import show as show_list
from hermes.cli.picker import SOURCE, WHEN, Columns, Picker, Row, cells, label_of, opened, plan, row_of, show
from hermes.cli.recap import SHOWN, recap
from hermes.cli.store import readable
from hermes.home import Home
from hermes.sessions import dbapi
from hermes.sessions.database import unavailable
from hermes.sessions.dbapi import Connection
from hermes.sessions.lookup import LISTED, SPOKEN
from hermes.sessions.model import Page, SessionId
from hermes.sessions.rows import SELECT_MESSAGES, SLIM_SESSIONS, message, session

GLANCE = 2_400
"""Characters of a message that a preview reads."""
ESCAPE_SECONDS = 0.1
"""How long an Esc waits for the rest of an arrow key, which begins with one."""
NAME, WHOLE = 40, 36
"""Columns of a name and of an id in the list with numbers."""
LONGEST_NUMBER = 9

_SLIM_MESSAGES = SELECT_MESSAGES.replace("m.content", f"substr(m.content, 1, {GLANCE})")

Peek = Callable[[Row], Sequence[str]]
"""Reads the preview of a row, on a thread of its own."""
Step = Callable[[Picker, int], Picker]
"""What a key does to a picker whose page has so many rows."""

STEPS: Mapping[str, Step] = {
    "up": lambda picker, _: picker.moved(-1),
    "c-p": lambda picker, _: picker.moved(-1),
    "down": lambda picker, _: picker.moved(1),
    "c-n": lambda picker, _: picker.moved(1),
    "pageup": lambda picker, page: picker.moved(-page),
    "pagedown": lambda picker, page: picker.moved(page),
    "home": lambda picker, _: picker.moved(-len(picker.found)),
    "end": lambda picker, _: picker.moved(len(picker.found)),
    "backspace": lambda picker, _: picker.with_less(),
    "c-u": lambda picker, _: picker.unfiltered(),
}
"""The keys that move and edit, by prompt_toolkit's names."""


def browse(home: Home, environ: Mapping[str, str], *, source: str | None, limit: int) -> int:
    """Let a person choose a conversation and go on with it; gives the exit code, 0 when nothing was chosen.

    Raises StoreUnavailable, SchemaTooNew, and whatever a chat raises.
    """
    chosen = pick(home, source=source, limit=limit, environ=environ)
    if chosen is None:
        return 0
    from hermes.cli.chat import Wish, run  # the gateway's libraries: choosing does not wait for them

    return asyncio.run(run(home, environ, Wish(resume=chosen)))


def pick(home: Home, *, source: str | None, limit: int, environ: Mapping[str, str]) -> str | None:
    """The id of the conversation that a person chose; None when they left, or there was nothing to choose from.

    Only the `limit` that were last active are offered, of one source or of all, and none that is archived.
    Raises StoreUnavailable, SchemaTooNew.
    """
    if home.database.exists():
        with readable(home) as connection:
            rows = read_rows(connection, source=source, limit=limit)
            if rows and _has_screen(environ):
                return asyncio.run(choose(rows, partial(_peek, home, connection), tones=not environ.get("NO_COLOR")))
            if rows:
                return _by_number(rows)
    show_list(home, Page(limit=1, source=source), as_json=False)  # it has the sentence for an empty list
    return None


def _has_screen(environ: Mapping[str, str]) -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and not is_dumb_terminal(environ.get("TERM", ""))


# -- the store -------------------------------------------------------------------------------------------------------


def read_rows(connection: Connection, *, source: str | None, limit: int) -> tuple[Row, ...]:
    """The conversations that `hermes sessions list` shows, without the long texts that it reads along."""
    narrow, values = ("", ()) if source is None else ("AND s.source = ?", (source,))
    found = connection.execute(
        # a CROSS JOIN is never turned round: the read goes along the sessions' index by time and ends early
        f"{SLIM_SESSIONS.replace('JOIN', 'CROSS JOIN')} AND c.tip = s.id WHERE {LISTED} AND c.archived = 0 {narrow}"
        " ORDER BY s.last_active DESC, s.id DESC LIMIT ?",
        (*values, limit),
    )
    return tuple(row_of(session(row)) for row in found)


def last_words(connection: Connection, row: Row) -> list[str]:
    """The recap of a conversation's last messages: so many rows at most, and only the beginning of each."""
    segments = connection.execute(
        "SELECT id FROM sessions WHERE conversation = ? ORDER BY started_at DESC, rowid DESC", (row.conversation,)
    ).fetchall()
    newest_first: list[tuple[object, ...]] = []
    for (segment,) in segments:  # one by one: within a segment the index has them in order, and the rest stays unread
        if (missing := SHOWN - len(newest_first)) > 0:
            newest_first += connection.execute(
                f"{_SLIM_MESSAGES} WHERE m.session_id = ? AND {SPOKEN} AND m.role <> 'tool' ORDER BY m.id DESC LIMIT ?",
                (segment, missing),
            )
    return recap([message(found) for found in reversed(newest_first)])


def _peek(home: Home, connection: Connection, row: Row) -> Sequence[str]:
    """The preview; where it cannot be read, why. The others may still be readable, and the row can be chosen."""
    try:
        return last_words(connection, row)
    except dbapi.Error as error:
        return [str(unavailable(home.database, error))]


# -- the whole screen ------------------------------------------------------------------------------------------------


async def choose(rows: Sequence[Row], peek: Peek, *, tones: bool) -> SessionId | None:
    """Let a person choose one of `rows` on the terminal of prompt_toolkit's session; None when they leave.

    `peek` is called for selected rows alone, once for each, one at a time, and no key waits for it. Without `tones`
    nothing is dim or reversed.
    """
    browser = _Browser(rows, peek, tones=tones)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(browser.keep_reading())
        try:
            return await browser.application.run_async()
        except EOFError:  # the terminal is gone
            return None
        finally:
            reading.cancel()


class _Browser:
    """The picker on a screen: keys in, lines out, and the previews that come late."""

    def __init__(self, rows: Sequence[Row], peek: Peek, *, tones: bool) -> None:
        self._picker = opened(rows)
        self._peek = peek
        self._tones = tones
        self._words: dict[SessionId, Sequence[str]] = {}
        self._changed = asyncio.Event()
        self._changed.set()
        self.application: Application[SessionId | None] = Application(
            layout=Layout(Window(_Canvas(self._drawn))),
            key_bindings=self._keys(),
            full_screen=True,
            enable_page_navigation_bindings=False,
        )
        self.application.ttimeoutlen = ESCAPE_SECONDS

    async def keep_reading(self) -> None:
        """Read the preview of what is selected, until cancelled. Rows that were only passed by are left out."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            row = self._picker.selected
            if row is not None and row.id not in self._words:
                self._words[row.id] = await asyncio.to_thread(self._peek, row)
                self.application.invalidate()

    def _drawn(self, width: int, height: int) -> UIContent:
        self._picker = self._picker.scrolled(plan(height).table)
        row = self._picker.selected
        words = None if row is None else self._words.get(row.id)
        shown = show(self._picker, width=width, height=height, now=time.time(), words=words)
        lines: list[StyleAndTextTuples] = [
            [(tone.value if self._tones else "", text) for tone, text in line] for line in shown.lines
        ]
        return UIContent(lines.__getitem__, line_count=len(lines), cursor_position=Point(shown.cursor, 0))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for name, step in STEPS.items():
            keys.add(name)(partial(self._take, step))
        for name in ("c-c", "<sigint>"):
            keys.add(name)(_leave)
        keys.add("escape", eager=True)(_leave)
        keys.add("q", filter=Condition(lambda: not self._picker.typed))(_leave)
        for name in ("enter", "c-j"):
            keys.add(name)(self._choose)
        keys.add("<any>")(self._type)
        keys.add("<bracketed-paste>")(self._paste)
        return keys

    def _take(self, step: Step, event: KeyPressEvent) -> None:
        page = max(plan(event.app.output.get_size().rows).table - 1, 1)
        self._picker = step(self._picker, page)
        self._changed.set()

    def _type(self, event: KeyPressEvent) -> None:
        if not isinstance(event.key_sequence[-1].key, Keys):  # a key without a character, such as F1
            self._paste(event)

    def _paste(self, event: KeyPressEvent) -> None:
        self._take(lambda picker, _: picker.with_more(event.data), event)

    def _choose(self, event: KeyPressEvent) -> None:
        if self._picker.selected is not None:
            event.app.exit(result=self._picker.selected.id)


class _Canvas(UIControl):
    """A window's content that is drawn anew for the size that the window has now."""

    def __init__(self, draw: Callable[[int, int], UIContent]) -> None:
        self._draw = draw

    def create_content(self, width: int, height: int) -> UIContent:
        """The lines for this size."""
        return self._draw(width, height)

    def is_focusable(self) -> bool:
        """It is, and so the cursor stands in it."""
        return True


def _leave(event: KeyPressEvent) -> None:
    event.app.exit(result=None)


# -- without a screen ------------------------------------------------------------------------------------------------


def _by_number(rows: Sequence[Row]) -> SessionId | None:
    """Print `rows` with numbers and read one; None for a blank line, at the end of input, or at Ctrl-C."""
    now, widths = time.time(), Columns(NAME, WHEN, SOURCE, WHOLE)
    for number, row in enumerate(rows, start=1):
        print(f"{number:>{len(str(len(rows)))}}  {''.join(cells(row, widths, now)).rstrip()}")
    try:
        return _asked(rows)
    except KeyboardInterrupt:
        print()
        return None


def _asked(rows: Sequence[Row]) -> SessionId | None:
    while True:
        print("Number of the session to go on with (blank leaves): ", end="", flush=True)
        line = _line(sys.stdin.fileno())
        number = line.strip()
        if not (line.endswith("\n") and sys.stdin.isatty()):
            print()  # nobody pressed Enter here
        if number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER and 1 <= int(number) <= len(rows):
            return rows[int(number) - 1].id
        if not number:
            return None
        print(f"{cut(label_of(number), NAME)!r} is no number from 1 to {len(rows)}.")


def _line(descriptor: int) -> str:
    """The next line, and not a byte more: what follows in a pipe is for the chat. At the end of input it has no end."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    return line.decode("utf-8", "replace")
