"""The one writer of a process: a thread, a connection, and a queue with two lanes.

Callers hand over operations: synchronous functions on the connection. Whatever has queued up is run in one hop
and one transaction (group commit), and the callers are told after the commit. An operation that raises undoes
the batch, which is then run again one by one, so a bad write fails its owner alone. Another process that holds
the write lock is waited for by time. Cancelling a caller withdraws an operation that has not begun; nothing can
come between BEGIN and COMMIT.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog

from hermes.errors import StoreError, StoreLocked, StoreUnavailable
from hermes.sessions import dbapi
from hermes.sessions.database import CONTENTION, ENVIRONMENT, WAL_CAP, cause, checkpoint, unavailable
from hermes.sessions.dbapi import Connection

T = TypeVar("T")
log = structlog.get_logger(__name__)

TRANSCRIPT_PATIENCE = 60.0
"""Seconds that a write of words waits for another process before its owner is told."""

QUEUE_BOUND = 10_000
"""Operations that may wait in memory; beyond it callers are refused rather than the memory filled."""

BATCH_BOUND = 256
"""Operations in one transaction, so that no commit takes long."""

IDLE_SECONDS = 5.0
"""Quiet time after which the log is moved into the database."""


class Lane(IntEnum):
    """Turns go before maintenance."""

    TURN = 0
    MAINTENANCE = 1


class Attached(Protocol):
    """Work that belongs to a transaction as a whole, such as feeding the search index once a batch."""

    def flush(self, connection: Connection) -> None:
        """Called before the commit."""
        ...

    def forget(self) -> None:
        """Called after a rollback."""
        ...


@dataclass(eq=False, slots=True)
class _Job:
    op: Callable[[Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"
    give_up_at: float
    result: Any = None
    error: Exception | None = field(default=None)

    def settle(self) -> None:
        """On the caller's loop: give the result, unless the caller has left."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Owns the write connection from `start` to `close`."""

    def __init__(self, path: Path, connect: Callable[[], Connection], attached: Attached) -> None:
        self._path = path
        self._connect = connect
        self._attached = attached
        self._lanes: tuple[deque[_Job], ...] = tuple(deque() for _ in Lane)
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hermes-writer", daemon=True)
        self._progress = time.monotonic()
        self._dirty = False
        self._log_cap = WAL_CAP
        self._rung = False

    async def start(self) -> None:
        """Open the connection (migrating the schema) and begin. Raises StoreUnavailable, SchemaTooNew."""
        self._connection = await asyncio.to_thread(self._connect)
        self._thread.start()

    async def submit(
        self, op: Callable[[Connection], T], *, lane: Lane = Lane.TURN, patience: float = TRANSCRIPT_PATIENCE
    ) -> T:
        """Run `op` in the next transaction and give its result once that is on disk.

        Raises what `op` raises; StoreLocked after `patience` seconds behind another process, or when too much
        waits already; StoreUnavailable when the file cannot be written.
        """
        loop = asyncio.get_running_loop()
        job = _Job(op, loop, loop.create_future(), time.monotonic() + patience)
        with self._wake:
            if self._closing:
                raise StoreUnavailable(f"{self._path}: the store is closed.")
            if sum(map(len, self._lanes)) >= QUEUE_BOUND:
                raise StoreLocked(f"{self._path}: {QUEUE_BOUND} writes are waiting already. Try again in a minute.")
            if not any(self._lanes):
                self._progress = time.monotonic()  # until now there was nothing to make progress with
            self._lanes[lane].append(job)
            if not self._rung:  # whoever else has something to write in this round of the loop joins the transaction
                self._rung = True
                loop.call_soon(self._ring)
        result: T = await job.future
        return result

    def _ring(self) -> None:
        with self._wake:
            self._rung = False
            self._wake.notify()

    def stuck_for(self) -> float:
        """Seconds since the thread last made progress while work was waiting; 0 when nothing waits.

        Waiting for another process's lock counts as progress: it asks again and again, and gives up in time.
        """
        with self._wake:
            return time.monotonic() - self._progress if any(self._lanes) else 0.0

    def empty_log(self) -> None:
        """At the next quiet moment move the log into the database whole: nothing of what was deleted stays in it."""
        with self._wake:
            self._log_cap = 0
            self._dirty = True
            self._wake.notify()

    async def close(self, seconds: float = 30.0) -> None:
        """Write what is queued, move the log into the database, and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, seconds)

    # -- on the writer's thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next_batch():
            self._write(batch)
            self._progress = time.monotonic()
        self._tidy()
        self._connection.close()

    def _next_batch(self) -> list[_Job]:
        """Wait for work and take one lane's share; an empty list means that the writer was closed."""
        while True:
            with self._wake:
                if not any(self._lanes) and not self._closing:
                    self._wake.wait(IDLE_SECONDS if self._dirty else None)
                self._progress = time.monotonic()
                batch = self._take()
                if batch or self._closing:
                    return batch
            self._tidy()

    def _take(self) -> list[_Job]:
        for lane in self._lanes:
            if lane:
                return [lane.popleft() for _ in range(min(len(lane), BATCH_BOUND))]
        return []

    def _write(self, batch: list[_Job]) -> None:
        live = [job for job in batch if not job.future.done()]
        if not self._attempt(live):
            for job in live:
                self._attempt([job])
        for loop in {job.loop for job in live}:
            _tell(loop, [job for job in live if job.loop is loop])

    def _attempt(self, jobs: list[_Job]) -> bool:
        """One transaction; when the file itself is the trouble, all of `jobs` fail with it."""
        try:
            return self._transact(jobs)
        except dbapi.Error as error:
            self._fail(jobs, unavailable(self._path, error))
            return True

    def _transact(self, jobs: list[_Job]) -> bool:
        """One transaction over `jobs`; False asks for them to be run again one by one, to see whose fault it was."""
        if not self._begin(jobs):
            return True
        try:
            for job in jobs:
                job.result = job.op(self._connection)
            self._attached.flush(self._connection)
            self._connection.execute("COMMIT")
        except dbapi.Error as error:
            self._rollback()
            if cause(error) in ENVIRONMENT:
                raise
            return self._blame(jobs, error)
        except Exception as error:  # an operation's own refusal (LeaseLost, TitleTaken …) belongs to its caller
            self._rollback()
            return self._blame(jobs, error)
        self._dirty = True
        return True

    @staticmethod
    def _blame(jobs: list[_Job], error: Exception) -> bool:
        if len(jobs) > 1:
            return False
        jobs[0].error = error
        return True

    def _begin(self, jobs: list[_Job]) -> bool:
        """Get the write lock, for as long as anybody is willing to wait. Jobs that are not fail and leave."""
        while jobs:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except dbapi.OperationalError as error:
                if cause(error) not in CONTENTION:
                    raise
                now = self._progress = time.monotonic()  # asking again is progress: the lock is somebody else's
                late = [job for job in jobs if job.give_up_at <= now or self._closing]
                self._fail(late, StoreLocked(f"{self._path}: another process has been writing for too long."))
                jobs[:] = [job for job in jobs if job not in late]
            else:
                return True
        return False

    def _rollback(self) -> None:
        self._attached.forget()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _fail(self, jobs: list[_Job], error: StoreError) -> None:
        for job in jobs:
            job.error = error
        for loop in {job.loop for job in jobs}:
            _tell(loop, [job for job in jobs if job.loop is loop])

    def _tidy(self) -> None:
        """Nobody waits: let the log flow back."""
        if not self._dirty:
            return
        self._dirty = False
        try:
            checkpoint(self._connection, self._log_cap)
            self._log_cap = WAL_CAP
        except dbapi.Error as error:
            log.warning("store.checkpoint_failed", path=str(self._path), reason=str(error))


def _tell(loop: asyncio.AbstractEventLoop, jobs: list[_Job]) -> None:
    """Settle all futures in one hop. A loop that is gone has nobody left to tell."""

    def settle() -> None:
        for job in jobs:
            job.settle()

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        log.warning("store.caller_gone", writes=len(jobs))
