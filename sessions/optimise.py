"""Giving space back and keeping the search index in few parts: in short steps beside turns, or all at once by hand.

Never in the path of a write: an index that is brought in order there stops every turn for as long as that takes.
On a store of 160 000 rows (285 MB), where deleted pages are overwritten, a merge of 250 pages held the write lock 37 ms
(52 at most), and giving back 2 000 pages 73 ms (96 at most).
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from hermes.errors import StoreError, StoreLocked, StoreUnavailable
from hermes.sessions import dbapi
from hermes.sessions.database import CONTENTION, cause, connect, has_fts5, open_readable, unavailable
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import TABLES

log = structlog.get_logger(__name__)

PATIENCE_MILLISECONDS = 2_000
"""How long each step by hand waits for another process that writes."""

MERGE_PAGES = 250
"""Pages that one step of a merge by hand writes."""

WORKED = 2
"""Changes that a merge counts when it has moved anything; the statement itself is one."""

DAMAGE = {"SQLITE_CORRUPT", "SQLITE_ERROR"}
"""What SQLite says of a search index that it cannot read or open."""

ROOM = 2
"""VACUUM writes what the store holds twice: into a file of its own, and from there into the log."""


def shrink(connection: Connection, pages: int) -> int:
    """Give up to `pages` unused pages (1 or more) back, which a checkpoint cuts off the file; gives how many it was."""
    before = _number(connection, "freelist_count")
    for _ in range(min(pages, before)):  # one by one: not every library runs the statement further than its first page
        connection.execute("PRAGMA incremental_vacuum(1)").fetchall()
    return before - _number(connection, "freelist_count")


def free_share(connection: Connection) -> float:
    """How much of the file is unused pages, from 0 to 1."""
    return _number(connection, "freelist_count") / max(_number(connection, "page_count"), 1)


def merge(connection: Connection, pages: int) -> bool:
    """Bring each search index nearer to one part, writing about so many pages; False when nothing was left to do.

    The first call has a negative number: all parts there are become one. Positive numbers go on with that. A damaged
    index is left as it is: that is for `hermes sessions repair`.
    """
    if not has_fts5(connection):
        return False
    worked = [_merge(connection, table, pages) for table in TABLES.values()]
    return any(worked)


def _merge(connection: Connection, table: str, pages: int) -> bool:
    before = connection.total_changes
    connection.execute("SAVEPOINT merging")
    try:
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))
    except dbapi.Error as error:
        if cause(error) not in DAMAGE:
            raise
        connection.execute("ROLLBACK TO merging")
        log.warning("search.merge_refused", table=table, reason=str(error))
    except MemoryError as error:  # a damaged index may ask for any amount of it
        raise StoreUnavailable(
            f"There is not enough memory to merge {table}. It may be damaged: hermes sessions repair"
        ) from error
    connection.execute("RELEASE merging")
    return connection.total_changes - before >= WORKED


def free_bytes(folder: Path) -> int:
    """What this user may still write on the disk of `folder`."""
    return shutil.disk_usage(folder).free


def optimise(path: Path, *, free: Callable[[Path], int] = free_bytes) -> tuple[int, int]:
    """Bring the search index in order and write the file anew without gaps; gives its bytes before and after.

    Readers go on meanwhile; writers wait while the file is written. Raises StoreLocked when somebody else writes,
    StoreUnavailable when there is no room for a second copy or the file cannot be used, SchemaTooNew.
    """
    open_readable(path).close()  # the store of a newer Hermes is not touched
    try:
        with closing(patient(path)) as connection:
            _refuse_without_room(connection, path, free(path.parent))
            before = _on_disk(path)
            pages = -MERGE_PAGES
            while _merge_step(connection, pages):
                pages = MERGE_PAGES
            connection.execute("PRAGMA temp_store = FILE")  # the second copy has no room in memory
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except dbapi.Error as error:
        raise refusal(path, error) from error
    return before, _on_disk(path)


def patient(path: Path) -> Connection:
    """A write connection for work by hand beside a running gateway: each statement waits for the lock for a while."""
    connection = connect(path)
    connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MILLISECONDS}")
    return connection


@contextmanager
def writing(connection: Connection) -> Iterator[None]:
    """One transaction, undone by whatever is raised in it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refusal(path: Path, error: dbapi.Error) -> StoreError:
    """The library's error as a person should read it."""
    if cause(error) in CONTENTION:
        return StoreLocked(
            f"{path}: another process is writing. Try again in a minute, or stop the gateway first: hermes gateway stop"
        )
    return unavailable(path, error)


def _merge_step(connection: Connection, pages: int) -> bool:
    with writing(connection):
        return merge(connection, pages)


def _refuse_without_room(connection: Connection, path: Path, free: int) -> None:
    used = _number(connection, "page_count") - _number(connection, "freelist_count")
    needed = ROOM * used * _number(connection, "page_size")
    if free < needed:
        raise StoreUnavailable(
            f"{path}: writing it anew needs {needed / 1e6:.0f} MB of free disk, and {free / 1e6:.0f} MB are free. "
            "Nothing was changed. Free some space first."
        )


def _on_disk(path: Path) -> int:
    """Bytes of the file and of its log."""
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())


def _number(connection: Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
