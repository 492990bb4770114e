"""The one writer: what groups, what fails alone, what waits, what is withdrawn."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from hermes.errors import StoreError, StoreLocked, StoreUnavailable
from hermes.sessions.database import connect, integrity, open_writable
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import Indexer
from hermes.sessions.writer import Lane, Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest_asyncio.fixture
async def writer(path: Path) -> AsyncIterator[Writer]:
    writer = Writer(path, lambda: open_writable(path), Indexer())
    await writer.start()
    yield writer
    await writer.close()


def note(name: str) -> Callable[[Connection], None]:
    def op(connection: Connection) -> None:
        connection.execute("INSERT INTO jobs (name) VALUES (?)", (name,))

    return op


class Held:
    """An operation that the writer's thread hangs in until it is let go."""

    def __init__(self) -> None:
        self._entered, self._let_go = threading.Event(), threading.Event()

    def __call__(self, _: Connection) -> None:
        self._entered.set()
        self._let_go.wait(20)

    async def entered(self) -> None:
        """Wait until the thread hangs."""
        await asyncio.to_thread(self._entered.wait, 20)

    def let_go(self) -> None:
        """The thread goes on."""
        self._let_go.set()


def names(path: Path) -> list[str]:
    with closing(connect(path, read_only=True)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM jobs ORDER BY name")]


async def test_what_is_awaited_is_on_disk(writer: Writer, path: Path) -> None:
    await writer.submit(note("a"))
    assert names(path) == ["a"]


async def test_what_queues_up_is_committed_together(writer: Writer, path: Path) -> None:
    held = Held()

    def changes(connection: Connection) -> int:
        return int(connection.execute("PRAGMA data_version").fetchone()[0])

    with closing(connect(path, read_only=True)) as watcher:
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.submit(held))
            await held.entered()
            for number in range(50):
                group.create_task(writer.submit(note(f"{number:02}")))
            await asyncio.sleep(0)
            before = changes(watcher)
            held.let_go()
        assert changes(watcher) == before + 1
    assert len(names(path)) == 50


async def test_a_bad_write_fails_its_owner_alone(writer: Writer, path: Path) -> None:
    await writer.submit(note("taken"))

    def refuse(connection: Connection) -> None:
        note("half")(connection)
        raise StoreError("no")

    results = await asyncio.gather(
        writer.submit(note("a")),
        writer.submit(refuse),
        writer.submit(note("taken")),
        writer.submit(note("b")),
        return_exceptions=True,
    )
    assert [type(result).__name__ for result in results] == ["NoneType", "StoreError", "IntegrityError", "NoneType"]
    assert names(path) == ["a", "b", "taken"]


async def test_turns_go_before_maintenance(writer: Writer) -> None:
    order: list[str] = []
    held = Held()
    async with asyncio.TaskGroup() as group:
        group.create_task(writer.submit(held))
        await held.entered()
        group.create_task(writer.submit(lambda _: order.append("tidy"), lane=Lane.MAINTENANCE))
        group.create_task(writer.submit(lambda _: order.append("turn")))
        await asyncio.sleep(0)
        held.let_go()
    assert order == ["turn", "tidy"]


async def test_a_write_that_has_not_begun_can_be_withdrawn(writer: Writer, path: Path) -> None:
    held = Held()
    async with asyncio.TaskGroup() as group:
        group.create_task(writer.submit(held))
        await held.entered()
        withdrawn = group.create_task(writer.submit(note("withdrawn")))
        await asyncio.sleep(0)
        withdrawn.cancel()
        await asyncio.sleep(0)
        held.let_go()
    await writer.submit(note("after"))
    assert names(path) == ["after"]


async def test_another_process_with_the_lock_is_waited_for(writer: Writer, path: Path) -> None:
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.gather(writer.submit(note("patient")))
        with pytest.raises(StoreLocked, match="another process"):
            await writer.submit(note("hasty"), patience=0.1)
        other.execute("COMMIT")
        await waiting
    assert names(path) == ["patient"]


async def test_a_full_disk_is_said_and_loses_nothing_that_was_stored(writer: Writer, path: Path) -> None:
    await writer.submit(note("before"))

    def tighten(connection: Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    def loosen(connection: Connection) -> None:
        connection.execute("PRAGMA max_page_count = 1000000")

    await writer.submit(tighten)
    with pytest.raises(StoreUnavailable, match="full"):
        await writer.submit(lambda connection: [note(f"{n}" * 3000)(connection) for n in range(10)])
    await writer.submit(loosen)
    await writer.submit(note("later"))
    assert names(path) == ["before", "later"]
    assert integrity(path) == []


async def test_closing_writes_what_waits_and_refuses_what_comes_later(path: Path) -> None:
    writer = Writer(path, lambda: open_writable(path), Indexer())
    await writer.start()
    last = asyncio.gather(writer.submit(note("last")))
    await asyncio.sleep(0)
    await writer.close()
    await last
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.submit(note("late"))
    assert names(path) == ["last"]


async def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    for number in range(100):
        path = tmp_path / f"{number}.db"
        writer = Writer(path, lambda path=path: open_writable(path), Indexer())  # type: ignore[misc]
        await writer.start()
        await writer.submit(note("a"))
        await writer.close()
    assert [thread for thread in threading.enumerate() if thread.name == "hermes-writer"] == []


async def test_a_thread_that_hangs_is_stuck_and_one_that_waits_for_a_lock_is_not(writer: Writer, path: Path) -> None:
    held = Held()
    async with asyncio.TaskGroup() as group:
        group.create_task(writer.submit(held))
        await held.entered()
        group.create_task(writer.submit(note("behind")))
        await asyncio.to_thread(threading.Event().wait, 0.6)
        assert writer.stuck_for() > 0.5
        held.let_go()
    with closing(connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.submit(note("waits")))
            group.create_task(writer.submit(note("waits too")))
            await asyncio.to_thread(threading.Event().wait, 1.2)
            assert writer.stuck_for() < 0.5
            other.execute("COMMIT")
    assert writer.stuck_for() == 0.0


async def test_a_quiet_time_is_not_held_against_the_next_write(writer: Writer) -> None:
    await asyncio.to_thread(threading.Event().wait, 0.6)
    async with asyncio.TaskGroup() as group:
        group.create_task(writer.submit(note("first for a while")))
        await asyncio.sleep(0)
        assert writer.stuck_for() < 0.5
