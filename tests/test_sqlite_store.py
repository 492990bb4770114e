"""The SQLite store keeps every promise of the ports, and some that only a file can make."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from contracts.store import StoreContract
from hermes.sessions.ports import Store
from hermes.sessions.store import open_store


class TestSqliteStore(StoreContract):
    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = await open_store(tmp_path / "state.db")
        yield store
        await store.close()
