"""The store as commands open it: to read only, or to change something beside a running gateway."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions import dbapi
from hermes.sessions.database import open_readable, unavailable
from hermes.sessions.dbapi import Connection
from hermes.sessions.store import SqliteStore, open_store

NOTHING_YET = "No conversations yet. Start one with: hermes chat"


@asynccontextmanager
async def writable(home: Home) -> AsyncIterator[SqliteStore]:
    """The whole store, made and migrated as needed. Raises StoreUnavailable, SchemaTooNew."""
    store = await open_store(home.database)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def readable(home: Home) -> Iterator[Connection]:
    """A connection that only reads. Raises UserError without a store, StoreUnavailable, SchemaTooNew."""
    if not home.database.exists():
        raise UserError(NOTHING_YET)
    try:
        with closing(open_readable(home.database)) as connection:
            yield connection
    except dbapi.Error as error:
        raise unavailable(home.database, error) from error
