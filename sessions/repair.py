"""Looking for what is wrong with the store, and mending it beside a running gateway.

A look only reads, in one snapshot. A remedy is a row of short transactions with a pause behind each, so that others
write in between, and each of them leaves the store usable: whoever is killed in between runs it again.

The search index is looked at without FTS5's own `integrity-check`, which needs the write lock (3 s on 200 000 rows).
SQLite's check looks into it only from 3.44 on. So every word of it is read besides, and the sums that the index keeps
are compared with what it holds: with 3.53 that finds all but single flipped bits in the places of words, with 3.40 also
not the loss of single signposts to its pages.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from hermes.errors import StoreUnavailable
from hermes.sessions import dbapi, removal
from hermes.sessions.backup import (
    SHADOWS,
    UNINDEXED,
    checked,
    concerns_search,
    copy,
    drafted,
    drop_index,
    exchange,
    free_name,
    has_index,
    rebuild_search,
    searchable,
    stamp,
    unindexed,
)
from hermes.sessions.database import CONTENTION, cause, migrate, open_readable, open_writable, prepare_search
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import TABLES, Indexer
from hermes.sessions.model import SessionId
from hermes.sessions.optimise import DAMAGE, patient, refusal, writing
from hermes.sessions.rows import marks
from hermes.sessions.turns import PREVIEW
from hermes.text import one_line

CHUNK = 50
"""Rows that are put right in one transaction: a long session is counted in 5 ms."""
STRIDE = 20_000
"""Ids that are looked through in one transaction for rows that the search index lacks."""
BLOCKS = 500
"""Pages of a replaced search index that are freed, and overwritten, in one transaction."""
PAUSE_SECONDS = 0.05
"""Between two transactions: whoever waits for the lock asks again within that, most of the time."""
SHOWN = 80
"""Characters of an error that may quote what somebody wrote."""
MOST = 10_000_000
"""No row has a higher number; a damaged page may say otherwise."""

CORRUPT = "SQLITE_CORRUPT"

SOURCE = "repair"
"""Where sessions that had to be made up for their messages come from."""

ASIDE = "replaced_"
"""How the name of the table begins that holds what a damaged search index was made of."""

_OF_AN_INDEX = re.compile(r"(?:missing from|entries in|values differ from) index (\w+)")
"""What SQLite says when the rows are whole and only an index over them is not."""

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
class _Check:
    """`find` gives a sentence when something is wrong; `mend` does its work and tells it."""

    kind: Fault
    find: Callable[[Connection], str | None]
    remedy: str
    mend: Callable[[Connection, Watch], Iterator[str]]


def examine(connection: Connection) -> tuple[Trouble, ...]:
    """Everything that is wrong, by a read connection. When pages are damaged, that alone: the rest means nothing then.

    Takes 4 to 8 s on a store of 200 000 rows (253 MB), and blocks nobody.
    """
    with _moment(connection):
        return tuple(_file(connection)) or _by(connection, CHECKS)


def inspect(path: Path) -> tuple[Trouble, ...]:
    """What `examine` finds in the store at `path`. Raises StoreUnavailable where nothing can be read, SchemaTooNew."""
    try:
        with closing(_opened(path)) as connection:
            return examine(connection)
    except dbapi.Error as error:
        raise refusal(path, error) from error


def findings(path: Path) -> tuple[Trouble, ...]:
    """What shows at once, for `hermes doctor`: neither pages nor counters nor every word of the search index are read.

    Raises StoreUnavailable, SchemaTooNew.
    """
    quick = [check for check in CHECKS if check.kind not in {Fault.STRAYS, Fault.COUNTERS, Fault.SEARCH}]
    try:
        with closing(open_readable(path)) as connection, _moment(connection):
            return (*_by(connection, quick), *_unsearchable(connection))
    except dbapi.Error as error:
        raise refusal(path, error) from error


def _unwatched(_more: int, _total: int) -> None:
    """Nobody wants to know."""


def mend(path: Path, *, now: float, backup: bool = True, watch: Watch = _unwatched) -> tuple[str, ...]:
    """Put right whatever `examine` finds; gives a sentence for each thing that was done, none for a sound store.

    Before it changes anything it keeps a copy, `backups/before-repair-YYYYMMDD-HHMMSS.db` (unless `backup` is False).
    A gateway may run, unless `examine` found DAMAGED or INDEXES: a store with damaged pages is read as far as it can be
    into a new file, and itself kept in `backups/damaged-YYYYMMDD-HHMMSS/`. Raises StoreUnavailable when something
    cannot be mended, StoreLocked, SchemaTooNew.
    """
    folder, moment = path.parent / "backups", stamp(now)
    try:
        with closing(_opened(path)) as connection:
            kinds = {trouble.kind for trouble in examine(connection)}
            done = []
            if kinds - {Fault.DAMAGED} and backup:
                kept = free_name(folder, f"before-repair-{moment}", ".db")
                copy(connection, kept)
                done.append(f"A copy from before is kept: {kept}")
        if Fault.DAMAGED in kinds or (Fault.INDEXES in kinds and not _reindexed(path)):
            done += _recover(path, free_name(folder, f"damaged-{moment}"))
        elif Fault.INDEXES in kinds:
            done.append("The indexes over the rows were made anew.")
        if kinds:
            done += _mend_each(path, watch)
    except dbapi.Error as error:
        raise (_beyond(path, error) if cause(error) == CORRUPT else refusal(path, error)) from error
    return tuple(done)


def _opened(path: Path) -> Connection:
    try:
        return open_readable(path)
    except StoreUnavailable as error:
        if isinstance(error.__cause__, dbapi.Error) and cause(error.__cause__) == CORRUPT:
            raise _beyond(path, error.__cause__) from error
        raise


def _beyond(path: Path, error: dbapi.Error) -> StoreUnavailable:
    return StoreUnavailable(f"{path} cannot be mended: {error}. Restore a backup: hermes backup list")


def _mend_each(path: Path, watch: Watch) -> Iterator[str]:
    with closing(patient(path)) as connection:
        for check in CHECKS:
            if _found(connection, check) is not None:
                yield from check.mend(connection, watch)
        lasting = [check for check in CHECKS if check.kind not in {Fault.DOOMED, Fault.TODO}]  # others make such, too
        left = [what for check in lasting if (what := _found(connection, check)) is not None]
    if left:
        raise StoreUnavailable(f"{path} cannot be mended: {left[0]} Restore a backup: hermes backup list")


def _found(connection: Connection, check: _Check) -> str | None:
    with _moment(connection):
        return check.find(connection)


def _by(connection: Connection, checks: Sequence[_Check]) -> tuple[Trouble, ...]:
    found: list[Trouble] = []
    for check in checks:
        if (what := check.find(connection)) is not None:
            found.append(Trouble(kind=check.kind, what=what, remedy=check.remedy))
            if check.kind is Fault.PARTS:  # the checks that follow need them
                break
    return tuple(found)


@contextmanager
def _moment(connection: Connection) -> Iterator[None]:
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


def _number(connection: Connection, question: str, facts: Sequence[object] = ()) -> int:
    return int(connection.execute(question, facts).fetchone()[0])


def _rest() -> None:
    time.sleep(PAUSE_SECONDS)


# -- the file and its indexes ---------------------------------------------------------------------------------------


def _file(connection: Connection) -> Iterator[Trouble]:
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
        there = [table for table in _tables() if table not in _missing(connection)]
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


def _reindexed(path: Path) -> bool:
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


@cache
def _parts() -> dict[str, str]:
    """What a new store is made of, by name; FTS5's own tables come with the index."""
    own = {f"{table}_{suffix}" for table in TABLES.values() for suffix in SHADOWS}
    with closing(dbapi.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        prepare_search(connection)
        made = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    return {name: sql for name, sql in made if name not in own and not name.startswith("sqlite_")}


def _tables() -> list[str]:
    """Those that hold what nothing else does."""
    return [name for name, sql in _parts().items() if sql.startswith("CREATE TABLE")]


def _missing(connection: Connection) -> list[str]:
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    return [name for name in _parts() if name not in there]


def _find_parts(connection: Connection) -> str | None:
    missing = _missing(connection)
    return f"Parts of the store are missing: {', '.join(missing)}." if missing else None


def _mend_parts(connection: Connection, _watch: Watch) -> Iterator[str]:
    missing = _missing(connection)
    for name in missing:
        with writing(connection):
            _make(connection, name)
        _rest()
    yield f"Missing parts were made again: {', '.join(missing)}."


def _make(connection: Connection, name: str) -> None:
    if name in TABLES.values():
        drop_index(connection, name)
    connection.execute(_parts()[name])


# -- conversations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows that a question finds by id, and that a statement puts right; it looks again at those `{these}`."""

    what: str
    wrong: str
    fix: str
    done: str

    def find(self, connection: Connection) -> str | None:
        ids = self._ids(connection)
        return f"{self.what}: {len(ids)} (such as {ids[0]})." if ids else None

    def mend(self, connection: Connection, _watch: Watch) -> Iterator[str]:
        ids = self._ids(connection)
        for start in range(0, len(ids), CHUNK):
            these = ids[start : start + CHUNK]
            with writing(connection):
                connection.execute(self.fix.replace("{these}", marks(these)), these)
            _rest()
        yield f"{self.done}: {len(ids)}."

    def _ids(self, connection: Connection) -> list[str]:
        return [row[0] for row in connection.execute(self.wrong)]


_KEPT = "NOT IN (SELECT conversation FROM doomed)"
_CHILD = (
    "SELECT 1 FROM sessions k WHERE k.parent = {0}.id AND k.link = 'compression' AND k.conversation = {0}.conversation"
)

EMPTY = _Rows(
    what="Conversations without any session",
    wrong=f"SELECT c.id FROM conversations c WHERE c.id {_KEPT}"
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = c.id)",
    fix="DELETE FROM conversations WHERE id IN ({these})"
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = conversations.id)",
    done="Conversations without any session were removed, and the routes that led to them",
)
TIP = _Rows(
    what="Conversations that do not lead to their newest session",
    wrong="SELECT c.id FROM conversations c LEFT JOIN sessions t ON t.id = c.tip"
    f" WHERE c.id {_KEPT} AND EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = c.id)"
    f" AND (t.conversation IS NOT c.id OR t.end_reason IS 'compression' AND EXISTS ({_CHILD.format('t')}))",
    fix="UPDATE conversations SET tip = (SELECT s.id FROM sessions s WHERE s.conversation = conversations.id"
    f" ORDER BY EXISTS ({_CHILD.format('s')}), s.started_at DESC, s.rowid DESC LIMIT 1)"
    " WHERE id IN ({these}) AND EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = conversations.id)",
    done="Conversations lead to their newest session again",
)
_CLOSED = "ended_at IS NOT NULL AND {0}.end_reason = 'compression' AND NOT EXISTS (" + _CHILD + ")"
COMPACTED = _Rows(
    what="Sessions that a compression has closed without one that goes on",
    wrong="SELECT t.id FROM conversations c JOIN sessions t ON t.id = c.tip AND t.conversation = c.id"
    f" WHERE c.id {_KEPT} AND t.{_CLOSED.format('t')}",
    fix=f"UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id IN ({{these}})"
    f" AND {_CLOSED.format('sessions')}",
    done="Sessions that a compression had closed are open again",
)
_COUNTED = "SELECT count(*) FROM messages m WHERE m.session_id = {}.id AND m.kind IN ('talk', 'tool')"
COUNTERS = _Rows(
    what="Sessions that count their messages wrongly",
    wrong=f"SELECT s.id FROM sessions s WHERE s.conversation {_KEPT} AND s.message_count <> ({_COUNTED.format('s')})",
    fix=f"UPDATE sessions SET message_count = ({_COUNTED.format('sessions')}) WHERE id IN ({{these}})",
    done="Messages of sessions were counted again",
)

