"""What every kind of fault has in common: how it is told, found and mended."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hermes.errors import StoreUnavailable
from hermes.sessions.dbapi import Connection

PAUSE_SECONDS = 0.05
"""Between two transactions: whoever waits for the lock asks again within that, most of the time."""

Watch = Callable[[int, int], None]
"""Told that so many more, of so many in all, are indexed again."""


class Fault(StrEnum):
    """What can be wrong."""

    DAMAGED = "damaged"
    """Pages of the file itself."""
    INDEXES = "indexes"
    """Of this and of DAMAGED the remedy may be a new file: nobody else may have the store open."""
    PARTS = "parts"
    STRAYS = "strays"
    EMPTY = "empty"
    TIP = "tip"
    COMPACTED = "compacted"
    COUNTERS = "counters"
    SEARCH = "search"
    ASIDE = "aside"
    DOOMED = "doomed"
    UNINDEXED = "unindexed"
    TODO = "todo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that is wrong, and what mends it, in a sentence each."""

    kind: Fault
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Check:
    """`find` gives a sentence when something is wrong; `mend` does its work and tells it."""

    kind: Fault
    find: Callable[[Connection], str | None]
    remedy: str
    mend: Callable[[Connection, Watch], Iterator[str]]


def beyond(path: Path, why: str) -> StoreUnavailable:
    """What to raise where a store cannot be mended."""
    return StoreUnavailable(f"{path} cannot be mended: {why.rstrip('.')}. Restore a backup: hermes backup list")


@contextmanager
def moment(connection: Connection) -> Iterator[None]:
    """One snapshot, so that nothing looks wrong only because somebody writes meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # some errors end it themselves
            connection.execute("ROLLBACK")


def number(connection: Connection, question: str, facts: Sequence[object] = ()) -> int:
    return int(connection.execute(question, facts).fetchone()[0])


def rest() -> None:
    time.sleep(PAUSE_SECONDS)
