"""Stop 5 of the line: take up what waits for a key, think about it, and end it in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import structlog

from hermes import ids
from hermes.errors import (
    AmbiguousSession,
    LeaseBusy,
    LeaseLost,
    ModelError,
    SessionNotFound,
    StoreError,
    TakenBack,
    TurnLimit,
)
from hermes.gateway import endings
from hermes.gateway.closing import Closing
from hermes.gateway.conversations import Conversations
from hermes.gateway.desk import Desk
from hermes.gateway.doorman import Doorman
from hermes.gateway.endings import Ending
from hermes.gateway.letters import Letter, batch, opened, reply, words
from hermes.gateway.node import Node
from hermes.gateway.observer import TurnObserver
from hermes.gateway.presence import Presences, Screen
from hermes.gateway.thinking import Thinker
from hermes.gateway.work import Running, RunningTurns, Work
from hermes.sessions.model import (
    OWNER,
    InboxRow,
    Lease,
    Outcome,
    Session,
    SessionKey,
    Snapshot,
    Step,
    TurnId,
    TurnRow,
)
from hermes.texts import Texts

log = structlog.get_logger(__name__)

LOOK_AHEAD = 100
"""Waiting events that are looked at together."""

FRUITLESS_STARTS = 2
"""Starts in a row without a new row after which a turn is parked: something about it kills the process."""

SHUTDOWN = "shutdown"
"""Why a turn is cut short when the process is asked to stop: it is taken up again at the next start."""


class Turns:
    """Runs turns: one a key at a time (the mailbox sees to that), one a conversation (the lease does)."""

    def __init__(
        self,
        node: Node,
        *,
        conversations: Conversations,
        thinker: Thinker,
        doorman: Doorman,
        desk: Desk,
        running: RunningTurns,
        presences: Presences,
        closing: Closing,
        named: Callable[[Session], None],
        ring: Callable[[], None],
    ) -> None:
        """`named` is called with a session in which there was an answer, `ring` when something is due."""
        self._node = node
        self._conversations = conversations
        self._thinker = thinker
        self._doorman = doorman
        self._desk = desk
        self._running = running
        self._presences = presences
        self._closing = closing
        self._named = named
        self._ring = ring

    async def run(self, key: SessionKey) -> bool:
        """Do the next thing that waits for `key`; False when nothing does. Never raises: mailboxes live on."""
        inbox = self._node.store.inbox
        try:
            rows = await inbox.waiting(key, LOOK_AHEAD)
            begun = any(row.turn is not None for row in rows)
            found = await inbox.unfinished(key) if begun else None
        except StoreError as error:
            await self._closing.wait_for_store(error)
            return True
        if found is not None:
            turn, its = found
            if (running := self._running.of(turn.id)) is not None:  # its chat has moved, and with it the key
                await running.ended.wait()
                return True
            return await self._guarded(its, lambda: self._resume(turn, its))
        return bool(rows) and await self._guarded(rows[:1], lambda: self._take_up(key, rows))

    async def command(self, letter: Letter) -> None:
        """Carry out a command beside the running turn. Never raises."""
        await self._guarded((letter.row,), lambda: self._handle(letter))

    async def _guarded(self, rows: Sequence[InboxRow], work: Callable[[], Awaitable[bool]]) -> bool:
        """`work`, which is about `rows`. A store in trouble is waited for; what can never be done is set aside."""
        try:
            return await work()
        except TakenBack:
            pass  # look again
        except (SessionNotFound, AmbiguousSession) as error:
            await self._closing.set_aside(rows, str(error), why=type(error).__name__)
        except StoreError as error:
            await self._closing.wait_for_store(error)
        except Exception:  # one conversation's bug must not end the others
            reference = ids.fresh("error")
            log.exception("turn.broken", reference=reference, key=rows[0].key if rows else "")
            await self._closing.set_aside(
                rows, self._node.texts.say("turn.failed", reference=reference), why="internal"
            )
        return True

    async def _take_up(self, key: SessionKey, rows: Sequence[InboxRow]) -> bool:
        letters = opened(rows)
        if letters[0].command is not None:
            return await self._handle(letters[0])
        turn = batch(letters)
        ran = await self._begin(key, turn)
        return not ran or len(turn) < len(rows) or len(rows) == LOOK_AHEAD  # what comes later brings its own wake-up

    async def _handle(self, letter: Letter) -> bool:
        await self._desk.handle(letter)
        return True

    async def _pending(self, key: SessionKey) -> list[Letter]:
        return opened(await self._node.store.inbox.pending(key))

    # -- a turn begins, or begins again -------------------------------------------------------------------------

    async def _begin(self, key: SessionKey, letters: Sequence[Letter]) -> bool:
        """Run the turn of `letters`; False when it has to be looked at again. Raises StoreError."""
        asked = letters[0]
        session = await self._conversations.enter(key, asked.inbound)
        told = partial(self._tell_busy, asked)
        async with self._conversations.held(session.conversation, told=told) as lease:
            live = await self._node.store.find(key)
            if live is None or live.conversation != lease.conversation:
                return False  # somebody started over while we waited
            work = await self._work(TurnId(ids.fresh("turn")), lease, asked)
            snapshot = self._thinker.snapshot(work) if live.system_prompt is None else None
            first = self._first_step(key, work, letters, live, snapshot)
            await self._run(key, work, letters, live if snapshot is None else snapshot.on(live), first)
        return True

    def _first_step(
        self, key: SessionKey, work: Work, letters: Sequence[Letter], session: Session, snapshot: Snapshot | None
    ) -> Step:
        return Step(
            turn=work.turn,
            session=session.id,
            at=self._node.clock.now(),
            key=key,
            runs=tuple(letter.row.id for letter in letters),
            messages=tuple(row for letter in letters for row in words(letter)),
            snapshot=snapshot,
        )

    async def _resume(self, turn: TurnRow, rows: Sequence[InboxRow]) -> bool:
        if any(row.node not in {None, self._node.id} for row in rows):
            return False  # another process's connection waits for it
        letters = opened(rows)
        conversation = (await self._node.store.get(turn.session_id, OWNER)).conversation
        async with self._conversations.held(conversation) as lease:
            turn = await self._node.store.inbox.restart(lease, turn.id)
            session = await self._node.store.tip(conversation)
            log.info("turn.resumed", turn=turn.id, session=session.id, fruitless=turn.fruitless)
            work = await self._work(turn.id, lease, letters[0])
            if turn.fruitless >= FRUITLESS_STARTS:
                parked = Ending(outcome=Outcome.DEAD, why="parked", shown=self._texts(work).say("turn.parked"))
                await self._closing.end(work, letters, session, parked)
            else:
                await self._run(turn.key, work, letters, session)
        return True

    async def _work(self, turn: TurnId, lease: Lease, asked: Letter) -> Work:
        origin = asked.inbound.origin
        return Work(
            turn=turn,
            lease=lease,
            inbound=asked.inbound,
            role=await self._doorman.role_of(origin),
            shared=self._doorman.is_shared(origin),
        )

    async def _tell_busy(self, asked: Letter, error: LeaseBusy) -> None:
        text = self._node.texts.for_words(asked.inbound.text).say("turn.busy_elsewhere", place=error.place)
        told = reply(asked, text, key=f"busy:{asked.row.id}", at=self._node.clock.now())
        await self._node.store.outbox.add([replace(told, answers=None)])  # the answer is still to come
        self._ring()

    # -- thinking, and the end ------------------------------------------------------------------------------------

    async def _run(
        self, key: SessionKey, work: Work, letters: Sequence[Letter], session: Session, first: Step | None = None
    ) -> None:
        """Think and end. `first` begins the turn; from before it is written, the turn can be cut short."""
        limit = asyncio.timeout(self._node.config().agent.turn_timeout_seconds)
        running = self._running[key] = Running(work=work, limit=limit)
        started = self._node.clock.monotonic()
        try:
            async with self._presences.of(work, letters[0], session.id) as screen:
                observer = self._observer(key, work, letters, session, screen)
                if first is not None:
                    await self._node.store.commit(work.lease, first)
                ending = await self._think(running, observer)
            if ending is None:
                await self._node.store.inbox.forgive(work.turn)
                return
            await self._closing.end(work, observer.letters, observer.session, ending)
            if ending.outcome is Outcome.ANSWERED:
                self._named(observer.session)
            self._node.metrics.turn_seconds.observe(self._node.clock.monotonic() - started)
        except (StoreError, asyncio.CancelledError) as error:
            if not isinstance(error, LeaseLost):  # the store, or who sends us home, is at fault: not the turn
                await self._node.store.inbox.forgive(work.turn)
                raise
            await self._closing.taken_over(observer.letters)
        finally:
            del self._running[key]
            running.ended.set()

    def _observer(
        self, key: SessionKey, work: Work, letters: Sequence[Letter], session: Session, screen: Screen
    ) -> TurnObserver:
        return TurnObserver(
            self._node,
            work,
            session=session,
            letters=letters,
            screen=screen,
            card=self._thinker.model.card,
            pending=partial(self._pending, key),
        )

    async def _think(self, running: Running, observer: TurnObserver) -> Ending | None:
        """Until there is an ending; None when the process stops and the turn goes on at the next start."""
        work = running.work
        try:
            try:
                async with running.limit:
                    running.begin()
                    final = await self._thinker.think(work, observer)
            finally:
                running.thought = True
            return endings.answered(final, self._texts(work), self._node.clock.now())
        except StoreError:
            raise
        except Exception as error:  # one turn's trouble must not end the others
            if isinstance(error, TimeoutError) and running.limit.expired():
                return self._cut_short(running, observer)
            return self._failed(work, error)

    def _cut_short(self, running: Running, observer: TurnObserver) -> Ending | None:
        if running.why == SHUTDOWN:
            return None
        if running.why is None:
            minutes = self._node.config().agent.turn_timeout_seconds / 60
            return self._failed(running.work, TurnLimit("time", minutes))
        return endings.cut_short(running.why, observer.text, self._texts(running.work), self._node.clock.now())

    def _failed(self, work: Work, error: Exception) -> Ending:
        if isinstance(error, ModelError):
            self._node.metrics.model_errors.labels(type(error).__name__).inc()
        if not endings.is_expected(error):
            log.error("turn.failed", turn=work.turn, exc_info=error)
        return endings.failed(error, self._texts(work), reference=work.turn, redactor=self._node.redactor)

    def _texts(self, work: Work) -> Texts:
        return self._node.texts.for_words(work.inbound.text)
