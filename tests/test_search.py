"""Searching a real store file: what is found, what is shown of it, and what happens when the index cannot help."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import (
    T0,
    assistant,
    begin,
    birth,
    random_histories,
    summary,
    tell,
    texts,
    tool,
    user,
    write,
)
from hermes.sessions import dbapi
from hermes.sessions.database import connect
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import OWNER, Found, Order, Query, Role, Room, Scope, Session, Split
from hermes.sessions.search import discover
from hermes.sessions.store import SqliteStore, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest_asyncio.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(path)
    yield store
    await store.close()


@pytest.fixture
def reader(path: Path, store: SqliteStore) -> Iterator[Connection]:
    """A read connection beside the store, for tests that bring their own clock."""
    with closing(connect(path, read_only=True)) as connection:
        yield connection


def hurried(seconds: float) -> Callable[[], float]:
    """A monotonic clock on which every look costs `seconds`."""
    looks = count()
    return lambda: next(looks) * seconds


async def find(store: SqliteStore, text: str, scope: Scope = OWNER, **facts: Any) -> Found:
    return await store.search.discover(Query(text=text, **facts), scope)


def sessions(found: Found) -> list[str]:
    return [hit.session.id for hit in found.hits]


async def damage(path: Path, *statements: str) -> None:
    """Change the file behind the store's back, as a bad disk or another program would."""

    def work() -> None:
        with closing(dbapi.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    await asyncio.to_thread(work)


QUOTED = [
    *("C++", "it's", "gateway/run.py", "user@host", "50%", "#42", "AND", "NEAR(", "(x", 'un "quoted', "-x", "^a"),
    *("悬空引用", "itgc", "用", "->", "👩‍🚀", "teway/ru", "İstanbul", "ﬁne"),
]


@pytest.mark.parametrize("query", QUOTED)
async def test_what_a_row_holds_is_found_as_it_is_written(store: SqliteStore, query: str) -> None:
    told = await tell(store, "a", "nothing here", f"重跑gen-itgc后50条悬空引用 and then {query} done")
    await tell(store, "b", "nothing here either")
    found = await find(store, query)
    assert sessions(found) == [told.id]
    assert ">>>" in found.hits[0].snippet


async def test_the_best_match_comes_first(store: SqliteStore) -> None:
    passing = await tell(store, "a", "a lantern among a great many other words about the weather of last week")
    about = await tell(store, "b", "lantern, lantern!")
    assert sessions(await find(store, "lantern")) == [about.id, passing.id]


async def test_machines_do_not_crowd_out_people(store: SqliteStore) -> None:
    for n in range(5):
        await tell(store, f"cron{n}", "lantern", source="cron")
    person = await tell(store, "a", "the lantern is mentioned here at some length, and much later")
    found = await find(store, "lantern", limit=3)
    assert sessions(found)[0] == person.id
    assert [hit.session.source for hit in found.hits] == ["telegram", "cron", "cron"]


async def test_a_hit_is_described_by_the_segment_that_matches(store: SqliteStore) -> None:
    session, lease = await begin(store, "a", title="the beginning")
    await write(store, lease, session, user("hello"))
    split = Split(child=birth("b").id, head=(), summary=summary("in short"), tail=(), at=T0 + 60)
    child = await store.split(lease, session.id, split)
    await write(store, lease, child, user("lantern"), at=T0 + 60)
    (hit,) = (await find(store, "lantern")).hits
    assert (hit.session.id, hit.session.started_at) == (child.id, T0 + 60)
    assert texts(hit.window.messages) == ["hello", "lantern"]


async def test_bookends_show_only_what_the_window_does_not(store: SqliteStore) -> None:
    session, lease = await begin(store, "a")
    said = [f"word{n}" for n in range(9)]
    said[4] = "lantern"
    await write(store, lease, session, *map(user, said))
    (hit,) = (await find(store, "lantern", window=2, bookends=3)).hits
    assert texts(hit.bookend_start) == said[:2]
    assert texts(hit.window.messages) == said[2:7]
    assert texts(hit.bookend_end) == said[7:]


async def test_the_surroundings_of_a_hit_are_talk(store: SqliteStore) -> None:
    session, lease = await begin(store, "a")
    await write(store, lease, session, user("look"), assistant(""), tool("noise"), assistant("lantern"), tool("more"))
    (hit,) = (await find(store, "lantern")).hits
    assert texts(hit.window.messages) == ["look", "lantern"]
    assert (hit.window.before, hit.window.after) == (1, 0)


async def test_a_hit_in_tool_output_stands_among_the_talk_around_it(store: SqliteStore) -> None:
    session, lease = await begin(store, "a")
    rows = await write(store, lease, session, user("look"), tool("noise"), tool("lantern"), assistant("seen"))
    (hit,) = (await find(store, "lantern", roles=frozenset(Role))).hits
    assert hit.window.anchor == rows[2].id
    assert texts(hit.window.messages) == ["look", "lantern", "seen"]


async def test_talk_and_tool_output_are_ranked_together(store: SqliteStore) -> None:
    session, lease = await begin(store, "a")
    await write(store, lease, session, user("look"), tool("lantern"))
    talk = await tell(store, "b", "lantern")
    for order, expected in ((Order.NEWEST, [talk.id, session.id]), (Order.OLDEST, [session.id, talk.id])):
        assert sessions(await find(store, "lantern", roles=frozenset(Role), order=order)) == expected


async def test_scrolling_shows_tool_output_but_nothing_undone(store: SqliteStore) -> None:
    session, lease = await begin(store, "a")
    said = (user("one"), assistant(""), tool("two"), assistant("three"), user("four"))
    rows = await write(store, lease, session, *said)
    await store.mark_undone(lease, session.id, rows[4].id, by=rows[4].id + 1)
    window = await store.search.scroll(session.id, rows[2].id, 5, OWNER)
    assert [row.id for row in window.messages] == [row.id for row in rows[:4]]


people = st.sampled_from([None, "u1", "u2"])
chats = st.sampled_from([None, "7", "8"])
rooms = st.builds(
    Room, st.sampled_from(["telegram", "discord"]), st.sampled_from(["7", "8"]), st.sampled_from([None, "t"])
)
scopes = st.builds(
    Scope, source=st.sampled_from([None, "telegram", "discord"]), user_id=people, rooms=st.frozensets(rooms, max_size=3)
)


@pytest_asyncio.fixture
async def everybody(store: SqliteStore) -> tuple[Session, ...]:
    """A conversation for every kind of place, all with the same word."""
    places: list[dict[str, Any]] = [
        {"source": source, "user_id": person, "chat_id": chat, "thread_id": thread}
        for source in ("telegram", "discord")
        for person in (None, "u1", "u2")
        for chat in ("7", "8")
        for thread in (None, "t")
    ]
    return tuple([await tell(store, f"p{n}", "lantern", **place) for n, place in enumerate(places)])


@random_histories
@given(scope=scopes)
async def test_a_reader_finds_exactly_what_the_rule_allows(
    store: SqliteStore, everybody: tuple[Session, ...], scope: Scope
) -> None:
    allowed = {session.id for session in everybody if scope.allows(session)}
    for word in ("lantern", "antern"):
        assert set(sessions(await find(store, word, scope, limit=100))) == allowed


DAMAGES = {
    "the tables are gone": ("DROP TABLE messages_fts", "DROP TABLE tools_fts"),
    "the index is overwritten": ("UPDATE messages_fts_data SET block = x'0102030405'",),
    "the index is empty": ("DELETE FROM messages_fts_data",),
}


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_index_is_replaced_by_a_scan(
    store: SqliteStore, path: Path, statements: tuple[str, ...]
) -> None:
    told = await tell(store, "a", "a lantern by the door")
    await damage(path, *statements)
    found = await find(store, "lantern")
    assert sessions(found) == [told.id]
    assert found.hits[0].snippet == "a >>>lantern<<< by the door"


async def test_a_scan_that_runs_out_of_time_says_that_it_is_partial(store: SqliteStore, reader: Connection) -> None:
    await tell(store, "a", *(f"word{n}" for n in range(50)))
    query = Query(text="antern")
    assert discover(reader, query, OWNER, monotonic=hurried(0.01)) == Found(hits=(), partial=True)
    assert discover(reader, query, OWNER, monotonic=hurried(0.001)) == Found(hits=())


async def test_a_scan_reads_the_newest_first(store: SqliteStore, reader: Connection) -> None:
    await tell(store, "old", "the lanterns", *(f"word{n}" for n in range(50)))
    new = await tell(store, "new", "more lanterns")
    found = discover(reader, Query(text="antern"), OWNER, monotonic=hurried(0.01))
    assert (sessions(found), found.partial) == ([new.id], True)


async def test_words_too_common_to_rank_bring_the_newest(store: SqliteStore, reader: Connection) -> None:
    """On this clock ranking a thousand rows takes too long, while the first few in order of time do not."""
    await tell(store, "best", "lantern")
    for n in range(10):
        await tell(store, f"s{n}", *["a lantern and a number of other words"] * 100)
    assert sessions(discover(reader, Query(text="lantern", limit=1), OWNER)) == [birth("best").id]
    found = discover(reader, Query(text="lantern", limit=2), OWNER, monotonic=hurried(0.04))
    assert sessions(found) == [birth("s9").id, birth("s8").id]
    assert not found.partial


async def test_a_search_leaves_the_connection_without_a_time_limit(store: SqliteStore, reader: Connection) -> None:
    await tell(store, "a", *(f"word{n}" for n in range(50)))
    discover(reader, Query(text="antern"), OWNER, monotonic=hurried(1.0))
    rows = reader.execute("WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9999) SELECT * FROM n")
    assert len(rows.fetchall()) == 9999
