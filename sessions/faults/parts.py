"""The tables, indexes and triggers that a store is made of, and those of them that are missing."""

from collections.abc import Iterator
from contextlib import closing
from functools import cache

from hermes.sessions import dbapi
from hermes.sessions.backup import SHADOWS, drop_index
from hermes.sessions.database import migrate, prepare_search
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.trouble import Check, Fault, Watch, rest
from hermes.sessions.indexer import TABLES
from hermes.sessions.optimise import writing


@cache
def parts() -> dict[str, str]:
    """What a new store is made of, by name; FTS5's own tables come with the index."""
    own = {f"{table}_{suffix}" for table in TABLES.values() for suffix in SHADOWS}
    with closing(dbapi.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        prepare_search(connection)
        made = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    return {name: sql for name, sql in made if name not in own and not name.startswith("sqlite_")}


def tables() -> list[str]:
    """Those that hold what nothing else does."""
    return [name for name, sql in parts().items() if sql.startswith("CREATE TABLE")]


def missing(connection: Connection) -> list[str]:
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    return [name for name in parts() if name not in there]


def _find_parts(connection: Connection) -> str | None:
    gone = missing(connection)
    return f"Parts of the store are missing: {', '.join(gone)}." if gone else None


def _mend_parts(connection: Connection, _watch: Watch) -> Iterator[str]:
    gone = missing(connection)
    for name in gone:
        with writing(connection):
            make(connection, name)
        rest()
    yield f"Missing parts were made again: {', '.join(gone)}."


def make(connection: Connection, name: str) -> None:
    if name in TABLES.values():
        drop_index(connection, name)
    connection.execute(parts()[name])


PARTS = Check(Fault.PARTS, _find_parts, "`hermes sessions repair` makes them again.", _mend_parts)
