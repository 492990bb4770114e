"""A line on stderr that says how far long work is; nothing for short work, and nothing into a pipe."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TextIO, TypeVar

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
EVERY = 0.1
"""Seconds between two pictures."""
WIDTH = 24
"""Columns of the bar."""


class Progress:
    """Shows `done` of `total` with a bar. Use it as a context: the line is wiped at the end."""

    def __init__(
        self, doing: str, total: int, *, err: TextIO = sys.stderr, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._doing = doing
        self._total = total
        self._done = 0
        self._err = err
        self._monotonic = monotonic
        self._next = monotonic() + PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._err.write("\r\x1b[K")
            self._err.flush()

    def advance(self, by: int = 1) -> None:
        """So much more is done."""
        self._done += by
        if not self._err.isatty() or self._monotonic() < self._next:
            return
        self._next = self._monotonic() + EVERY
        self._shown = True
        full = WIDTH * self._done // max(self._total, 1)
        bar = "█" * full + "░" * (WIDTH - full)
        self._err.write(f"\r\x1b[K{self._doing} {bar} {self._done}/{self._total}")
        self._err.flush()


def watched(doing: str, things: Sequence[T]) -> Iterator[T]:
    """The things one by one, with a line about how many have been given."""
    with Progress(doing, len(things)) as progress:
        for thing in things:
            yield thing
            progress.advance()
