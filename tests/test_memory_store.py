"""The in-memory twin keeps every promise of the ports."""

from collections.abc import AsyncIterator

import pytest_asyncio

from contracts.store import StoreContract
from hermes.sessions.memory import MemoryStore
from hermes.sessions.ports import Store


class TestMemoryStore(StoreContract):
    @pytest_asyncio.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MemoryStore()
        yield store
        await store.close()
