"""Copies of the store, in one snapshot and by SQLite's own means, and the way back.

Stepped backups beside a writer never end (10 908 steps in 6 s without finishing); one step took 0.13 s.
A copy grows under a draft's name and gets its own when it is whole, so a killed backup leaves nothing that looks like
one; what it leaves is swept away by the next.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from hermes.errors import SchemaTooNew, StoreError, StoreUnavailable, UserError
from hermes.sessions import dbapi
from hermes.sessions.cjk import is_run
from hermes.sessions.database import connect, has_fts5, migrations, open_readable, prepare_search
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import TABLES
from hermes.sessions.model import Kind

SCHEDULED = re.compile(r"state-(\d{8}-\d{6})(?:-(\d+))?\.db")
"""The names of backups that were made as such; those that a migration or a repair leaves have others."""
_STAMP = re.compile(r"\d{8}-\d{6}")
_STAMPED = "%Y%m%d-%H%M%S"

DRAFT = ".hermes-draft-"
"""How the name of what is not whole yet begins."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite appends to the name of a database for the files beside it."""

SHADOWS = ("data", "idx", "docsize", "config")
"""The tables in which FTS5 keeps an index over content that is elsewhere, behind its name."""
LINES = 100
"""Findings of SQLite's own check that are read."""
SAMPLE = 50
"""Newest messages out of which a word is looked for again."""

_LACKING = " OR ".join(
    f"m.kind = '{kind}' AND NOT EXISTS (SELECT 1 FROM {table}_docsize d WHERE d.id = m.id)"
    for kind, table in TABLES.items()
)
UNINDEXED = f"({_LACKING}) AND NOT EXISTS (SELECT 1 FROM index_todo t WHERE t.message_id = m.id)"
"""The condition over `messages m`; FTS5 keeps a row of `…_docsize` for each row that it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A backup as its folder shows it."""

    path: Path
    made_at: float
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup(Kept):
    """A backup that was opened and found whole."""

    sessions: int
    messages: int


class _Unsearchable(StoreUnavailable):
    """Every word is there, but the search index is damaged: that can be made anew."""


# -- making -------------------------------------------------------------------------------------------------------


def create(database: Path, folder: Path, *, now: float) -> Backup:
    """A verified backup of the store in `folder`, `state-YYYYMMDD-HHMMSS.db` in UTC, while others go on writing.

    Where the store's search index is damaged, the copy's is made anew. Raises StoreUnavailable, SchemaTooNew, leaving
    nothing.
    """
    target = free_name(folder, f"state-{stamp(now)}", ".db")
    with closing(open_readable(database)) as source, _whole_copy(source, target, target) as (draft, backup):
        draft.rename(target)
    return backup


def copy(source: Connection, target: Path) -> None:
    """Copy the whole database behind `source` to a new file, 0600. Raises StoreUnavailable, leaving nothing."""
    if target.exists():
        raise StoreUnavailable(f"{target}: no copy can be written: there is a file of this name.")
    with drafted(target) as draft:
        _fill(source, draft)
        draft.rename(target)


def before_migration(path: Path) -> Callable[[Connection, int], None]:
    """What `open_writable` calls before it changes an existing schema: a copy below `backups/`, once a version."""

    def backup(connection: Connection, version: int) -> None:
        target = path.parent / "backups" / f"{path.stem}-schema-{version}.db"
        if not target.exists():
            copy(connection, target)

    return backup


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """An empty file beside `target`, 0600, for the block to fill and to rename; what is not renamed is removed.

    Raises StoreUnavailable for what the disk or SQLite refuses, in the block too.
    """
    with _told(target), ExitStack() as stack:
        folder = target.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        _sweep(folder, handle)
        draft = folder / f"{DRAFT}{secrets.token_hex(8)}"
        stack.callback(_remove, draft)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield draft


def _sweep(folder: Path, handle: int) -> None:
    """Whoever has a draft holds the folder's lock, shared: where nobody does, all drafts are of the dead."""
    if _alone(handle):
        for leftover in folder.glob(f"{DRAFT}*"):
            leftover.unlink()
    fcntl.flock(handle, fcntl.LOCK_SH)


