"""The SQLite store keeps every promise of the ports, and some that only a file can make."""

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from contracts.store import StoreContract
from contracts.store.facts import HOUR, T0, tell
from hermes.errors import SessionNotFound
from hermes.sessions import removal
from hermes.sessions.database import connect
from hermes.sessions.dbapi import Connection
from hermes.sessions.filters import Filter
from hermes.sessions.model import OWNER, Page, Query
from hermes.sessions.ports import Store
from hermes.sessions.store import open_store


class TestSqliteStore(StoreContract):
    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = await open_store(tmp_path / "state.db")
        yield store
        await store.close()

    async def test_a_deletion_that_was_stopped_half_way_is_seen_by_nobody_and_finished_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(removal, "CHUNK", 3)
        store = await open_store(tmp_path / "big.db")
        session = await tell(store, "a", *(f"word {number}" for number in range(10)), title="big")
        await tell(store, "b", "word")
        rows = await store.transcript(session.conversation, OWNER)

        def begin_only(connection: Connection) -> bool:
            removal.doom(connection, session.conversation, OWNER, T0 + HOUR, None)
            return removal.clear(connection)

        await store.writer.submit(begin_only)
        with pytest.raises(SessionNotFound):
            await store.get(session.id, OWNER)
        assert [one.id for one in await store.list(Page(), OWNER)] == ["20270115_080000_b"]
        assert [one.conversation for one in await store.select(Filter(), OWNER)] == ["20270115_080000_b"]
        found = await store.search.discover(Query(text="word", limit=10), OWNER)
        assert [hit.session.id for hit in found.hits] == ["20270115_080000_b"]
        with pytest.raises(SessionNotFound):
            await store.search.scroll(session.id, rows[-1].id, 5, OWNER)
        await store.close()
        store = await open_store(tmp_path / "big.db")
        await store.upkeep.clear()
        assert (await store.counts()).messages == 1
        await store.close()
        with closing(connect(tmp_path / "big.db", read_only=True)) as connection:
            for table in ("doomed", "messages", "sessions", "conversations"):
                (left,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                assert left == (0 if table == "doomed" else 1)
