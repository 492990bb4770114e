"""The search index: damaged, behind, or with remains of one that was replaced.

It is looked at without FTS5's own `integrity-check`, which needs the write lock (3 s on 200 000 rows). SQLite's check
looks into it only from 3.44 on. So every word of it is read besides, and the sums that the index keeps are compared
with what it holds: with 3.53 that finds all but single flipped bits in the places of words, with 3.40 also not the loss
of single signposts to its pages.
"""

from collections.abc import Iterator
from contextlib import suppress

from hermes.sessions import dbapi
from hermes.sessions.backup import SHADOWS, UNINDEXED, has_index, searchable, unindexed
from hermes.sessions.database import cause
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.parts import make, parts
from hermes.sessions.faults.trouble import Check, Fault, Trouble, Watch, moment, number, rest
from hermes.sessions.indexer import TABLES, Indexer
from hermes.sessions.optimise import DAMAGE, writing

STRIDE = 20_000
"""Ids that are looked through in one transaction for rows that the search index lacks."""
BLOCKS = 500
"""Pages of a replaced search index that are freed, and overwritten, in one transaction."""
ASIDE = "replaced_"
"""How the name of the table begins that holds what a damaged search index was made of."""

_REBUILD = "`hermes sessions repair` makes it anew; no word is lost."
_FEED = "`hermes sessions repair` feeds them now; the gateway does it little by little."


def _find_search(connection: Connection) -> str | None:
    if not has_index(connection):
        return None
    found = [why for table in TABLES.values() if (why := _index_fault(connection, table)) is not None]
    if not found and not searchable(connection):
        found = ["it does not find what the messages say"]
    return f"The search index is damaged: {found[0]}." if found else None


def _index_fault(connection: Connection, table: str) -> str | None:
    """What is wrong with one index: it cannot be read, its sums do not add up, or it knows rows that are not there."""
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    if gone := {f"{table}_{suffix}" for suffix in SHADOWS} - there:
        return f"{min(gone)} is missing"
    try:
        lines = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({table})") if row[0] != "ok"]
        rows, words = _sums(connection, table)
        held = number(connection, f"SELECT count(*) FROM {table}_docsize")
        said = _words_of(connection, table)
    except (dbapi.DatabaseError, MemoryError) as error:  # it may ask for any amount of memory
        return str(error) or f"{table} asks for more memory than there is"
    if lines:
        return lines[0]
    if (rows, words) != (held, said):
        return f"{table} counts {rows} rows of {words} words and holds {held} of {said}"
    ghosts = number(connection, f"SELECT count(*) FROM {table}_docsize d WHERE {_gone(table)}")
    return f"{table} knows {ghosts} rows that are gone" if ghosts else None


def _gone(table: str) -> str:
    kind = next(kind for kind, name in TABLES.items() if name == table)
    return f"NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = d.id AND m.kind = '{kind}')"


def _sums(connection: Connection, table: str) -> tuple[int, int]:
    """The rows and the words that the index counts: the first two numbers of its record of averages."""
    found = connection.execute(f"SELECT block FROM {table}_data WHERE id = 1").fetchone()
    numbers = list(_varints(found[0] if found else b""))
    rows, words, *_ = *numbers, 0, 0
    return rows, words


def _varints(block: bytes) -> Iterator[int]:
    """SQLite's numbers of changing length: seven bits a byte, high ones first, the last byte below 128."""
    number = 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


def _words_of(connection: Connection, table: str) -> int:
    """How many words the index holds, by reading all of it. Raises dbapi.DatabaseError where that is not possible."""
    before = number(connection, "PRAGMA query_only")
    connection.execute("PRAGMA query_only = OFF")  # the list of words is a temporary table; the store is not written
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_words USING fts5vocab('main', '{table}', 'row')")
        return number(connection, f"SELECT coalesce(sum(cnt), 0) FROM temp.{table}_words")
    finally:
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}_words")
        connection.execute(f"PRAGMA query_only = {before}")


def unsearchable(connection: Connection) -> tuple[Trouble, ...]:
    """The quick look: the sums of rows, and one word."""
    try:
        well = not has_index(connection) or (
            all(
                _sums(connection, table)[0] == number(connection, f"SELECT count(*) FROM {table}_docsize")
                for table in TABLES.values()
            )
            and searchable(connection)
        )
    except dbapi.DatabaseError as error:
        if cause(error) not in DAMAGE:
            raise
        well = False
    return () if well else (Trouble(kind=Fault.SEARCH, what="The search index is damaged.", remedy=_REBUILD),)