_LEAVES = (
    ("views", "session_id", "sessions"),
    ("views", "message_id", "messages"),
    ("routes", "conversation", "conversations"),
    ("handoffs", "conversation", "conversations"),
    ("approvals", "conversation", "conversations"),
)
"""Rows that mean nothing without the row that they name."""


def _find_strays(connection: Connection) -> str | None:
    found = Counter(row[0] for row in connection.execute("PRAGMA foreign_key_check"))
    if not found:
        return None
    return f"Rows that belong to rows which are not there: {', '.join(f'{n} {table}' for table, n in found.items())}."


def _mend_strays(connection: Connection, _watch: Watch) -> Iterator[str]:
    """Messages get a session, sessions a conversation, so that no word is lost; what only points somewhere goes."""
    homeless = connection.execute(
        "SELECT DISTINCT session_id FROM messages m"
        " WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.session_id)"
    ).fetchall()
    for (session,) in homeless:
        with writing(connection):
            _adopt(connection, session)
        _rest()
    if homeless:
        yield f"Messages had lost their session; new ones hold them, of the source {SOURCE!r}: {len(homeless)}."
    with writing(connection):  # which of the sessions is the live one is seen to afterwards
        made = connection.execute(
            "INSERT INTO conversations (id, tip) SELECT DISTINCT s.conversation, '' FROM sessions s"
            " WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = s.conversation)"
        ).rowcount
    if made:
        yield f"Conversations of sessions were made again: {made}."
    for table, column, owner in _LEAVES:
        with writing(connection):
            gone = connection.execute(
                f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = {table}.{column})"
            ).rowcount
        if gone:
            yield f"Rows of {table} whose {owner} are not there were removed: {gone}."


