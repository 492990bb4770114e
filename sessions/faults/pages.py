"""Damage to the file itself: pages, rows that cannot be read, and indexes that do not agree with their rows."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

from hermes.sessions import dbapi
from hermes.sessions.backup import checked, concerns_search
from hermes.sessions.database import CONTENTION, cause
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.parts import missing, tables
from hermes.sessions.faults.trouble import Fault, Trouble
from hermes.sessions.optimise import patient

SHOWN = 80
"""Characters of an error that may quote what somebody wrote."""
CORRUPT = "SQLITE_CORRUPT"

_OF_AN_INDEX = re.compile(r"(?:missing from|entries in|values differ from) index (\w+)")
"""What SQLite says when the rows are whole and only an index over them is not."""


def troubles(connection: Connection) -> Iterator[Trouble]:
    bad = _bad_lines(connection)
    if not bad:
        return
    if all(_OF_AN_INDEX.search(line) for line in bad):
        yield Trouble(
            kind=Fault.INDEXES,
            what=f"Indexes do not agree with the rows: {bad[0]}.",
            remedy="`hermes sessions repair` makes them anew.",
        )
    else:
        yield Trouble(
            kind=Fault.DAMAGED,
            what=f"The file is damaged: {bad[0]}.",
            remedy="Stop Hermes; then `hermes sessions repair` saves every row that can be read, and "
            "`hermes backup restore` brings back a whole backup.",
        )


def _bad_lines(connection: Connection) -> list[str]:
    """What SQLite's check says about pages and rows, and whether each row can be read.

    The inside of the search index is looked at elsewhere.
    """
    try:
        bad = [line for line in checked(connection) if not concerns_search(line)]
        there = [table for table in tables() if table not in missing(connection)]
        return bad or [why for table in there if (why := _unreadable(connection, table)) is not None]
    except dbapi.DatabaseError as error:
        if cause(error) != CORRUPT:
            raise
        return [str(error)]


def _unreadable(connection: Connection, table: str) -> str | None:
    """SQLite's check passes over letters that are none; whoever reads such a row would fail."""
    try:
        deque(connection.execute(f"SELECT * FROM {table}"), maxlen=0)
    except dbapi.OperationalError as error:
        return f"a row of {table} cannot be read: {str(error)[:SHOWN]}"
    return None


def reindexed(path: Path) -> bool:
    """Make the indexes anew that do not agree with their rows; False when that does not help."""
    with closing(patient(path)) as connection:
        names = set(chain.from_iterable(map(_OF_AN_INDEX.findall, _bad_lines(connection))))
        try:
            for name in sorted(names):
                connection.execute(f'REINDEX "{name}"')
        except dbapi.DatabaseError as error:  # rows that no index lets in, or more damage than was seen
            if cause(error) in CONTENTION:
                raise
            return False
        return not _bad_lines(connection)
