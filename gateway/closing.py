"""The last write of a turn, however it ended: kept words, outcomes and the duty to show them, in one transaction."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from hermes.errors import StoreError, StoreLocked, StoreUnavailable
from hermes.gateway.endings import Ending
from hermes.gateway.letters import Letter, notice, reply
from hermes.gateway.node import Node
from hermes.gateway.work import Work
from hermes.sessions.model import InboxRow, Lease, NewDelivery, Outcome, Session, Settlement, Step, TurnId

log = structlog.get_logger(__name__)

MEMORY_SECONDS = 600.0
"""How long finished words wait in memory for a store that another process has locked, or a full disk."""

STORE_PAUSE = 1.0
"""Seconds before a store in trouble is tried again."""


class Closing:
    """Ends turns, and events that get none. `ring` tells delivery that something is due."""

    def __init__(self, node: Node, ring: Callable[[], None]) -> None:
        self._node = node
        self._ring = ring

    async def end(self, work: Work, letters: Sequence[Letter], session: Session, ending: Ending) -> None:
        """Write the ending. Raises StoreError when the store stays in trouble, LeaseLost when it is not ours to end."""
        at = self._node.clock.now()
        step = Step(
            turn=work.turn,
            session=session.id,
            at=at,
            messages=ending.kept,
            usage=ending.usage,
            api_calls=1 if ending.kept else 0,
            settles=_settlements(letters, ending),
            deliveries=_deliveries(work, letters[0], session, ending, at),
            ends=ending.outcome.value,
        )
        await asyncio.shield(self._insist(work.lease, step))
        self._ring()
        self._count(work, letters, ending)

    async def taken_over(self, letters: Sequence[Letter]) -> None:
        """Somebody else has the conversation now: the turn writes nothing more and is not taken up again."""
        gone = Settlement(rows=tuple(one.row.id for one in letters), outcome=Outcome.ABANDONED, why="taken over")
        asked, at = letters[0], self._node.clock.now()
        text = self._node.texts.for_words(asked.inbound.text).say("turn.taken_over")
        told = reply(asked, text, key=f"taken:{asked.row.id}", at=at)
        await self._node.store.inbox.settle(gone, at=at, deliveries=[told])
        self._ring()

    async def set_aside(self, rows: Sequence[InboxRow], text: str, *, why: str) -> None:
        """Give rows that cannot be worked on their outcome, and say so where the first came from."""
        dead = Settlement(rows=tuple(row.id for row in rows), outcome=Outcome.DEAD, why=why)
        at = self._node.clock.now()
        notices = [notice(row, text, key=f"aside:{row.id}", at=at) for row in rows[:1]]
        try:
            await self._node.store.inbox.settle(dead, at=at, deliveries=notices)
        except StoreError as error:
            await self.wait_for_store(error)
        self._ring()

    async def wait_for_store(self, error: StoreError) -> None:
        """Before the store is tried again."""
        log.warning("turn.store", reason=str(error))
        await self._node.clock.sleep(STORE_PAUSE)

    async def _insist(self, lease: Lease, step: Step) -> None:
        """Finished words are kept in memory while the lock is held elsewhere or the disk is full, and tried again."""
        give_up = self._node.clock.monotonic() + MEMORY_SECONDS
        while True:
            try:
                await self._node.store.commit(lease, step)
            except (StoreLocked, StoreUnavailable) as error:
                if self._node.clock.monotonic() > give_up:
                    raise
                await self.wait_for_store(error)
            else:
                return

    def _count(self, work: Work, letters: Sequence[Letter], ending: Ending) -> None:
        metrics = self._node.metrics
        metrics.turns.labels(ending.outcome.value).inc()
        for settled in _settlements(letters, ending):
            metrics.inbound.labels(work.inbound.origin.platform, settled.outcome.value).inc(len(settled.rows))


def answer_key(turn: TurnId) -> str:
    """The key of the duty to show a turn's answer, from its first words on."""
    return f"{turn}:answer"


def _settlements(letters: Sequence[Letter], ending: Ending) -> tuple[Settlement, ...]:
    """The first letter is the question; what joined it on the way was merged into it."""
    asked, *joined = (letter.row.id for letter in letters)
    settled = Settlement(rows=(asked,), outcome=ending.outcome, why=ending.why)
    return (settled, Settlement(rows=tuple(joined), outcome=Outcome.MERGED)) if joined else (settled,)


def _deliveries(work: Work, asked: Letter, session: Session, ending: Ending, at: float) -> tuple[NewDelivery, ...]:
    if not ending.shown:
        return ()
    duty = reply(asked, ending.shown, key=answer_key(work.turn), at=at)
    usage = ending.usage
    return (
        replace(
            duty,
            session=session.id,
            turn=work.turn,
            input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        ),
    )
