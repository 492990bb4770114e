"""What is done when nobody asks."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from contracts.store.facts import T0, arrival, birth, key_of
from fakes import VirtualClock, settle
from hermes.gateway.housekeeping import KEEP_SECONDS, ROUND_SECONDS, Housekeeper
from hermes.gateway.neighbours import Neighbours, signed_in
from hermes.sessions.model import Outcome, Settlement
from hermes.sessions.store import SqliteStore, open_store


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(tmp_path / "state.db")
    yield store
    await store.close()


def keeper_of(store: SqliteStore, clock: VirtualClock, mirror: Path | None = None) -> Housekeeper:
    neighbours = Neighbours(store, Path("/nowhere"), me="gateway-me")
    return Housekeeper(store, clock, neighbours=neighbours, wake=settle, mirror=mirror)


async def test_the_mirror_shows_where_each_key_leads(store: SqliteStore, tmp_path: Path) -> None:
    mirror = tmp_path / "sessions" / "sessions.json"
    session = await store.open(key_of("a"), birth("a"))
    await keeper_of(store, VirtualClock(), mirror).round()
    facts = json.loads(mirror.read_text())
    assert facts[key_of("a")]["session_id"] == session.id
    assert "never reads it" in facts["_README"]
    assert stat.S_IMODE(mirror.stat().st_mode) == 0o600


async def test_an_unchanged_index_is_not_written_again(store: SqliteStore, tmp_path: Path) -> None:
    mirror = tmp_path / "sessions" / "sessions.json"
    keeper = keeper_of(store, VirtualClock(), mirror)
    await store.open(key_of("a"), birth("a"))
    await keeper.round()
    mirror.unlink()
    await keeper.round()
    assert not mirror.exists()
    await store.open(key_of("b"), birth("b"))
    await keeper.round()
    assert mirror.exists()


async def test_settled_events_go_after_eight_days_and_stay_in_the_books(store: SqliteStore) -> None:
    old = (await store.inbox.claim(arrival("m:1"))).row
    open_one = (await store.inbox.claim(arrival("m:2"))).row
    await store.inbox.settle(Settlement(rows=(old.id,), outcome=Outcome.ANSWERED), at=T0)
    await keeper_of(store, VirtualClock(T0 + KEEP_SECONDS + 1)).round()
    assert await store.inbox.find("telegram", "7", "m:1") is None
    assert await store.inbox.find("telegram", "7", "m:2") == open_one
    assert (await store.counts()).inbound == {"received": 2, "open": 1, "answered": 1}


async def test_a_disk_in_trouble_is_left_for_the_next_round(store: SqliteStore, tmp_path: Path) -> None:
    clock = VirtualClock()
    in_the_way = tmp_path / "sessions"
    in_the_way.write_text("a file where the folder should be")
    await store.open(key_of("a"), birth("a"))
    keeper = keeper_of(store, clock, in_the_way / "sessions.json")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(keeper.run())
        while not clock.slept:
            await asyncio.sleep(0.001)
        in_the_way.unlink()
        await clock.advance(ROUND_SECONDS)
        while len(clock.slept) < 2:
            await asyncio.sleep(0.001)
        running.cancel()
    await settle()
    assert (in_the_way / "sessions.json").exists()


async def test_what_the_dead_left_open_is_ended_and_the_living_are_left_alone(
    store: SqliteStore, tmp_path: Path
) -> None:
    nodes = ("gateway-me", "gateway-before", "terminal-dead", "terminal-open")
    rows = {node: (await store.inbox.claim(arrival(f"m:{node}", node=node))).row for node in nodes}
    neighbours = Neighbours(store, tmp_path, me="gateway-me")
    (tmp_path / "terminal-dead").touch()
    with signed_in(tmp_path, "terminal-open"):
        await neighbours.bury(T0)
        found = {node: await store.inbox.find("telegram", "7", row.event_id) for node, row in rows.items()}
        ended = {node for node, row in found.items() if row is not None and row.outcome is Outcome.ABANDONED}
        assert ended == {"gateway-before", "terminal-dead"}
    await neighbours.bury(T0)
    assert (await store.counts()).inbound["abandoned"] == 3
    assert list(tmp_path.glob("terminal-*")) == []
