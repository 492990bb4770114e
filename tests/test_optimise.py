"""Space given back and the search index brought in order, in steps beside turns or all at once."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from contracts.store.facts import tell
from hermes.cli import repair as command
from hermes.cli.backup import size
from hermes.errors import SchemaTooNew, StoreLocked, StoreUnavailable, UserError
from hermes.home import Home
from hermes.sessions.database import connect, migrations
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import OWNER, Query
from hermes.sessions.optimise import free_share, merge, optimise, shrink
from hermes.sessions.store import open_store
from hermes.sessions.writer import Lane

INDEX_IS_BROKEN = "UPDATE messages_fts_data SET block = x'0000000101' WHERE id = 10"


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """A store that was written in many small transactions, so that its index has many parts."""
    store = await open_store(tmp_path / "state.db")
    for number in range(60):
        await tell(store, f"s{number}", f"lighthouse number {number}", *(f"word{number}x{n}" * 20 for n in range(20)))
    await store.close()
    return tmp_path / "state.db"


def empty_half(database: Path) -> None:
    """Rows leave, and leave their pages unused."""
    with closing(connect(database)) as connection:
        connection.execute("DELETE FROM conversations WHERE id < '20270115_080000_s4'")


def parts(connection: Connection) -> int:
    """How many parts the index over talk has."""
    (number,) = connection.execute("SELECT count(DISTINCT segid) FROM messages_fts_idx").fetchone()
    return int(number)


def is_exact(connection: Connection) -> bool:
    """Whether FTS5 itself finds every word of every row in its place. Raises when not."""
    for table in ("messages_fts", "tools_fts"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    return True


def test_unused_pages_are_given_back_a_few_at_a_time_until_none_is_left(database: Path) -> None:
    with closing(connect(database)) as connection:
        assert free_share(connection) < 0.05
        assert shrink(connection, 5) <= 5
    empty_half(database)
    with closing(connect(database)) as connection:
        assert 0.1 < free_share(connection) < 1
        steps = []
        while gone := shrink(connection, 5):
            steps.append(gone)
        assert free_share(connection) == 0
        assert set(steps[:-1]) == {5}
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert database.stat().st_size == pages * 4096


def test_bounded_steps_lead_to_an_index_of_one_part_that_finds_all_it_found(database: Path) -> None:
    with closing(connect(database)) as connection:
        before = parts(connection)
        steps, pages = 0, -4
        while merge(connection, pages):
            steps, pages = steps + 1, 4
        assert before > 1
        assert steps > 1
        assert parts(connection) == 1
        assert is_exact(connection)
        assert not merge(connection, -4)


def test_an_index_that_is_damaged_is_left_to_the_repair(database: Path) -> None:
    with closing(connect(database)) as connection:
        connection.execute(INDEX_IS_BROKEN)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO jobs (name) VALUES ('beside')")
        assert not merge(connection, -4)
        connection.execute("COMMIT")
        assert connection.execute("SELECT name FROM jobs").fetchall() == [("beside",)]


async def test_both_run_in_the_writers_second_lane_between_turns(database: Path) -> None:
    store = await open_store(database)
    turns, pages = 0, -4
    while await store.writer.submit(partial(merge, pages=pages), lane=Lane.MAINTENANCE):
        await tell(store, f"turn{turns}", f"meanwhile {turns}")
        turns, pages = turns + 1, 4
    assert turns > 1
    found = await store.search.discover(Query(text="meanwhile", limit=turns), OWNER)
    assert len(found.hits) == turns
    await store.writer.submit(lambda connection: connection.execute("DELETE FROM messages WHERE id < 500").rowcount)
    assert await store.writer.submit(lambda connection: shrink(connection, 5), lane=Lane.MAINTENANCE) == 5
    await store.close()


async def test_by_hand_the_file_becomes_as_small_as_what_it_holds(database: Path) -> None:
    empty_half(database)
    before, after = optimise(database)
    assert after == database.stat().st_size < before
    with closing(connect(database)) as connection:
        assert free_share(connection) == 0
        assert parts(connection) == 1
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert is_exact(connection)
    store = await open_store(database)
    assert len((await store.search.discover(Query(text="lighthouse", limit=100), OWNER)).hits) > 10
    await store.close()


def test_it_says_so_when_somebody_else_writes(database: Path) -> None:
    with closing(connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="hermes gateway stop"):
            optimise(database)


def test_it_needs_room_for_a_second_copy(database: Path) -> None:
    before = database.stat().st_size
    with pytest.raises(StoreUnavailable, match=r"needs \d+ MB of free disk, and 1 MB are free"):
        optimise(database, free=lambda _: before)
    assert database.stat().st_size == before


def test_the_store_of_a_newer_hermes_is_not_touched(database: Path) -> None:
    with closing(connect(database)) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    with pytest.raises(SchemaTooNew):
        optimise(database)


def test_the_command_says_what_it_gave(database: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    empty_half(database)
    command.optimize(Home(tmp_path))
    before, after = capsys.readouterr().out.removeprefix("The store is in order: ").removesuffix(".\n").split(" → ")
    assert float(before.split()[0]) > 1
    assert after == size(database.stat().st_size)
    with pytest.raises(UserError, match="no store yet"):
        command.optimize(Home(tmp_path / "elsewhere"))