def _adopt(connection: Connection, session: SessionId) -> None:
    """Make a session, of a conversation of its own, for messages that have none."""
    first = connection.execute(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'user' AND kind = 'talk' ORDER BY id LIMIT 1",
        (session,),
    ).fetchone()
    connection.execute("INSERT OR IGNORE INTO conversations (id, tip) VALUES (?1, ?1)", (session,))
    connection.execute(
        "INSERT INTO sessions (id, conversation, source, started_at, last_active, message_count, preview)"
        " SELECT ?1, ?1, ?2, min(at), max(at), sum(kind IN ('talk', 'tool')), ?3 FROM messages WHERE session_id = ?1",
        (session, SOURCE, one_line(first[0], PREVIEW) if first else ""),
    )


def _find_doomed(connection: Connection) -> str | None:
    number = _number(connection, "SELECT count(*) FROM doomed")
    return f"Conversations that were deleted are not all gone yet: {number}." if number else None


def _mend_doomed(connection: Connection, _watch: Watch) -> Iterator[str]:
    while _cleared(connection):
        _rest()
    yield "What was left of deleted conversations is gone."


def _cleared(connection: Connection) -> bool:
    with writing(connection):
        return removal.clear(connection)


# -- the search index ---------------------------------------------------------------------------------------------


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
        held = _number(connection, f"SELECT count(*) FROM {table}_docsize")
        said = _words_of(connection, table)
    except (dbapi.DatabaseError, MemoryError) as error:  # it may ask for any amount of memory
        return str(error) or f"{table} asks for more memory than there is"
    if lines:
        return lines[0]
    if (rows, words) != (held, said):
        return f"{table} counts {rows} rows of {words} words and holds {held} of {said}"
    ghosts = _number(connection, f"SELECT count(*) FROM {table}_docsize d WHERE {_gone(table)}")
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
    before = _number(connection, "PRAGMA query_only")
    connection.execute("PRAGMA query_only = OFF")  # the list of words is a temporary table; the store is not written
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_words USING fts5vocab('main', '{table}', 'row')")
        return _number(connection, f"SELECT coalesce(sum(cnt), 0) FROM temp.{table}_words")
    finally:
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}_words")
        connection.execute(f"PRAGMA query_only = {before}")


