"""Opening the file: modes, migrations, what is refused, what is survived."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hermes.errors import SchemaTooNew, StoreUnavailable
from hermes.sessions import dbapi
from hermes.sessions.backup import before_migration
from hermes.sessions.database import connect, migrations, open_writable
from hermes.sessions.store import open_store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_files_are_for_the_owner_alone_under_any_umask(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    before = os.umask(0)
    try:
        with closing(open_writable(path)) as connection:
            connection.execute("INSERT INTO jobs (name) VALUES ('x')")
            assert {mode(file) for file in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_the_promised_pragmas_hold(tmp_path: Path) -> None:
    with closing(open_writable(tmp_path / "state.db")) as connection:
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "auto_vacuum", "wal_autocheckpoint", "foreign_keys")
        }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "auto_vacuum": 2,
        "wal_autocheckpoint": 0,
        "foreign_keys": 1,
    }


def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    open_writable(path).close()
    with closing(connect(path)) as connection:
        before = connection.execute("SELECT * FROM sqlite_schema").fetchall()
    open_writable(path).close()
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == before


def test_a_store_from_the_future_is_refused_without_a_write(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(dbapi.connect(path)) as connection:
        connection.execute("CREATE TABLE tomorrow (x)")
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="Nothing was changed"):
        open_writable(path)
    assert path.read_bytes() == before


def test_a_half_done_migration_is_simply_done_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(open_writable(path)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE half (x)")
        # killed here: the transaction is never committed
    with closing(open_writable(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == tables


def test_an_older_store_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(open_writable(path)) as connection:
        before_migration(path)(connection, 1)
        before_migration(path)(connection, 1)
    (copy,) = (tmp_path / "backups").iterdir()
    assert mode(copy) == 0o600
    with closing(connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("my diary, not a database\n" * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await open_store(path)
    assert path.read_text().startswith("my diary")


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="No such file"):
        await open_store(tmp_path / "nowhere" / "state.db")
