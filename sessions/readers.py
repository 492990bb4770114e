"""Reading beside the writer: a few threads with a read-only connection each."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hermes.sessions import dbapi
from hermes.sessions.database import connect, unavailable
from hermes.sessions.dbapi import Connection

T = TypeVar("T")

THREADS = 3
"""Reads at once. WAL lets them run beside the writer; more threads only fight for the interpreter."""


class Readers:
    """A pool of read connections."""

    def __init__(self, path: Path, threads: int = THREADS) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hermes-reader")
        self._own = threading.local()
        self._all: list[Connection] = []

    async def run(self, work: Callable[[Connection], T]) -> T:
        """`work` on a read connection, in one hop and one snapshot. Raises what it raises, or StoreUnavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")
        except dbapi.Error as error:
            raise unavailable(self._path, error) from error

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = connect(self._path, read_only=True)
            self._all.append(connection)
        return connection

    async def close(self) -> None:
        """Let running reads end, then close every connection."""
        await asyncio.to_thread(self._pool.shutdown)
        for connection in self._all:
            connection.close()
