"""How long conversations are kept, and what people may ask about themselves."""

from pathlib import Path

import pytest

from contracts.store.facts import HOUR, T0, take, tell
from fakes import VirtualClock
from hermes.gateway.config import Backups, Sessions
from hermes.gateway.copies import Copies
from hermes.gateway.retention import Retention
from hermes.home import Home
from hermes.sessions.backup import verify
from hermes.sessions.filters import Filter
from hermes.sessions.memory import MemoryStore
from hermes.sessions.model import OWNER, Order, Query
from hermes.sessions.ports import Store
from hermes.sessions.store import open_store
from worlds.hand import HandModel
from worlds.house import House, house
from worlds.shell import Shell

DAY = 24 * HOUR


async def ended(store: Store, name: str, *, days_ago: float, **facts: str) -> None:
    at = T0 - days_ago * DAY
    session = await tell(store, name, at=at, **facts)
    await store.end(session.id, reason="done", at=at)


async def left(store: Store) -> str:
    return "".join(sorted(one.conversation[-1] for one in await store.select(Filter(), OWNER)))


class TestRetention:
    async def test_nothing_goes_unless_it_is_wanted(self) -> None:
        store, clock = MemoryStore(), VirtualClock(T0)
        await ended(store, "a", days_ago=1000)
        await Retention(store, clock).keep(Sessions())
        assert await left(store) == "a"

    async def test_what_ended_long_ago_goes_and_nothing_else(self) -> None:
        store, clock = MemoryStore(), VirtualClock(T0)
        await ended(store, "a", days_ago=91)
        await ended(store, "b", days_ago=89)
        await tell(store, "c", at=T0 - 1000 * DAY)
        await ended(store, "d", days_ago=1000)
        kept = (await store.resolve("20270115_080000_d", OWNER)).conversation
        await store.archive(kept, OWNER, archived=True)
        await ended(store, "e", days_ago=200)
        await take(store, (await store.resolve("20270115_080000_e", OWNER)).conversation, now=T0)
        await Retention(store, clock).keep(Sessions(auto_prune=True))
        assert await left(store) == "bcde", "open, archived and busy ones stay"

    async def test_each_source_has_its_own_time(self) -> None:
        store, clock = MemoryStore(), VirtualClock(T0)
        await ended(store, "a", days_ago=10, source="cron")
        await ended(store, "b", days_ago=10, source="telegram")
        await ended(store, "c", days_ago=400, source="cli")
        rules = Sessions(auto_prune=True, retention_days_by_source={"cron": 7, "cli": 500})
        await Retention(store, clock).keep(rules)
        assert await left(store) == "bc"

    async def test_it_is_done_once_an_interval_by_whoever_comes_first(self, tmp_path: Path) -> None:
        clock, rules = VirtualClock(T0), Sessions(auto_prune=True, min_interval_hours=24)
        one, other = await open_store(tmp_path / "state.db"), await open_store(tmp_path / "state.db")
        await Retention(one, clock).keep(rules)
        await ended(one, "a", days_ago=100)
        await Retention(other, clock).keep(rules)
        assert await left(one) == "a"
        await clock.advance(DAY)
        await Retention(other, clock).keep(rules)
        assert await left(one) == ""
        await one.close()
        await other.close()

    async def test_idle_conversations_are_closed_so_that_retention_can_apply(self) -> None:
        store, clock = MemoryStore(), VirtualClock(T0)
        await tell(store, "a", at=T0 - 100 * DAY)
        await tell(store, "b", at=T0 - 2 * DAY)
        await Retention(store, clock).keep(Sessions(auto_prune=True, close_idle_after_days=30))
        assert await left(store) == "b"
        assert (await store.resolve("20270115_080000_b", OWNER)).ended_at is None

    async def test_the_file_gets_smaller(self, tmp_path: Path) -> None:
        store = await open_store(tmp_path / "state.db")
        for name in "abc":
            await ended(store, name, days_ago=100)
            session = await tell(store, f"{name}2", *("long words " * 50 for _ in range(300)), at=T0 - 100 * DAY)
            await store.end(session.id, reason="done", at=T0 - 100 * DAY)
        await store.close()
        before = (tmp_path / "state.db").stat().st_size
        store = await open_store(tmp_path / "state.db")
        await Retention(store, VirtualClock(T0)).keep(Sessions(auto_prune=True))
        await store.close()
        assert (tmp_path / "state.db").stat().st_size < before / 2