def _unsearchable(connection: Connection) -> tuple[Trouble, ...]:
    """The quick look: the sums of rows, and one word."""
    try:
        well = not has_index(connection) or (
            all(
                _sums(connection, table)[0] == _number(connection, f"SELECT count(*) FROM {table}_docsize")
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
        with _moment(connection):
            sound = _index_fault(connection, table) is None and searchable(connection)
        if not sound:
            _clear_away(connection, table)
            with writing(connection):
                _guard(connection)
                _put_aside(connection, table)
                _make(connection, table)
            _rest()
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
        _rest()


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
    for name, sql in _parts().items():
        if name.startswith("messages_") and name.endswith(("_out", "_changed")):
            kind = next(kind for kind in TABLES if f"_{kind}_" in name)
            held = f"EXISTS (SELECT 1 FROM {TABLES[kind]}_docsize WHERE id = OLD.id)"
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            connection.execute(sql.replace(" BEGIN", f" AND {held} BEGIN", 1))


def _find_unindexed(connection: Connection) -> str | None:
    with suppress(dbapi.DatabaseError):  # an index that cannot even be asked is damaged, which has its own check
        number = unindexed(connection)
        return f"Messages that the search index lacks: {number}." if number else None
    return None


def _mend_unindexed(connection: Connection, _watch: Watch) -> Iterator[str]:
    last, noted = _number(connection, "SELECT coalesce(max(id), 0) FROM messages"), 0
    with writing(connection):
        _guard(connection)
    for start in range(0, last, STRIDE):
        with writing(connection):
            noted += connection.execute(
                f"INSERT INTO index_todo SELECT m.id FROM messages m WHERE m.id > ? AND m.id <= ? AND {UNINDEXED}",
                (start, start + STRIDE),
            ).rowcount
        _rest()
    yield f"Messages that the search index lacked were noted: {noted}."


def _find_todo(connection: Connection) -> str | None:
    number = _todo(connection)
    return f"Messages that wait to be indexed: {number}." if number else None


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
        _rest()
    yield f"Messages were indexed: {total}."


def _todo(connection: Connection) -> int:
    return _number(connection, "SELECT count(*) FROM index_todo")


_REBUILD = "`hermes sessions repair` makes it anew; no word is lost."
_HOME = "`hermes sessions repair` gives messages a session again, and removes what points nowhere."
_FINISH = "`hermes sessions repair` removes the rest now; the gateway does it, too."
_FEED = "`hermes sessions repair` feeds them now; the gateway does it little by little."

CHECKS = (
    _Check(Fault.SEARCH, _find_search, _REBUILD, _mend_search),
    _Check(Fault.ASIDE, _find_asides, "`hermes sessions repair` frees it.", _mend_asides),
    _Check(Fault.PARTS, _find_parts, "`hermes sessions repair` makes them again.", _mend_parts),
    _Check(Fault.STRAYS, _find_strays, _HOME, _mend_strays),
    _Check(Fault.EMPTY, EMPTY.find, "`hermes sessions repair` removes them.", EMPTY.mend),
    _Check(Fault.TIP, TIP.find, "`hermes sessions repair` leads them there.", TIP.mend),
    _Check(Fault.COMPACTED, COMPACTED.find, "`hermes sessions repair` opens them again.", COMPACTED.mend),
    _Check(Fault.COUNTERS, COUNTERS.find, "`hermes sessions repair` counts again.", COUNTERS.mend),
    _Check(Fault.DOOMED, _find_doomed, _FINISH, _mend_doomed),
    _Check(Fault.UNINDEXED, _find_unindexed, _FEED, _mend_unindexed),
    _Check(Fault.TODO, _find_todo, _FEED, _mend_todo),
)
"""In the order in which they are mended: each finds what the ones before have left to it.

The search index comes first: while it cannot be opened, no statement that would fire its triggers can be prepared.
"""


# -- saving what can be read ----------------------------------------------------------------------------------------


def _recover(path: Path, aside: Path) -> list[str]:
    """Read what can be read into a new file, and put that in the place of the damaged one, which is kept."""
    with drafted(path) as draft:
        draft.unlink()
        with closing(open_readable(path)) as source, closing(open_writable(draft)) as target:
            salvage = _Salvage(source, target)
            try:
                salvage.run()
            except dbapi.Error as error:
                raise _beyond(path, error) from error
        exchange(draft, path, aside)
    lost = ", ".join(f"about {number} {table}" for table, number in salvage.lost.items() if number)
    return [
        f"The file was damaged; a new one holds what could be read: {salvage.kept['messages']} messages.",
        f"Rows that could not be read: {lost or 'none'}.",
        f"The damaged file is kept as it was: {aside}",
    ]


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table of the store is read and written, row by row. The first column of a numbered one is its `rowid`."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def insert(self) -> str:
        """Leaves out what no store would hold."""
        return f"INSERT OR IGNORE INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks(self.columns)})"

    @property
    def by_number(self) -> str:
        """One row of a numbered table."""
        return f"{self._select} NOT INDEXED WHERE rowid = ?"

    def in_order(self, direction: str) -> str:
        """All rows along their key, `ASC` or `DESC`."""
        return f"{self._select} ORDER BY {', '.join(f'{name} {direction}' for name in self.key)}"

    @property
    def _select(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"


@dataclass(slots=True)
class _Salvage:
    """Rows of a damaged store on their way into a new one."""

    source: Connection
    target: Connection
    kept: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Every table, as far as it can be read. Raises dbapi.Error when not even the list of tables can be."""
        self.source.text_factory = lambda raw: raw.decode("utf-8", "replace")  # a broken letter costs that letter
        self.source.execute("SELECT 1 FROM messages WHERE FALSE").fetchall()
        self.target.execute("PRAGMA foreign_keys = OFF")
        with writing(self.target):
            for name in _tables():
                table = self._table(name)
                whole = self._read_in_order(table)
                if table.columns[0] == "rowid":
                    self._read_by_number(table)
                elif not whole:
                    self.lost[name] = 1
            self._go_on_counting()
        rebuild_search(self.target)

    def _table(self, name: str) -> _Table:
        facts = self.target.execute(f"SELECT name, type, pk FROM pragma_table_info('{name}')").fetchall()
        key = tuple(column for column, _, place in facts if place)
        if "WITHOUT ROWID" in _parts()[name]:
            return _Table(name, tuple(column for column, _, _ in facts), key)
        plain = tuple(column for column, kind, place in facts if not (place and kind == "INTEGER"))
        return _Table(name, ("rowid", *plain), ("rowid",))

    def _read_by_number(self, table: _Table) -> None:
        """Each number for itself, where reading in order has not met it: a damaged page hides those behind it."""
        known, here = self._known(table.name), self._here(table)
        last = max(*known, 0, self._asked(f"SELECT max(rowid) FROM {table.name}"), self._counted(table.name))
        for number in range(1, min(last, MOST) + 1):
            if number not in here:
                try:
                    for row in self.source.execute(table.by_number, (number,)):
                        self._keep(table, row)
                except dbapi.Error:
                    self.lost[table.name] += 1
        self.lost[table.name] = max(self.lost[table.name], len(known - self._here(table)))

    def _here(self, table: _Table) -> set[int]:
        return {row[0] for row in self.target.execute(f"SELECT rowid FROM {table.name}")}

    def _known(self, table: str) -> set[int]:
        """The numbers of rows that the indexes over a table know, as far as those can be read."""
        names = self.target.execute(f"SELECT name FROM pragma_index_list('{table}') WHERE NOT partial").fetchall()
        known: set[int] = set()
        for (name,) in names:
            with suppress(dbapi.Error):
                for row in self.source.execute(f"SELECT rowid FROM {table} INDEXED BY {name}"):
                    known.add(row[0])
        return known

    def _counted(self, table: str) -> int:
        """The highest number that SQLite remembers to have given, for tables whose numbers are never used again."""
        return self._asked(f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{table}'")

    def _asked(self, question: str) -> int:
        try:
            return self.source.execute(question).fetchone()[0] or 0
        except dbapi.Error:
            return 0

    def _read_in_order(self, table: _Table) -> bool:
        """Up to where reading stops, and then from the other end; True when it did not stop."""
        for direction in ("ASC", "DESC"):
            with suppress(dbapi.Error):
                for row in self.source.execute(table.in_order(direction)):
                    self._keep(table, row)
                if direction == "ASC":
                    return True
        return False

    def _keep(self, table: _Table, row: Sequence[Any]) -> None:
        """Write one row, if a store would hold it. A session only loses a title that another has."""
        with suppress(dbapi.IntegrityError):
            added = self.target.execute(table.insert, row).rowcount
            if not added and table.name == "sessions":
                untitled = dict(zip(table.columns, row, strict=True)) | {"title": None}
                added = self.target.execute(table.insert, tuple(untitled.values())).rowcount
            self.kept[table.name] += added

    def _go_on_counting(self) -> None:
        """Numbers of lost rows are not given to others."""
        with suppress(dbapi.Error):
            self.target.executemany(
                "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?",
                self.source.execute("SELECT seq, name FROM sqlite_sequence").fetchall(),
            )