def _alone(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody is at work, or the file system has no such locks for folders
        return False
    return True


def _remove(draft: Path) -> None:
    for name in (draft.name, *(f"{draft.name}{suffix}" for suffix in COMPANIONS)):
        draft.with_name(name).unlink(missing_ok=True)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{target}: no copy can be written: {error.strerror}.") from error
    except dbapi.Error as error:
        raise StoreUnavailable(f"{target}: the copy failed: {error}. Nothing was changed.") from error


def _fill(source: Connection, draft: Path) -> None:
    needed = _number(source, "PRAGMA page_count") * _number(source, "PRAGMA page_size")
    free = shutil.disk_usage(draft.parent).free
    if free < needed:
        raise StoreUnavailable(
            f"{draft.parent}: a copy of the store needs {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free. "
            "Nothing was changed. Free some space first."
        )
    with closing(dbapi.connect(draft, isolation_level=None)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")  # one file, which can be read where nothing can be written


@contextmanager
def _whole_copy(source: Connection, target: Path, called: Path) -> Iterator[tuple[Path, Backup]]:
    """A draft beside `target` with all that `source` holds, verified; errors speak of `called`."""
    with drafted(target) as draft:
        _fill(source, draft)
        try:
            backup = _examined(draft, called)
        except _Unsearchable:
            _index_anew(draft)
            backup = _examined(draft, called)
        yield draft, backup


def _index_anew(draft: Path) -> None:
    with closing(dbapi.connect(draft, isolation_level=None)) as connection:
        rebuild_search(connection)


def rebuild_search(connection: Connection) -> None:
    """Make the search index anew in one go, for a file that nobody else has open. Raises dbapi.Error."""
    for table in TABLES.values():
        drop_index(connection, table)
    prepare_search(connection)
    for table in TABLES.values():
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
    connection.execute("DELETE FROM index_todo")


def drop_index(connection: Connection, table: str) -> None:
    """Take a search index out of the store, whatever is left of it.

    DROP TABLE opens the index first, which a damaged one may refuse (any with SQLite 3.40). So its entry in the schema
    goes by itself, and the tables behind it after that; dropping them tells other connections.
    """
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (table,))
    connection.execute("PRAGMA writable_schema = RESET")
    for suffix in SHADOWS:
        connection.execute(f"DROP TABLE IF EXISTS {table}_{suffix}")


# -- looking ------------------------------------------------------------------------------------------------------


def verify(path: Path) -> Backup:
    """Open a backup, read-only, and look at all that a store needs: every page, every reference, the search.

    Raises StoreUnavailable that names what is wrong; SchemaTooNew.
    """
    return _examined(path, path)


def _examined(file: Path, called: Path) -> Backup:
    with opened(file, called) as connection:
        _refuse_unknown(connection, called)
        _refuse_damaged(connection, called)
        return Backup(
            path=called,
            made_at=_made_at(called, file),
            bytes=file.stat().st_size,
            sessions=_number(connection, "SELECT count(*) FROM sessions"),
            messages=_number(connection, "SELECT count(*) FROM messages"),
        )


@contextmanager
def opened(file: Path, called: Path) -> Iterator[Connection]:
    """A backup's file to read from. Raises StoreUnavailable, also for what SQLite refuses in the block."""
    if not file.is_file():
        raise StoreUnavailable(f"{called}: there is no such file.")
    try:
        with closing(connect(file, read_only=True)) as connection:
            yield connection
    except dbapi.Error as error:
        raise StoreUnavailable(f"{called} is not a whole backup: {error}.") from error


def _refuse_unknown(connection: Connection, called: Path) -> None:
    found, newest = _number(connection, "PRAGMA user_version"), len(migrations())
    if found > newest:
        raise SchemaTooNew(str(called), found, newest)
    if found == 0:
        raise StoreUnavailable(f"{called} holds no store of Hermes.")


def _refuse_damaged(connection: Connection, called: Path) -> None:
    found = checked(connection)
    in_search = [line for line in found if concerns_search(line)]
    elsewhere = [line for line in found if line not in in_search]
    if elsewhere:
        raise StoreUnavailable(f"{called} is damaged: {elsewhere[0]}.")
    strays = [row[0] for row in connection.execute("PRAGMA foreign_key_check")]
    if strays:
        raise StoreUnavailable(
            f"{called}: {len(strays)} rows belong to rows that are not there (in {', '.join(sorted(set(strays)))}). "
            "Mend the store first: hermes sessions repair"
        )
    if in_search or not searchable(connection) or unindexed(connection):
        why = in_search[0] if in_search else "it does not find what the messages say"
        raise _Unsearchable(f"{called}: the search index is damaged: {why}.")


def checked(connection: Connection) -> list[str]:
    """What SQLite's own check of pages and rows has to say; nothing when all is well. Raises dbapi.Error."""
    try:
        return _lines(connection, f"PRAGMA integrity_check({LINES})")
    except MemoryError:  # a damaged index may ask for any amount of it
        found = [f"{' or '.join(TABLES.values())} asks for more memory than there is"]
    except dbapi.DatabaseError as error:
        if not concerns_search(str(error)):
            raise
        found = [str(error)]
    # an index that cannot be opened ends the check, so the tables are looked at one by one
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall()
    return found + [line for (name,) in names for line in _lines(connection, f"PRAGMA integrity_check({name})")]


def _lines(connection: Connection, question: str) -> list[str]:
    return [str(row[0]) for row in connection.execute(question) if row[0] != "ok"]


def concerns_search(line: str) -> bool:
    """Whether something that SQLite says is about the inside of a search index, which is derived data."""
    return any(table in line for table in TABLES.values())


def searchable(connection: Connection) -> bool:
    """Whether the search index finds a word of a late message again; True where there is no index, or no word."""
    if not has_index(connection):
        return True
    table = TABLES[Kind.TALK]
    question = f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?"
    try:
        rows = connection.execute(
            f"SELECT m.id, coalesce(m.search_text, m.content) FROM messages m JOIN {table}_docsize d ON d.id = m.id"
            " ORDER BY m.id DESC LIMIT ?",
            (SAMPLE,),
        ).fetchall()
        words = [(word, row_id) for row_id, text in rows if (word := _word(text)) is not None]
        return not words or any(connection.execute(question, (f'"{word}"', at)).fetchone() for word, at in words)
    except (dbapi.DatabaseError, MemoryError):  # a damaged index gives no answer, and that is the answer
        return False


def unindexed(connection: Connection) -> int:
    """How many messages the search index lacks without a note that they are to be fed to it. Raises dbapi.Error."""
    if not has_index(connection):
        return 0
    return _number(connection, f"SELECT count(*) FROM messages m WHERE {UNINDEXED}")


def has_index(connection: Connection) -> bool:
    """Whether this store has a search index that this SQLite can read."""
    made = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'")]
    return set(TABLES.values()) <= set(made) and has_fts5(connection)


def _word(text: str) -> str | None:
    """A word that the index surely takes for one, as the index sees the text."""
    plain = (word for word in text.split() if (word.isascii() and word.isalnum()) or all(map(is_run, word)))
    return next(plain, None)


def _number(connection: Connection, question: str) -> int:
    return int(connection.execute(question).fetchone()[0])


# -- keeping ------------------------------------------------------------------------------------------------------


def listed(folder: Path) -> tuple[Kept, ...]:
    """The backups in a folder, of whatever origin, newest first. None of them is opened."""
    found = [
        Kept(path=path, made_at=_made_at(path, path), bytes=path.stat().st_size) for path in folder.glob("[!.]*.db")
    ]
    return tuple(sorted(found, key=lambda kept: (kept.made_at, _turn(kept.path)), reverse=True))


def rotate(folder: Path, keep: int) -> tuple[Path, ...]:
    """Remove all but the newest `keep` scheduled backups; gives what went. Nothing else in the folder is touched."""
    if keep < 0:
        raise ValueError("keep is a number of backups")
    scheduled = [kept.path for kept in listed(folder) if SCHEDULED.fullmatch(kept.path.name)]
    for path in scheduled[keep:]:
        path.unlink(missing_ok=True)
    return tuple(scheduled[keep:])


def stamp(at: float) -> str:
    """A moment as names have it: `YYYYMMDD-HHMMSS`, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):{_STAMPED}}"


def free_name(folder: Path, stem: str, suffix: str = "") -> Path:
    """`stem` with its suffix, or the first of `stem-2`, `stem-3` … that nothing in the folder has."""
    names = chain([f"{stem}{suffix}"], (f"{stem}-{number}{suffix}" for number in count(2)))
    return next(path for path in map(folder.joinpath, names) if not path.exists())


def _turn(path: Path) -> int:
    """Which one of its second."""
    found = SCHEDULED.fullmatch(path.name)
    return int(found[2] or 1) if found else 0


def _made_at(path: Path, file: Path) -> float:
    """The moment that the name says, or else the one that the disk says of the file."""
    found = _STAMP.search(path.name)
    if found is not None:
        with suppress(ValueError):  # digits, but no date
            return datetime.strptime(found[0], _STAMPED).replace(tzinfo=UTC).timestamp()
    return file.stat().st_mtime


# -- the way back -------------------------------------------------------------------------------------------------


def restore(backup: Path, database: Path, folder: Path, *, now: float) -> Path | None:
    """Put a copy of `backup` in the place of the store; gives where the old one lies now, None where there was none.

    Nobody may have the store open: no gateway, no terminal, no other command. The old one goes, whole, to
    `replaced-YYYYMMDD-HHMMSS/` in `folder`. Raises UserError, the store untouched, unless the copy stands every check
    of `verify` (a damaged search index is made anew); StoreUnavailable when the files cannot be moved.
    """
    with ExitStack() as stack:
        try:
            source = stack.enter_context(opened(backup, backup))
            draft, _ = stack.enter_context(_whole_copy(source, database, backup))
        except StoreError as error:
            raise UserError(f"{error} The store was left as it is.") from error
        _fold(database)
        return exchange(draft, database, free_name(folder, f"replaced-{stamp(now)}"))


def exchange(draft: Path, database: Path, aside: Path) -> Path | None:
    """Put `draft` in the place of the database, and what was there into the folder `aside`; gives that, if any was.

    Nobody may have either open. Raises StoreUnavailable.
    """
    beside = [database.with_name(f"{database.name}{suffix}") for suffix in COMPANIONS]
    left = [file for file in beside if file.exists()]
    was_there = database.exists()
    with _told(database):
        if was_there or left:
            aside.mkdir(mode=0o700, parents=True)
        if was_there:
            _name_too(database, aside / database.name)
        for file in left:
            file.rename(aside / file.name)
        draft.rename(database)
    return aside if was_there or left else None


def _name_too(database: Path, target: Path) -> None:
    """Give the file a second name, so that at every moment there is a store in its place."""
    try:
        target.hardlink_to(database)
    except OSError:  # a file system without second names
        database.rename(target)


def _fold(database: Path) -> None:
    """Move the log into the old file. Where that cannot be read, it goes aside as it is, and its log beside it."""
    with suppress(dbapi.Error):
        with closing(connect(database, read_only=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with closing(connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
