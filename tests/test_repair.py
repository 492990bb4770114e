"""A store that is damaged is looked at, mended beside a running gateway, and never loses a word that can be read."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from contracts.store.facts import T0, assistant, begin, summary, tell, texts, tool, user, write
from hermes.cli import repair as command
from hermes.errors import StoreUnavailable, UserError
from hermes.gateway.lock import only_gateway
from hermes.home import Home
from hermes.sessions import backup, dbapi
from hermes.sessions.database import connect, open_readable
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.trouble import Fault, Trouble
from hermes.sessions.model import OWNER, Query, SessionId, Split, ViewEntry
from hermes.sessions.repair import examine, findings, mend
from hermes.sessions.store import SqliteStore, open_store

PAGE = 4096
SAID = ("the harbour at noon", "修改服务端的代码", "a lighthouse", "the ferry leaves")


@asynccontextmanager
async def opened(database: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(database)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """Three conversations, one of them with a tool and compressed once."""
    path = tmp_path / "state.db"
    async with opened(path) as store:
        await tell(store, "a", *SAID[:2])
        await tell(store, "b", SAID[2], title="light")
        session, lease = await begin(store, "c")
        rows = await write(store, lease, session, user(SAID[3]), tool("timetable of the pier"), assistant("At nine."))
        split = Split(
            child=SessionId("20270115_090000_d"),
            head=(ViewEntry(message_id=rows[0].id),),
            summary=summary("so far"),
            tail=(),
            at=T0 + 1,
        )
        child = await store.split(lease, session.id, split)
        await write(store, lease, child, user("and back?"), turn="turn-2")
        await store.leases.release(lease)
    return path


def change(database: Path, *statements: str) -> None:
    """Change a store as no part of Hermes would."""
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement)


def look(database: Path) -> tuple[Trouble, ...]:
    with closing(open_readable(database)) as connection:
        return examine(connection)


def ask(database: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(connect(database, read_only=True)) as connection:
        return connection.execute(question).fetchall()


def is_exact(connection: Connection) -> bool:
    """Whether FTS5's own command finds every word of every row in its place. Raises when not."""
    for table in ("messages_fts", "tools_fts"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    return True


def spoil(database: Path, word: str) -> bytes:
    """Overwrite the page on which `word` stands, in a file that nobody has open; gives the file as it is then."""
    raw = bytearray(database.read_bytes())
    start = raw.index(word.encode()) // PAGE * PAGE
    raw[start : start + PAGE] = bytes(PAGE)
    database.write_bytes(raw)
    return bytes(raw)


async def found(database: Path, word: str) -> set[str]:
    """The last letters of the sessions in which a gateway that starts now finds a word."""
    async with opened(database) as store:
        hits = (await store.search.discover(Query(text=word, limit=50), OWNER)).hits
    return {hit.session.id[-1] for hit in hits}


DATA_GONE = "DELETE FROM messages_fts_data"
STRUCTURE = "UPDATE messages_fts_data SET block = x'0000000101' WHERE id = 10"
WORDS = "UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10"
SUMS = "UPDATE messages_fts_data SET block = x'00' WHERE id = 1"
HUGE = "UPDATE messages_fts_data SET block = x'0000000001010100ffffffff7f' WHERE id = 10"
TOOLS = "UPDATE tools_fts_data SET block = x'0000000101' WHERE id = 10"
ROW = "INSERT INTO messages_fts (rowid, content) VALUES (999, 'a ghost')"
SEARCH = [
    pytest.param(STRUCTURE, id="its structure"),
    pytest.param(HUGE, id="a number in its structure"),
    pytest.param(WORDS, id="its words"),
    pytest.param(SUMS, id="its sums"),
    pytest.param(TOOLS, id="that of tools"),
    pytest.param(DATA_GONE, id="all of it"),
    pytest.param(ROW, id="a row too many"),
    pytest.param("DROP TABLE messages_fts_docsize", id="a table of it"),
    pytest.param("DROP TABLE messages_fts_config", id="its settings"),
    pytest.param("DROP TABLE messages_fts_idx", id="its signposts"),
]

LOGIC = [
    pytest.param("UPDATE conversations SET tip = 'nowhere' WHERE id LIKE '%_a'", Fault.TIP, id="a tip that is gone"),
    pytest.param(
        "UPDATE conversations SET tip = '20270115_080000_b' WHERE id LIKE '%_a'", Fault.TIP, id="another one's tip"
    ),
    pytest.param(
        "UPDATE conversations SET tip = '20270115_080000_c' WHERE id LIKE '%_c'", Fault.TIP, id="a tip that went on"
    ),
    pytest.param(
        "UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id LIKE '%_d'",
        Fault.COMPACTED,
        id="closed without a child",
    ),
    pytest.param("DELETE FROM sessions WHERE id LIKE '%_b'", Fault.STRAYS, id="messages without a session"),
    pytest.param("DELETE FROM conversations WHERE id LIKE '%_c'", Fault.STRAYS, id="sessions without a conversation"),
    pytest.param(
        "INSERT INTO views VALUES ('20270115_080000_a', 7, 12345, NULL)", Fault.STRAYS, id="a view of what is not there"
    ),
    pytest.param("INSERT INTO routes VALUES ('k', 'nowhere', '{}', 1)", Fault.STRAYS, id="a route to nowhere"),
    pytest.param("INSERT INTO conversations (id, tip) VALUES ('x', 'x')", Fault.EMPTY, id="no sessions"),
    pytest.param("UPDATE sessions SET message_count = 99 WHERE id LIKE '%_a'", Fault.COUNTERS, id="a wrong count"),
    pytest.param(
        "INSERT INTO doomed SELECT id FROM conversations WHERE id LIKE '%_b'", Fault.DOOMED, id="half deleted"
    ),
    pytest.param("INSERT INTO index_todo VALUES (12345)", Fault.TODO, id="a note to index"),
    pytest.param("DROP TRIGGER messages_talk_out", Fault.PARTS, id="a trigger"),
    pytest.param("DROP INDEX messages_session", Fault.PARTS, id="an index"),
    pytest.param("DROP TABLE tools_fts", Fault.PARTS, id="a search index"),
    pytest.param("DROP TABLE views", Fault.PARTS, id="a table"),
]


class TestLooking:
    async def test_a_store_that_is_sound_is_left_alone(self, database: Path) -> None:
        before = database.read_bytes()
        assert (look(database), findings(database), mend(database, now=T0)) == ((), (), ())
        assert database.read_bytes() == before
        assert not (database.parent / "backups").exists()

    @pytest.mark.parametrize(("statement", "kind"), LOGIC)
    async def test_what_does_not_hold_together_is_told_with_its_remedy(
        self, database: Path, statement: str, kind: Fault
    ) -> None:
        change(database, statement)
        first = look(database)[0]
        assert first.kind is kind
        assert first.what.endswith(".")
        assert "hermes sessions repair" in first.remedy

    @pytest.mark.parametrize("statement", SEARCH)
    async def test_a_damaged_search_index_is_seen_without_a_write(self, database: Path, statement: str) -> None:
        change(database, statement)
        with closing(connect(database)) as writer:
            writer.execute("BEGIN IMMEDIATE")  # whoever looks needs no lock
            kinds = {trouble.kind for trouble in look(database)}
        assert Fault.DAMAGED not in kinds
        assert kinds & {Fault.SEARCH, Fault.PARTS}

    @pytest.mark.parametrize("statement", [STRUCTURE, SUMS, DATA_GONE, "DROP TABLE messages_fts_docsize"])
    async def test_the_doctor_sees_the_gross_damage_at_once(self, database: Path, statement: str) -> None:
        change(database, statement)
        assert Fault.SEARCH in {trouble.kind for trouble in findings(database)}

    async def test_the_sums_of_an_index_that_has_lived_add_up(self, database: Path) -> None:
        async with opened(database) as store:
            for number in range(40):
                await tell(store, f"n{number}", f"word {number} of many", "修改 mixed 文字", "")
            await store.delete(SessionId("20270115_080000_n7"), OWNER, now=T0)  # type: ignore[arg-type]
        change(
            database,
            "UPDATE messages SET content = 'changed since' WHERE id % 5 = 0",
            "DELETE FROM messages WHERE id % 7 = 0 AND id > 20",
        )
        assert not {Fault.SEARCH, Fault.UNINDEXED, Fault.DAMAGED} & {trouble.kind for trouble in look(database)}

    async def test_a_store_of_which_nothing_can_be_read_is_left_as_it_is(self, database: Path) -> None:
        database.write_text("no database\n" * 500)
        for attempt in (lambda: mend(database, now=T0), lambda: findings(database)):
            with pytest.raises(StoreUnavailable, match="not a database"):
                attempt()
        assert database.read_text().startswith("no database")


class TestMending:
    @pytest.mark.parametrize(("statement", "_kind"), LOGIC)
    async def test_each_thing_is_mended_once_and_told(self, database: Path, statement: str, _kind: Fault) -> None:
        change(database, statement)
        done = mend(database, now=T0)
        assert len(done) > 1
        assert look(database) == ()
        assert mend(database, now=T0 + 1) == ()
        kept = database.parent / "backups" / "before-repair-20270115-080000.db"
        assert done[0] == f"A copy from before is kept: {kept}"
        assert [one.path for one in backup.listed(kept.parent)] == [kept]

    @pytest.mark.parametrize("statement", SEARCH)
    async def test_the_search_index_is_made_anew(self, database: Path, statement: str) -> None:
        change(database, statement)
        mend(database, now=T0)
        assert look(database) == ()
        with closing(connect(database)) as connection:
            assert is_exact(connection)
        assert await found(database, "lighthouse") == {"b"}
        assert await found(database, "服务端") == {"a"}

    async def test_no_copy_is_kept_where_none_is_wanted(self, database: Path) -> None:
        change(database, "UPDATE sessions SET message_count = 99")
        assert mend(database, now=T0, backup=False) == ("Messages of sessions were counted again: 4.",)
        assert not (database.parent / "backups").exists()

    async def test_a_conversation_leads_to_its_newest_session_again(self, database: Path) -> None:
        change(database, "UPDATE conversations SET tip = 'nowhere'")
        mend(database, now=T0)
        tips = ask(database, "SELECT tip FROM conversations ORDER BY id")
        assert tips == [("20270115_080000_a",), ("20270115_080000_b",), ("20270115_090000_d",)]

    async def test_a_conversation_that_was_closed_without_a_child_goes_on(self, database: Path) -> None:
        change(database, "UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id LIKE '%_d'")
        mend(database, now=T0)
        async with opened(database) as store:
            tip = await store.get(SessionId("20270115_090000_d"), OWNER)
            older = await store.get(SessionId("20270115_080000_c"), OWNER)
        assert (tip.ended_at, tip.end_reason) == (None, None)
        assert older.end_reason == "compression"

    async def test_messages_that_lost_their_session_are_read_and_found(self, database: Path) -> None:
        change(database, "DELETE FROM sessions WHERE id LIKE '%_a'", "DELETE FROM conversations WHERE id LIKE '%_a'")
        mend(database, now=T0)
        async with opened(database) as store:
            session = await store.resolve("20270115_080000_a", OWNER)
            rows = await store.transcript(session.conversation, OWNER)
        assert texts(rows) == list(SAID[:2])
        assert (session.source, session.message_count, session.preview) == ("repair", 2, SAID[0])
        assert (session.started_at, session.last_active) == (T0, T0)
        assert await found(database, "harbour") == {"a"}

    async def test_who_writes_where_a_conversation_was_empty_begins_a_new_one(self, database: Path) -> None:
        change(database, "DELETE FROM messages WHERE session_id LIKE '%_b'", "DELETE FROM sessions WHERE id LIKE '%_b'")
        mend(database, now=T0)
        async with opened(database) as store:
            session, _ = await begin(store, "b", id="20270116_080000_new")
        assert session.id == "20270116_080000_new"

    async def test_words_that_a_killed_rebuild_left_out_are_fed_again(self, database: Path) -> None:
        change(database, "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
        assert [trouble.kind for trouble in look(database)] == [Fault.UNINDEXED]
        assert [trouble.kind for trouble in findings(database)] == [Fault.UNINDEXED]
        steps: list[tuple[int, int]] = []
        mend(database, now=T0, watch=lambda more, total: steps.append((more, total)))
        assert steps == [(6, 6)]
        with closing(connect(database)) as connection:
            assert is_exact(connection)

    async def test_space_that_a_killed_rebuild_left_in_use_is_freed(self, database: Path) -> None:
        change(database, "CREATE TABLE replaced_tools_fts (id INTEGER PRIMARY KEY, block BLOB)")
        assert [trouble.kind for trouble in look(database)] == [Fault.ASIDE]
        assert "The space of search indexes that were replaced is free." in mend(database, now=T0)
        assert look(database) == ()

    async def test_rows_leave_an_index_that_does_not_hold_them_yet(self, database: Path) -> None:
        """Without care FTS5 counts them off, and refuses when it is at nothing."""
        change(database, STRUCTURE)
        mend(database, now=T0)
        change(
            database,
            "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')",
            "DELETE FROM messages WHERE id = 1",
            "UPDATE messages SET content = 'a lightship' WHERE id = 3",
        )
        mend(database, now=T0 + 1)
        with closing(connect(database)) as connection:
            assert is_exact(connection)
        assert await found(database, "lightship") == {"b"}
        assert await found(database, "harbour") == set()

    async def test_an_index_over_rows_that_does_not_agree_is_made_anew(self, database: Path) -> None:
        with closing(connect(database)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', 'IS NULL') WHERE name = 'messages_turn'"
            )
        change(database, "REINDEX messages_turn")
        with closing(connect(database)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, 'IS NULL', 'IS NOT NULL') WHERE name = 'messages_turn'"
            )
        assert [trouble.kind for trouble in look(database)] == [Fault.INDEXES]
        assert "The indexes over the rows were made anew." in mend(database, now=T0)
        assert look(database) == ()


class TestLiving:
    """What a gateway can do while the search index is damaged."""

    @pytest.mark.parametrize(
        "statement",
        [
            STRUCTURE,
            WORDS,
            DATA_GONE,
        ],
    )
    async def test_words_are_kept_read_and_found_and_deleted_after_the_repair(
        self, database: Path, statement: str
    ) -> None:
        change(database, statement)
        async with opened(database) as store:
            said = await tell(store, "e", "a buoy in the fog")
            assert texts(await store.transcript(said.conversation, OWNER)) == ["a buoy in the fog"]
            await store.search.discover(Query(text="buoy"), OWNER)
        mend(database, now=T0)
        assert await found(database, "buoy") == {"e"}
        async with opened(database) as store:
            await store.delete(said.conversation, OWNER, now=T0)
        assert await found(database, "buoy") == set()
        assert look(database) == ()

    async def test_a_row_that_cannot_be_deleted_can_be_after_the_repair(self, database: Path) -> None:
        change(database, STRUCTURE)
        with closing(connect(database)) as connection, pytest.raises(dbapi.DatabaseError):
            connection.execute("DELETE FROM messages WHERE id = 1")
        mend(database, now=T0)
        change(database, "DELETE FROM messages WHERE id = 1")
        with closing(connect(database)) as connection:
            assert is_exact(connection)

    async def test_a_deletion_that_the_damage_had_stopped_is_finished(self, database: Path) -> None:
        change(database, STRUCTURE, "INSERT INTO doomed SELECT id FROM conversations WHERE id LIKE '%_b'")
        assert "What was left of deleted conversations is gone." in mend(database, now=T0)
        assert await found(database, "lighthouse") == set()
        assert ask(database, "SELECT count(*) FROM conversations") == [(2,)]

    async def test_turns_go_on_while_the_index_is_made_anew(self, database: Path) -> None:
        async with opened(database) as store:
            for number in range(40):
                await tell(store, f"old{number}", *(f"pebble {number} {n}" for n in range(50)))
        change(database, DATA_GONE)
        async with opened(database) as store, asyncio.TaskGroup() as tasks:
            mending = tasks.create_task(asyncio.to_thread(mend, database, now=T0))
            talks = 0
            while not mending.done():
                await tell(store, f"new{talks}", f"seagull {talks}")
                await store.mend_index()
                talks += 1
        assert talks > 1
        assert look(database) == ()
        with closing(connect(database)) as connection:
            assert is_exact(connection)
            for word, times in (("seagull", talks), ("pebble", 2000)):
                question = f"SELECT count(*) FROM messages_fts WHERE messages_fts MATCH '{word}'"
                assert connection.execute(question).fetchone() == (times,)


class TestSaving:
    """Pages of the file itself are damaged."""

    @pytest.fixture
    async def broad(self, database: Path) -> Path:
        async with opened(database) as store:
            for number in range(30):
                session, lease = await begin(store, f"x{number}", title=f"title {number}")
                said = [user(f"stone{number}n{n} " + "sand " * 60) for n in range(10)]
                await write(store, lease, session, *said)
                await store.leases.release(lease)
        return database

    async def test_everything_but_the_lost_page_is_saved_and_the_original_kept(self, broad: Path) -> None:
        before = dict(ask(broad, "SELECT id, content FROM messages"))
        damaged = spoil(broad, "stone7n3 ")
        assert [trouble.kind for trouble in look(broad)] == [Fault.DAMAGED]
        done = mend(broad, now=T0)
        aside = broad.parent / "backups" / "damaged-20270115-080000"
        assert f"The damaged file is kept as it was: {aside}" in done
        assert (aside / "state.db").read_bytes() == damaged
        after = dict(ask(broad, "SELECT id, content FROM messages"))
        lost = {str(text).split()[0] for text in before.values()} - {str(text).split()[0] for text in after.values()}
        assert 0 < len(lost) <= PAGE // 300
        assert after.items() <= before.items()
        assert f"Rows that could not be read: about {len(before) - len(after)} messages." in done
        assert look(broad) == ()
        assert mend(broad, now=T0 + 1) == ()
        assert broad.stat().st_mode & 0o777 == 0o600
        assert ask(broad, "PRAGMA auto_vacuum") == [(2,)]
        assert await found(broad, "stone29n9") == {"9"}

    async def test_a_number_of_a_lost_row_is_not_given_again(self, broad: Path) -> None:
        ((last,),) = ask(broad, "SELECT max(id) FROM messages")
        spoil(broad, "stone29n9 ")
        mend(broad, now=T0)
        async with opened(broad) as store:
            session = await tell(store, "after", "the next one")
            (row,) = await store.transcript(session.conversation, OWNER)
        assert row.id == last + 1

    async def test_what_is_only_in_the_log_is_saved_too(self, broad: Path, tmp_path: Path) -> None:
        killed = tmp_path / "killed"
        killed.mkdir()
        async with opened(broad) as store:
            await tell(store, "e", "only in the log")
            for file in tmp_path.glob("state.db*"):
                shutil.copy(file, killed)
        spoil(killed / "state.db", "stone7n3 ")
        assert [trouble.kind for trouble in look(killed / "state.db")] == [Fault.DAMAGED]
        mend(killed / "state.db", now=T0)
        assert ("only in the log",) in ask(killed / "state.db", "SELECT content FROM messages")
        (aside,) = (killed / "backups").iterdir()
        assert {file.name for file in aside.iterdir()} >= {"state.db", "state.db-wal"}

    async def test_letters_that_are_none_cost_those_letters_only(self, database: Path) -> None:
        raw = database.read_bytes()
        database.write_bytes(raw.replace(b"a lighthouse", b"a l\xff\xfehthouse"))
        assert [trouble.kind for trouble in look(database)] == [Fault.DAMAGED]
        mend(database, now=T0)
        assert ("a l\ufffd\ufffdhthouse",) in ask(database, "SELECT content FROM messages")
        assert look(database) == ()

    async def test_a_session_only_loses_the_title_that_another_has(self, broad: Path) -> None:
        change(broad, "DROP INDEX sessions_title", "UPDATE sessions SET title = 'one' WHERE id LIKE '%_x1_'")
        spoil(broad, "stone7n3 ")
        mend(broad, now=T0)
        assert ask(broad, "SELECT count(*) FROM sessions WHERE id LIKE '%_x1_'") == [(10,)]
        assert ask(broad, "SELECT count(*) FROM sessions WHERE title = 'one'") == [(1,)]

    async def test_where_not_even_the_list_of_tables_can_be_read_nothing_is_replaced(self, database: Path) -> None:
        raw = bytearray(database.read_bytes())
        raw[100:PAGE] = bytes(PAGE - 100)
        database.write_bytes(raw)
        with pytest.raises(StoreUnavailable, match=r"malformed\. Restore a backup"):
            mend(database, now=T0)
        assert database.read_bytes() == bytes(raw)


# -- killed at any moment ---------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from hermes.sessions import backup, repair

moment, calls = int(sys.argv[1]), 0

def count(frame, event, what):
    global calls
    calls += event == "c_call"
    if calls == moment:
        os.kill(os.getpid(), signal.SIGKILL)

def work(database):
    {work}

sys.setprofile(count)
work(Path(sys.argv[2]))
sys.setprofile(None)
print(calls)
"""
"""Counts the calls that leave Python, so that each moment between two of them can be chosen."""
CREATE = "backup.create(database, database.parent / 'backups', now=0)"
RESTORE = "backup.restore(database.parent / 'then.db', database, database.parent / 'backups', now=0)"
MEND = "repair.mend(database, now=0)"
KILLS = 9


def run(work: str, moment: int, database: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", KILLED.format(work=work), str(moment), str(database)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={"PATH": os.environ["PATH"]},
    )


def fresh(database: Path, name: str) -> Path:
    """The same home once more."""
    home = database.parent / name
    home.mkdir()
    for file in database.parent.glob("*.db"):
        shutil.copy(file, home)
    return home / database.name


def each_kill(work: str, database: Path) -> list[Path]:
    """Homes in which the work was killed, each at another moment from its beginning to its end."""
    whole = run(work, -1, fresh(database, "whole"))
    assert whole.returncode == 0, whole.stderr
    total = int(whole.stdout)
    homes = []
    for number in range(KILLS):
        homes.append(fresh(database, f"kill{number}"))
        moment = total - number if number < KILLS // 3 else total * number // KILLS
        assert run(work, moment, homes[-1]).returncode == -signal.SIGKILL
    return homes


@pytest.mark.crash
class TestKills:
    async def test_a_killed_backup_looks_like_none_and_the_next_one_clears_up(self, database: Path) -> None:
        finished = 0
        for killed in each_kill(CREATE, database):
            folder = killed.parent / "backups"
            for kept in backup.listed(folder):
                assert backup.verify(kept.path).messages == 8
                finished += 1
            made = backup.create(killed, folder, now=T0)
            assert {file.suffix for file in folder.iterdir()} == {".db"}
            assert made.messages == 8
            assert look(killed) == ()
        assert finished < KILLS // 2

    async def test_a_killed_restore_leaves_the_old_store_or_the_new_one(self, database: Path) -> None:
        backup.create(database, database.parent, now=T0).path.rename(database.parent / "then.db")
        async with opened(database) as store:
            await tell(store, "e", "said afterwards")
        seen = set()
        for killed in each_kill(RESTORE, database):
            assert look(killed) == ()
            ((number,),) = ask(killed, "SELECT count(*) FROM messages")
            seen.add(number)
        assert seen == {8, 9}

    @pytest.mark.parametrize("statement", [WORDS, DATA_GONE])
    async def test_a_killed_repair_leaves_a_store_that_works_and_is_simply_run_again(
        self, database: Path, statement: str
    ) -> None:
        change(database, statement, "UPDATE conversations SET tip = 'nowhere' WHERE id LIKE '%_a'")
        for killed in each_kill(MEND, database):
            for kept in backup.listed(killed.parent / "backups"):
                assert ask(kept.path, "SELECT count(*) FROM messages") == [(8,)]
            async with opened(killed) as store:
                await tell(store, "e", "said afterwards")
            mend(killed, now=T0)
            assert look(killed) == ()
            with closing(connect(killed)) as connection:
                assert is_exact(connection)
            assert await found(killed, "lighthouse") == {"b"}
            assert await found(killed, "afterwards") == {"e"}

    async def test_a_killed_rescue_keeps_the_damaged_store(self, database: Path) -> None:
        async with opened(database) as store:
            await tell(store, "long", *(f"stone{number} " + "sand " * 200 for number in range(40)))
        spoil(database, "stone20 ")
        for killed in each_kill(MEND, database):
            mend(killed, now=T0)
            assert look(killed) == ()
            assert await found(killed, "stone1") == {"g"}
            assert {file.name for file in killed.parent.iterdir() if file.name.startswith(backup.DRAFT)} == set()
            assert list(killed.parent.glob("backups/damaged-*/state.db"))


# -- for a person at a terminal ---------------------------------------------------------------------------------------


class TestCommand:
    async def test_it_tells_what_it_finds_and_what_it_does(
        self, database: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        home = Home(database.parent)
        assert command.repair(home, check_only=False) == 0
        assert capsys.readouterr().out == f"Store {database} is sound.\n"
        change(database, "UPDATE sessions SET message_count = 99 WHERE id LIKE '%_a'")
        assert command.repair(home, check_only=True) == 1
        said = capsys.readouterr().out
        assert "✗ Sessions that count their messages wrongly: 1 (such as 20270115_080000_a)." in said
        assert "`hermes sessions repair` counts again." in said
        assert ask(database, "SELECT max(message_count) FROM sessions") == [(99,)]
        with only_gateway(home.lock):
            assert command.repair(home, check_only=False) == 0
        assert "✓ Messages of sessions were counted again: 1." in capsys.readouterr().out
        assert command.repair(home, check_only=True) == 0

    async def test_a_damaged_file_is_not_replaced_under_a_gateway(
        self, database: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        home = Home(database.parent)
        damaged = spoil(database, "lighthouse")
        with only_gateway(home.lock), pytest.raises(UserError, match="hermes gateway stop"):
            command.repair(home, check_only=False)
        assert database.read_bytes() == damaged
        assert command.repair(home, check_only=False) == 0
        assert "✓ The damaged file is kept as it was: " in capsys.readouterr().out

    def test_without_a_store_nothing_is_wrong(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.repair(Home(tmp_path), check_only=True) == 0
        assert capsys.readouterr().out == "No store yet; the first message makes it.\n"
        assert list(tmp_path.iterdir()) == []
