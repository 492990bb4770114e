"""What a person at a terminal, or a script, sees: answers on stdout, everything else on stderr."""

import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from hermes.cli.columns import cut, printable

DIM, RESET = "\x1b[2m", "\x1b[0m"


class Screen:
    """One answer at a time, as it comes or whole, and words about it.

    On a terminal answers appear while they are written. Into a pipe they go whole, so that a script gets the answer
    and nothing but the answer.
    """

    def __init__(self, environ: Mapping[str, str], *, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> None:
        self._out = out
        self._err = err
        self._live = out.isatty()
        self._dim, self._reset = (DIM, RESET) if err.isatty() and not environ.get("NO_COLOR") else ("", "")
        self._shown = ""

    def words(self, text: str) -> None:
        """The next words of the answer that is being written."""
        if self._live:
            self._shown += text
            self._say(text)

    def tool(self, name: str) -> None:
        """The answer goes on with a tool; what was said before it was on the way."""
        self._break_line()
        self._shown = ""
        self.note(f"[{name}]")

    def answer(self, markdown: str, *, well: bool) -> None:
        """The whole answer: what has not been shown of it is. An answer that failed is no answer for a script."""
        shown = self._shown.strip()
        if not markdown.startswith(shown):
            shown = ""
            self._break_line()
        rest = markdown[len(shown) :]
        if well:
            self._say(f"{rest}\n")
        else:
            self._break_line()
            self.note(rest.strip())
        self._shown = ""

    def note(self, text: str) -> None:
        """Something that is no answer."""
        self._err.write(f"{self._dim}{printable(text)}{self._reset}\n")
        self._err.flush()

    def heading(self, text: str) -> None:
        """A note on one line, cut where the terminal ends."""
        self.note(cut(text, shutil.get_terminal_size().columns) if self._err.isatty() else text)

    def _say(self, text: str) -> None:
        self._out.write(printable(text) if self._live else text)
        self._out.flush()

    def _break_line(self) -> None:
        if self._shown and not self._shown.endswith("\n"):
            self._say("\n")
