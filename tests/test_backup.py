"""Backups: made beside a writer, looked at before anyone relies on them, and put back."""

import asyncio
import fcntl
import json
import os
import pty
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from contracts.store.facts import T0, assistant, begin, tell, user, write
from hermes.cli import backup as command
from hermes.errors import HermesError, SchemaTooNew, StoreUnavailable, UserError
from hermes.gateway.lock import only_gateway
from hermes.gateway.neighbours import signed_in
from hermes.home import Home
from hermes.sessions import backup, dbapi
from hermes.sessions.database import connect, migrations, open_writable, statements
from hermes.sessions.model import OWNER, Query
from hermes.sessions.store import SqliteStore, open_store

PAGE = 4096


class Place(NamedTuple):
    """A store with three conversations, closed, and where its backups go."""

    database: Path
    folder: Path


@asynccontextmanager
async def opened(database: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(database)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    async with opened(tmp_path / "state.db") as store:
        await tell(store, "a", "the harbour at noon", "修改服务端的代码")
        await tell(store, "b", "a lighthouse")
        await tell(store, "c", "the ferry leaves")
    return Place(tmp_path / "state.db", tmp_path / "backups")


def damage(database: Path, *changes: str) -> None:
    """Change a store as no part of Hermes would."""
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for change in changes:
            connection.execute(change)


def spoil(file: Path, word: str) -> None:
    """Overwrite the page on which `word` stands, in a file that nobody has open."""
    raw = bytearray(file.read_bytes())
    start = raw.index(word.encode()) // PAGE * PAGE
    raw[start : start + PAGE] = bytes(PAGE)
    file.write_bytes(raw)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def words(database: Path) -> list[str]:
    """Everything that was said, as a gateway that starts on this store knows it."""
    async with opened(database) as store:
        return await store.readers.run(
            lambda connection: [row[0] for row in connection.execute("SELECT content FROM messages ORDER BY id")]
        )


INDEX_IS_BROKEN = "UPDATE messages_fts_data SET block = x'0000000101' WHERE id = 10"
HUGE = "UPDATE messages_fts_data SET block = x'0000000001010100ffffffff7f' WHERE id = 10"


# -- making ---------------------------------------------------------------------------------------------------------


def test_a_backup_is_one_file_for_its_owner_alone_and_knows_what_it_holds(place: Place) -> None:
    before = os.umask(0)
    try:
        made = backup.create(place.database, place.folder, now=T0 + 0.75)
    finally:
        os.umask(before)
    assert made.path == place.folder / "state-20270115-080000.db"
    assert (made.made_at, made.sessions, made.messages, made.bytes) == (T0, 3, 4, made.path.stat().st_size)
    assert [file.name for file in place.folder.iterdir()] == ["state-20270115-080000.db"]
    assert (mode(made.path), mode(place.folder)) == (0o600, 0o700)
    assert backup.verify(made.path) == made
    assert [file.name for file in place.folder.iterdir()] == ["state-20270115-080000.db"]


def test_those_of_one_second_are_told_apart_and_the_newest_comes_first(place: Place) -> None:
    for _ in range(11):
        backup.create(place.database, place.folder, now=T0)
    backup.create(place.database, place.folder, now=T0 + 1)
    names = [kept.path.name for kept in backup.listed(place.folder)]
    assert names[:3] == ["state-20270115-080001.db", "state-20270115-080000-11.db", "state-20270115-080000-10.db"]
    assert names[-1] == "state-20270115-080000.db"


async def test_beside_a_busy_writer_it_is_one_moment_of_the_store(place: Place) -> None:
    async with opened(place.database) as store:
        session, lease = await begin(store, "busy")
        done = asyncio.Event()

        async def talk() -> None:
            while not done.is_set():
                await write(store, lease, session, user("ask"), assistant("answer"))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(talk())
            made = [
                await asyncio.to_thread(backup.create, place.database, place.folder, now=T0 + number)
                for number in range(3)
            ]
            done.set()
    counts = [one.messages - 4 for one in made]
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert all(count % 2 == 0 for count in counts)


@pytest.mark.parametrize(
    "change", [INDEX_IS_BROKEN, HUGE, "DROP TABLE messages_fts_config", "DELETE FROM messages_fts_data"]
)
def test_a_damaged_search_index_is_made_anew_in_the_copy(place: Place, change: str) -> None:
    damage(place.database, change)
    with pytest.raises(StoreUnavailable, match="search index is damaged"):
        backup.verify(place.database)
    made = backup.create(place.database, place.folder, now=T0)
    assert backup.verify(made.path) == made
    with closing(connect(made.path, read_only=True)) as connection:
        found = connection.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'lighthouse'").fetchone()
    assert found == (1,)


def test_a_store_that_does_not_hold_together_is_refused_and_nothing_is_left(place: Place) -> None:
    damage(place.database, "DELETE FROM sessions WHERE id LIKE '%_a'")
    with pytest.raises(StoreUnavailable, match=r"2 rows belong to rows that are not there \(in messages\).*repair"):
        backup.create(place.database, place.folder, now=T0)
    assert list(place.folder.iterdir()) == []


def test_without_room_for_it_nothing_is_begun(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(place.database.parent)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(StoreUnavailable, match="needs 0 MB, and 0 MB are free"):
        backup.create(place.database, place.folder, now=T0)
    assert list(place.folder.iterdir()) == []


def test_where_no_file_can_be_made_a_sentence_says_so(place: Place) -> None:
    place.folder.write_text("a file in the way")
    with pytest.raises(StoreUnavailable, match="no copy can be written"):
        backup.create(place.database, place.folder, now=T0)


def test_a_copy_never_replaces_a_file(place: Place) -> None:
    target = place.folder.parent / "mine.db"
    target.write_text("mine")
    with closing(connect(place.database)) as connection, pytest.raises(StoreUnavailable, match="a file of this name"):
        backup.copy(connection, target)
    assert target.read_text() == "mine"


def test_what_a_dead_process_left_is_swept_away_and_what_a_living_one_writes_is_not(place: Place) -> None:
    place.folder.mkdir()
    leftovers = [place.folder / f"{backup.DRAFT}0123", place.folder / f"{backup.DRAFT}0123-journal"]
    for leftover in leftovers:
        leftover.write_text("half a store")
    assert backup.listed(place.folder) == ()
    handle = os.open(place.folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    backup.create(place.database, place.folder, now=T0)
    assert all(leftover.exists() for leftover in leftovers)
    os.close(handle)
    backup.create(place.database, place.folder, now=T0)
    assert not any(leftover.exists() for leftover in leftovers)


# -- looking --------------------------------------------------------------------------------------------------------


class TestVerify:
    async def test_a_damaged_page_is_named(self, place: Place) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        spoil(made.path, "lighthouse")
        with pytest.raises(StoreUnavailable, match=r"state-20270115-080000\.db.*"):
            backup.verify(made.path)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ("DELETE FROM conversations WHERE id LIKE '%_b'", "rows belong to rows that are not there"),
            (INDEX_IS_BROKEN, "search index is damaged"),
            ("DELETE FROM messages_fts_docsize", "does not find what the messages say"),
            ("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id = 10", "does not find"),
            (f"PRAGMA user_version = {len(migrations()) + 1}", "this Hermes knows up to"),
            ("PRAGMA user_version = 0", "holds no store of Hermes"),
        ],
    )
    def test_what_is_wrong_is_said(self, place: Place, change: str, sentence: str) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        damage(made.path, change)
        with pytest.raises(HermesError, match=sentence):
            backup.verify(made.path)

    def test_other_files_are_no_backups(self, tmp_path: Path) -> None:
        diary = tmp_path / "diary.db"
        with pytest.raises(StoreUnavailable, match="no such file"):
            backup.verify(diary)
        diary.write_text("my diary, not a database\n" * 100)
        with pytest.raises(StoreUnavailable, match="not a database"):
            backup.verify(diary)
        diary.write_text("")
        with pytest.raises(StoreUnavailable, match="holds no store"):
            backup.verify(diary)

    def test_a_store_without_a_word_is_whole(self, tmp_path: Path) -> None:
        open_writable(tmp_path / "state.db").close()
        made = backup.create(tmp_path / "state.db", tmp_path, now=T0)
        assert (made.sessions, made.messages) == (0, 0)


def test_only_the_oldest_scheduled_ones_are_removed(place: Place) -> None:
    for hour in range(4):
        backup.create(place.database, place.folder, now=T0 + 3600 * hour)
    others = [
        "state-schema-1.db",
        "before-repair-20200101-000000.db",
        "state.db",
        "notes.txt",
        "mine-20200101-000000.db",
    ]
    for name in others:
        (place.folder / name).write_text("kept")
    gone = backup.rotate(place.folder, 2)
    assert [path.name for path in gone] == ["state-20270115-090000.db", "state-20270115-080000.db"]
    left = {path.name for path in place.folder.iterdir()}
    assert left == {*others, "state-20270115-100000.db", "state-20270115-110000.db"}
    assert backup.rotate(place.folder, 2) == ()
    assert backup.rotate(place.folder / "nowhere", 2) == ()
    with pytest.raises(ValueError, match="number of backups"):
        backup.rotate(place.folder, -1)


# -- the way back ---------------------------------------------------------------------------------------------------


class TestRestore:
    async def test_the_store_is_what_it_was_and_what_it_became_is_kept(self, place: Place) -> None:
        then = await words(place.database)
        made = backup.create(place.database, place.folder, now=T0)
        whole = made.path.read_bytes()
        async with opened(place.database) as store:
            await tell(store, "d", "said afterwards")
        aside = backup.restore(made.path, place.database, place.folder, now=T0 + 60)
        assert aside == place.folder / "replaced-20270115-080100"
        assert await words(place.database) == then
        assert await words(aside / "state.db") == [*then, "said afterwards"]
        assert made.path.read_bytes() == whole
        assert (mode(place.database), mode(aside), mode(aside / "state.db")) == (0o600, 0o700, 0o600)

    async def test_the_restored_store_is_talked_in_and_searched(self, place: Place) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        backup.restore(made.path, place.database, place.folder, now=T0)
        async with opened(place.database) as store:
            await tell(store, "d", "a new lighthouse")
            found = await store.search.discover(Query(text="lighthouse"), OWNER)
        assert {hit.session.id[-1] for hit in found.hits} == {"b", "d"}

    async def test_what_a_killed_process_left_in_the_log_goes_aside_with_the_old_one(self, place: Place) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        killed = place.database.parent / "killed"
        killed.mkdir()
        async with opened(place.database) as store:
            await tell(store, "d", "only in the log")
            for file in place.database.parent.glob("state.db*"):
                shutil.copy(file, killed)
        aside = backup.restore(made.path, killed / "state.db", killed / "backups", now=T0)
        assert aside is not None
        assert "only in the log" not in await words(killed / "state.db")
        assert "only in the log" in await words(aside / "state.db")

    async def test_an_old_one_that_cannot_be_read_goes_aside_as_it_is(self, place: Place) -> None:
        then = await words(place.database)
        made = backup.create(place.database, place.folder, now=T0)
        place.database.write_text("no database any more\n" * 500)
        place.database.with_name("state.db-wal").write_text("nor a log")
        aside = backup.restore(made.path, place.database, place.folder, now=T0)
        assert aside is not None
        assert (aside / "state.db").read_text().startswith("no database")
        assert (aside / "state.db-wal").read_text() == "nor a log"
        assert await words(place.database) == then

    async def test_where_there_is_no_store_one_is_made(self, place: Place, tmp_path: Path) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        new = tmp_path / "new"
        assert backup.restore(made.path, new / "state.db", place.folder, now=T0) is None
        assert await words(new / "state.db") == await words(place.database)

    async def test_a_backup_that_is_not_whole_changes_nothing(self, place: Place) -> None:
        then = await words(place.database)
        made = backup.create(place.database, place.folder, now=T0)
        spoil(made.path, "lighthouse")
        with pytest.raises(UserError, match="store was left as it is"):
            backup.restore(made.path, place.database, place.folder, now=T0)
        with pytest.raises(UserError, match="no such file"):
            backup.restore(place.folder / "nothing.db", place.database, place.folder, now=T0)
        assert await words(place.database) == then
        assert {file.name for file in place.folder.iterdir()} == {made.path.name}

    async def test_one_of_a_newer_hermes_is_refused(self, place: Place) -> None:
        made = backup.create(place.database, place.folder, now=T0)
        damage(made.path, f"PRAGMA user_version = {len(migrations()) + 1}")
        with pytest.raises(SchemaTooNew):
            backup.verify(made.path)
        with pytest.raises(UserError, match="Install the newer Hermes"):
            backup.restore(made.path, place.database, place.folder, now=T0)

    async def test_one_of_an_older_schema_is_brought_up_at_the_next_start(self, place: Place, tmp_path: Path) -> None:
        old = tmp_path / "state-schema-1.db"
        with closing(dbapi.connect(old, isolation_level=None)) as connection:
            for statement in statements(migrations()[0]):
                connection.execute(statement)
            connection.execute("PRAGMA user_version = 1")
            connection.execute("INSERT INTO conversations (id, tip) VALUES ('s', 's')")
            connection.execute(
                "INSERT INTO sessions (id, conversation, source, started_at, last_active)"
                " VALUES ('s', 's', 'cli', 1, 1)"
            )
            connection.execute(
                "INSERT INTO messages (session_id, role, kind, content, at) VALUES ('s', 'user', 'talk', 'of old', 1)"
            )
        backup.restore(old, place.database, place.folder, now=T0)
        assert await words(place.database) == ["of old"]


# -- for a person at a terminal ---------------------------------------------------------------------------------------


@pytest.fixture
async def home(place: Place) -> Home:
    return Home(place.database.parent)


@contextmanager
def typed(text: str) -> Iterator[None]:
    """A terminal on which this is typed while the block runs."""
    keyboard, terminal = pty.openpty()
    os.write(keyboard, text.encode())
    with os.fdopen(terminal, encoding="utf-8") as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        yield
    os.close(keyboard)


class TestCommand:
    async def test_one_is_made_listed_and_verified(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        command.show(home, as_json=False)
        command.create(home)
        (path,) = home.backups.iterdir()
        command.show(home, as_json=False)
        command.show(home, as_json=True)
        assert command.verify(home, "latest") == command.verify(home, path.name) == command.verify(home, str(path)) == 0
        said = capsys.readouterr().out
        size = command.size(path.stat().st_size)
        lines = said.splitlines()
        assert lines[0] == "No backups yet. Make one with: hermes backup create"
        assert lines[1] == f"Backup made and verified: {path} ({size}, 3 sessions, 4 messages)"
        assert lines[2].split() == [path.name, *size.split(), "just", "now"]
        listed = json.loads("\n".join(lines[3:-3]))
        assert [(one["name"], one["bytes"]) for one in listed] == [(path.name, path.stat().st_size)]
        assert set(lines[-3:]) == {f"✓ {path.name} is whole: {size}, 3 sessions, 4 messages, made just now."}

    async def test_one_that_is_damaged_is_told(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        command.create(home)
        (path,) = home.backups.iterdir()
        spoil(path, "lighthouse")
        assert command.verify(home, path.name) == 1
        assert f"✗ {path}" in capsys.readouterr().out
        with pytest.raises(UserError, match="hermes backup list"):
            command.verify(home, "state-19990101-000000.db")

    async def test_the_person_sees_both_and_decides(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        then = await words(home.database)
        command.create(home)
        async with opened(home.database) as store:
            await tell(store, "d", "said afterwards")
        with typed("n\n"):
            assert command.restore(home, "latest", assume_yes=False) == 1
        assert await words(home.database) == [*then, "said afterwards"]
        with typed("y\n"):
            assert command.restore(home, "latest", assume_yes=False) == 0
        assert await words(home.database) == then
        said = capsys.readouterr().out
        assert "3 sessions, 4 messages, made just now" in said
        assert "4 sessions, 5 messages, last active" in said
        assert "Put the backup in the place of the store? [y/N] Nothing was changed." in said
        (aside,) = home.backups.glob("replaced-*")
        assert f"What was there before lies in {aside}" in said

    async def test_where_nobody_can_be_asked_it_takes_yes(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        command.create(home)
        with (tmp_path / "typed").open("w+") as file:
            monkeypatch.setattr(sys, "stdin", file)
            with pytest.raises(UserError, match="--yes"):
                command.restore(home, "latest", assume_yes=False)
            assert command.restore(home, "latest", assume_yes=True) == 0

    async def test_while_somebody_has_the_store_open_nothing_is_put_in_its_place(self, home: Home) -> None:
        command.create(home)
        with only_gateway(home.lock), pytest.raises(UserError, match="hermes gateway stop"):
            command.restore(home, "latest", assume_yes=True)
        with signed_in(home.terminals, "terminal-1"), pytest.raises(UserError, match="A terminal"):
            command.restore(home, "latest", assume_yes=True)
        assert list(home.backups.glob("replaced-*")) == []
        assert command.restore(home, "latest", assume_yes=True) == 0

    async def test_a_store_that_cannot_be_read_can_still_be_replaced(
        self, home: Home, capsys: pytest.CaptureFixture[str]
    ) -> None:
        then = await words(home.database)
        command.create(home)
        home.database.write_text("no database\n" * 500)
        assert command.restore(home, "latest", assume_yes=True) == 0
        assert "state.db cannot be read: " in capsys.readouterr().out
        assert await words(home.database) == then

    def test_without_a_store_there_is_nothing_to_copy(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="no store yet"):
            command.create(Home(tmp_path))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 kB"), (812_300, "812 kB"), (12_340_000, "12.3 MB"), (1_440_000_000, "1.4 GB")]
)
def test_sizes_are_for_people(number: int, shown: str) -> None:
    assert command.size(number) == shown