class TestAboutMe:
    async def talk(self, h: House, model: HandModel, text: str, **facts: str) -> None:
        await h.say(text, **facts)
        (await model.question()).answer("ok")
        await h.quiet()

    async def told(self, h: House, text: str, **facts: str) -> str:
        before = len(h.room.texts())
        await h.say(text, **facts)
        return (await h.room.shows(before + 1))[-1]

    async def test_a_person_is_forgotten_after_saying_so_twice(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await self.talk(h, model, "my secret", chat="c1", user="u1")
            await self.talk(h, model, "their secret", chat="c2", user="u2")
            memory = tmp_path / "memory" / "people" / "loopback%3Auser%3Au1"
            memory.mkdir(parents=True)
            (memory / "MEMORY.md").write_text("- likes secrets\n")
            asked = await self.told(h, "/forget me", chat="c1", user="u1")
            assert "/forget me yes" in asked
            assert (await h.session("c1")).message_count == 2
            assert "Erased: 1 conversations" in await self.told(h, "/forget me yes", chat="c1", user="u1")
            found = await h.store.search.discover(Query(text="secret", limit=9, order=Order.NEWEST), OWNER)
            assert [hit.session.chat_id for hit in found.hits] == ["c2"]
            assert not memory.exists()
            await self.talk(h, model, "hello again", chat="c1", user="u1")
            assert await h.transcript("c1") == ["user: hello again", "assistant: ok"]

    async def test_nothing_of_them_can_be_read_in_the_file(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            for number in range(6):
                await self.talk(h, model, f"ZEBRAWORD{number} " + "x" * 900, chat="c1", user="u1")
                await self.talk(h, model, f"other {number} " + "y" * 700, chat="c2", user="u2")
                await self.talk(h, model, f"ZEBRAROOM{number}", chat="g1", user="u1", kind="group")
            await self.told(h, "/export me", chat="c1", user="u1")
            assert "Erased: 2 conversations" in await self.told(h, "/forget me yes", chat="c1", user="u1")
            await h.quiet()
        assert not list((tmp_path / "session-exports").iterdir())
        held = [one.name for one in tmp_path.glob("state.db*") if b"ZEBRA" in one.read_bytes()]
        assert held == []

    @pytest.mark.parametrize("command", ["/forget", "/forget u2", "/forget me please", "/export", "/export all"])
    async def test_it_is_about_oneself_alone(self, tmp_path: Path, command: str) -> None:
        async with house(tmp_path) as h:
            assert "about yourself alone" in await self.told(h, command, user="u1")
            assert "You are the owner" in await self.told(h, command, user="owner")

    async def test_a_person_gets_a_page_of_their_own_conversations(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await self.talk(h, model, "my words", chat="c1", user="u1")
            await self.talk(h, model, "their words", chat="c2", user="u2")
            (tmp_path / "state.db").stat()
            said = await self.told(h, "/export me", chat="c1", user="u1")
            (page,) = (tmp_path / "session-exports").iterdir()
            assert page.name in said
            text = page.read_text()
            assert "my words" in text
            assert "their words" not in text
            assert page.stat().st_mode & 0o777 == 0o600


def test_the_owner_forgets_somebody_at_the_machine(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.hermes("chat", "-q", "a very special word")
    (shell.home.root / "backups").mkdir()
    (shell.home.root / "backups" / "state-20260101-000000.db").write_text("x")
    refused = shell.hermes("forget", "cli", "owner")
    assert refused.returncode == 1
    done = shell.hermes("forget", "cli", "owner", "--yes")
    assert "Erased 1 conversation " in done.stdout
    assert "Backups still hold them" in done.stdout
    assert "state-20260101-000000.db" in done.stdout
    traces = [one.name for one in shell.home.root.glob("state.db*") if b"very special word" in one.read_bytes()]
    assert traces == [], "deleted pages are overwritten"


class TestCopies:
    async def test_copies_are_made_at_intervals_and_the_oldest_go(self, tmp_path: Path) -> None:
        home, clock = Home(tmp_path), VirtualClock(T0)
        store = await open_store(home.database)
        await tell(store, "a", "words to find")
        copies = Copies(home, store, clock)
        await copies.keep(Backups())
        assert not home.backups.exists(), "nobody asked for any"
        rules = Backups(every_hours=6, keep=2)
        for _ in range(4):
            await copies.keep(rules)
            await copies.keep(rules)
            await clock.advance(6 * HOUR)
        names = sorted(one.name for one in home.backups.iterdir())
        assert names == ["state-20270115-200000.db", "state-20270116-020000.db"]
        assert verify(home.backups / names[-1]).messages == 1
        await store.close()