def _mend_search(connection: Connection, _watch: Watch) -> Iterator[str]:
    """Empty indexes in the place of damaged ones; their rows come by the steps that follow."""
    for table in TABLES.values():
        with moment(connection):
            sound = _index_fault(connection, table) is None and searchable(connection)
        if not sound:
            _clear_away(connection, table)
            with writing(connection):
                _guard(connection)
                _put_aside(connection, table)
                make(connection, table)
            rest()
            _clear_away(connection, table)
            yield f"The damaged search index {table} was replaced by an empty one."


def _put_aside(connection: Connection, table: str) -> None:
    """Let the pages of an index be an ordinary table: to free them all at once would hold the lock for too long."""
    data, aside = f"{table}_data", f"{ASIDE}{table}"
    connection.execute("PRAGMA writable_schema = ON")  # the index may refuse to be opened, and so any other way
    connection.execute(
        "UPDATE sqlite_schema SET name = ?1, tbl_name = ?1, sql = replace(sql, ?2, ?1) WHERE type = 'table'"
        " AND name = ?2",
        (aside, data),
    )


def _asides(connection: Connection) -> list[str]:
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    return [table for table in TABLES.values() if f"{ASIDE}{table}" in there]


def _clear_away(connection: Connection, table: str) -> None:
    """Free the pages of an index that was put aside, if one was, in steps."""
    aside = f"{ASIDE}{table}"
    while table in _asides(connection):
        with writing(connection):
            connection.execute(f"DELETE FROM {aside} WHERE id IN (SELECT id FROM {aside} LIMIT ?)", (BLOCKS,))
            if connection.execute(f"SELECT 1 FROM {aside} LIMIT 1").fetchone() is None:
                connection.execute(f"DROP TABLE {aside}")
        rest()


def _find_asides(connection: Connection) -> str | None:
    found = _asides(connection)
    return f"Search indexes that were replaced still take space: {', '.join(found)}." if found else None


def _mend_asides(connection: Connection, _watch: Watch) -> Iterator[str]:
    for table in _asides(connection):
        _clear_away(connection, table)
    yield "The space of search indexes that were replaced is free."


def _guard(connection: Connection) -> None:
    """Let deletes and changes of rows that are not in the index leave it alone.

    FTS5 believes whoever takes a row out: its sums would be wrong, and below zero it refuses the delete itself.
    """
    for name, sql in parts().items():
        if name.startswith("messages_") and name.endswith(("_out", "_changed")):
            kind = next(kind for kind in TABLES if f"_{kind}_" in name)
            held = f"EXISTS (SELECT 1 FROM {TABLES[kind]}_docsize WHERE id = OLD.id)"
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            connection.execute(sql.replace(" BEGIN", f" AND {held} BEGIN", 1))


def _find_unindexed(connection: Connection) -> str | None:
    with suppress(dbapi.DatabaseError):  # an index that cannot even be asked is damaged, which has its own check
        many = unindexed(connection)
        return f"Messages that the search index lacks: {many}." if many else None
    return None


def _mend_unindexed(connection: Connection, _watch: Watch) -> Iterator[str]:
    last, noted = number(connection, "SELECT coalesce(max(id), 0) FROM messages"), 0
    with writing(connection):
        _guard(connection)
    for start in range(0, last, STRIDE):
        with writing(connection):
            noted += connection.execute(
                f"INSERT INTO index_todo SELECT m.id FROM messages m WHERE m.id > ? AND m.id <= ? AND {UNINDEXED}",
                (start, start + STRIDE),
            ).rowcount
        rest()
    yield f"Messages that the search index lacked were noted: {noted}."


def _find_todo(connection: Connection) -> str | None:
    many = _todo(connection)
    return f"Messages that wait to be indexed: {many}." if many else None


def _mend_todo(connection: Connection, watch: Watch) -> Iterator[str]:
    total = left = _todo(connection)
    with writing(connection):
        _guard(connection)
    indexer = Indexer()
    while left:
        with writing(connection):
            indexer.mend(connection)
            indexer.flush(connection)
        before, left = left, _todo(connection)
        if left >= before:
            yield f"The search index refuses messages: {left}. They are kept, and tried again later."
            return
        watch(before - left, total)
        rest()
    yield f"Messages were indexed: {total}."


def _todo(connection: Connection) -> int:
    return number(connection, "SELECT count(*) FROM index_todo")


DAMAGED = Check(Fault.SEARCH, _find_search, _REBUILD, _mend_search)
ASIDES = Check(Fault.ASIDE, _find_asides, "`hermes sessions repair` frees it.", _mend_asides)
LACKING = Check(Fault.UNINDEXED, _find_unindexed, _FEED, _mend_unindexed)
WAITING = Check(Fault.TODO, _find_todo, _FEED, _mend_todo)
