"""Opening the store's file: modes, pragmas, migrations. Only SQLite ever opens it.

A plain open and close of state.db, -wal or -shm in a process that also has SQLite connections would drop their
POSIX locks, so nothing here (or elsewhere) touches these files except through a connection. The one exception is
creating the file, which succeeds only where no database was.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path

from hermes.errors import SchemaTooNew, StoreUnavailable
from hermes.sessions import dbapi
from hermes.sessions.dbapi import Connection

BUSY_MILLISECONDS = 250
"""How long one statement waits for another process; the writer waits longer by asking again."""

WAL_CAP = 64 * 1024 * 1024
"""Bytes of -wal above which an idle checkpoint also truncates it."""

CONTENTION = {"SQLITE_BUSY", "SQLITE_LOCKED"}
ENVIRONMENT = CONTENTION | {
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_PROTOCOL",
    "SQLITE_NOMEM",
}
"""Primary result codes that are nobody's statement's fault."""

ADVICE = {
    "SQLITE_FULL": "The disk (or the store's size limit) is full. Free some space; nothing that was stored is lost.",
    "SQLITE_READONLY": "The file cannot be written by this user. Check its owner and mode.",
    "SQLITE_CANTOPEN": "The file cannot be opened. Check the folder's owner and mode.",
    "SQLITE_CORRUPT": "The file is damaged. Stop Hermes, then run: hermes sessions repair",
    "SQLITE_NOTADB": "Move it away, or choose another folder with HERMES_HOME.",
}


def cause(error: dbapi.Error) -> str:
    """The primary result code of an error, such as `SQLITE_BUSY`; `""` where the library gives none."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return "_".join(name.split("_")[:2])


def unavailable(path: Path, error: dbapi.Error) -> StoreUnavailable:
    """The error as a person should read it: what, where, and what to do."""
    advice = ADVICE.get(cause(error), "Run `hermes doctor` for a closer look.")
    return StoreUnavailable(f"{path}: {error}. {advice}")


def connect(path: Path, *, read_only: bool = False) -> Connection:
    """A connection with the store's pragmas, usable from any one thread at a time.

    Every connection of every process turns automatic checkpoints off: a commit never pays for one.
    """
    mode = "ro" if read_only else "rw"
    connection = dbapi.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        timeout=BUSY_MILLISECONDS / 1000,
    )
    for pragma in (
        "foreign_keys = ON",
        "synchronous = FULL",
        "wal_autocheckpoint = 0",
        "temp_store = MEMORY",
        "secure_delete = ON",  # what was deleted cannot be read in the file: not by whoever finds a disk, either
    ):
        connection.execute(f"PRAGMA {pragma}")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def open_writable(path: Path, *, backup: Callable[[Connection, int], None] | None = None) -> Connection:
    """The write connection, on the newest schema. Makes the file, 0600, where there is none.

    `backup` is called with the connection and its schema version before an existing store is migrated.
    Raises SchemaTooNew before any write, StoreUnavailable when the file cannot be used.
    """
    fresh = _create(path)
    try:
        connection = connect(path)
    except dbapi.Error as error:
        raise unavailable(path, error) from error
    try:
        _prepare(path, connection, fresh=fresh, backup=backup)
    except dbapi.Error as error:
        connection.close()
        raise unavailable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_readable(path: Path) -> Connection:
    """A read connection for who opens no store besides, such as a command that only shows something.

    Raises SchemaTooNew, and StoreUnavailable when the file cannot be used or its schema is not brought up yet.
    """
    try:
        connection = connect(path, read_only=True)
    except dbapi.Error as error:
        raise unavailable(path, error) from error
    try:
        _refuse_foreign(path, _version(connection))
    except dbapi.Error as error:
        connection.close()
        raise unavailable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def snapshot(connection: Connection) -> Iterator[Connection]:
    """One moment of the store, for as long as a short read takes."""
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.execute("ROLLBACK")


def _refuse_foreign(path: Path, found: int) -> None:
    newest = len(migrations())
    if found > newest:
        raise SchemaTooNew(str(path), found, newest)
    if found < newest:
        raise StoreUnavailable(
            f"{path} has schema {found} and is not yet brought to {newest}. Start `hermes chat` or the gateway once: "
            "that keeps a backup and does it."
        )


def _create(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}. Check the folder's owner and mode.") from error
    return True


def _prepare(
    path: Path, connection: Connection, *, fresh: bool, backup: Callable[[Connection, int], None] | None
) -> None:
    found = _version(connection)
    newest = len(migrations())
    if found > newest:
        raise SchemaTooNew(str(path), found, newest)
    if fresh:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # must come before WAL and before any table
    connection.execute("PRAGMA journal_mode = WAL")
    if 0 < found < newest and backup is not None:
        backup(connection, found)
    migrate(connection)
    prepare_search(connection)


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrations() -> tuple[str, ...]:
    """The numbered SQL files, in order; the n-th (from 1) leads to schema n."""
    folder = resources.files("hermes.sessions") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name[:4].isdigit())
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


def migrate(connection: Connection) -> None:
    """Bring the schema to the newest version, one transaction a step; a killed step is simply run again."""
    for number, script in enumerate(migrations(), start=1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) < number:  # another process may have done it while we waited
                for statement in statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: executescript() would commit around them."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if dbapi.complete_statement(pending):
            yield pending
            pending = ""


def has_fts5(connection: Connection) -> bool:
    """Whether this SQLite can search full text at all."""
    return any(row[0] == "ENABLE_FTS5" for row in connection.execute("PRAGMA compile_options"))


def prepare_search(connection: Connection) -> None:
    """Make the index's tables and triggers; without FTS5, take the triggers away so that words are still kept."""
    script = (resources.files("hermes.sessions") / "schema" / "search.sql").read_text(encoding="utf-8")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if has_fts5(connection):
            for statement in statements(script):
                connection.execute(statement)
        else:
            names = connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'messages'"
            ).fetchall()
            for (name,) in names:
                connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def checkpoint(connection: Connection, cap: int) -> None:
    """Move the log into the database; called by the writer when nobody waits for it.

    PASSIVE never blocks anybody. Above `cap` bytes the log is truncated too, which needs a moment without readers and
    is given up at once when there is none.
    """
    page = int(connection.execute("PRAGMA page_size").fetchone()[0])
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages * page > cap:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")


def integrity(path: Path) -> list[str]:
    """What SQLite's own check finds wrong with the file; empty when nothing is. Raises StoreUnavailable."""
    try:
        with closing(connect(path, read_only=True)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    except dbapi.Error as error:
        raise unavailable(path, error) from error
    return [] if found == ["ok"] else found
