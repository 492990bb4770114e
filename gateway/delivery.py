"""Showing what is owed: in order within a chat, parallel across chats, until each duty has its end.

A duty that a process died over is uncertain: where the platform cannot tell, it is shown once more with a mark
and ends as `unknown`; where a repeated key shows nothing twice, it is simply sent again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeVar

import structlog

from hermes.adapters.base import CanEdit, Outbound, PlatformAdapter, Tokens
from hermes.adapters.split import split
from hermes.errors import ChatMoved, PlatformError, RateLimited, Refusal, Rejected, StoreError, Unreachable
from hermes.gateway import wire
from hermes.gateway.addresses import Addresses
from hermes.gateway.node import Node
from hermes.gateway.paces import Chat, Paces
from hermes.gateway.supervise import Link, delay
from hermes.gateway.vital import Vital
from hermes.sessions.model import Delivery, Sending

log = structlog.get_logger(__name__)

GIVE_UP_AFTER = 24 * 3600.0
"""Seconds after which an answer is no longer wanted."""

LOOK_AGAIN = 1.0
"""Seconds after which due duties are looked for while others are being sent."""

SEND_SECONDS = 120.0
"""How long one send may take; after that its fate is open."""

PASS_SECONDS = 60.0
"""How long it may take to look for what is due, on a machine that is very busy."""

STORE_PAUSE = 1.0
"""Seconds before a store in trouble is tried again."""

UNCERTAIN = "uncertain"
"""Why a duty is due again when it may have been shown already."""

T = TypeVar("T")


class Deliverer:
    """Sends what is due through the adapters of this process."""

    def __init__(
        self,
        node: Node,
        adapters: Mapping[str, PlatformAdapter],
        links: Mapping[str, Link],
        *,
        paces: Paces,
        addresses: Addresses,
    ) -> None:
        self._outbox = node.store.outbox
        self._node = node.id
        self._clock = node.clock
        self._texts = node.texts
        self._metrics = node.metrics
        self._adapters = adapters
        self._links = links
        self._paces = paces
        self._addresses = addresses
        self.vital = Vital(node.clock)
        self._bell = asyncio.Event()
        self._busy: set[Chat] = set()
        self._quiet = asyncio.Event()

    def wake(self) -> None:
        """Something may be due. Never waits."""
        self._quiet.clear()
        self._bell.set()

    async def idle(self) -> None:
        """Wait until nothing is being sent and nothing is due."""
        await self._quiet.wait()

    async def recover(self) -> None:
        """Before the first send: what a process died over becomes due again, as uncertain."""
        for duty in await self._outbox.in_flight(tuple(self._adapters), node=self._node):
            await self._outbox.postpone(duty.id, until=0.0, why=UNCERTAIN)
        self.wake()

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Until cancelled: look at every ring, and when a postponed duty comes due."""
        while True:
            self._bell.clear()
            self.vital.expect(PASS_SECONDS)
            sending = frozenset(self._busy)  # what is read while a chat is being sent to may be out of date for it
            try:
                due = await self._outbox.due(tuple(self._adapters), node=self._node, now=self._clock.now())
                self._start((duty for duty in due if _chat_of(duty) not in sending), tasks)
                wait = await self._pause()
                if not self._busy and not self._bell.is_set():
                    self._quiet.set()
            except StoreError as error:
                log.warning("delivery.store", reason=str(error))
                wait = STORE_PAUSE
            await self._ring(wait)

    def _start(self, due: Iterable[Delivery], tasks: asyncio.TaskGroup) -> None:
        by_chat = sorted(due, key=lambda duty: (_chat_of(duty), duty.id))
        for chat, duties in groupby(by_chat, key=_chat_of):
            if chat not in self._busy:
                self._busy.add(chat)
                tasks.create_task(self._chat(chat, list(duties)), name=f"delivery:{chat[0]}")

    async def _pause(self) -> float | None:
        """Seconds until a postponed duty comes due; None when only a ring can bring work."""
        if self._busy:
            return LOOK_AGAIN  # whoever is being sent to rings at the end, but a slow chat must not delay others
        earliest = await self._outbox.next_due(tuple(self._adapters), node=self._node)
        if earliest is None:
            return None
        return max(0.05, earliest - self._clock.now())

    async def _ring(self, wait: float | None) -> None:
        if wait is None:
            self.vital.rest()
            await self._bell.wait()
            return
        self.vital.expect(wait + PASS_SECONDS)
        async with asyncio.TaskGroup() as group:
            alarm = group.create_task(self._alarm(wait))
            await self._bell.wait()
            alarm.cancel()

    async def _alarm(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.wake()

    async def _chat(self, chat: Chat, duties: Sequence[Delivery]) -> None:
        """One chat's duties in order; the first that has to wait makes the later ones wait."""
        try:
            for duty in duties:
                if not await self._deliver(duty):
                    break
        except StoreError as error:
            log.warning("delivery.store", chat=chat[0], reason=str(error))
            await self._clock.sleep(STORE_PAUSE)
        finally:
            self._busy.discard(chat)
            self.wake()

    async def _deliver(self, duty: Delivery) -> bool:
        """Show one duty; False when it has to wait."""
        visible = list(duty.message_ids)
        try:
            await self._show(duty, visible)
        except Rejected as error:
            return await self._end(duty, Sending.DEAD, why=error.refusal.value)
        except ChatMoved as error:
            await self._insist(partial(self._move, duty, error.to))
            return False  # it is due there now
        except PlatformError as error:
            return await self._later(duty, error, progress=len(visible) > len(duty.message_ids))
        except StoreError:
            raise
        except Exception as error:  # one delivery's bug must not end the others
            log.exception("delivery.failed", key=duty.key)
            return await self._end(duty, Sending.DEAD, why=f"internal: {type(error).__name__}")
        self._links[duty.platform].sent()
        state = Sending.UNKNOWN if duty.why == UNCERTAIN and not self._idempotent(duty) else Sending.SENT
        return await self._end(duty, state, ids=visible)

    async def _move(self, duty: Delivery, to: str) -> None:
        await self._outbox.postpone(duty.id, until=0.0, why=duty.why)
        await self._addresses.move(duty.platform, duty.chat_id, to)

    async def _show(self, duty: Delivery, visible: list[str]) -> None:
        """Show the pieces that are not visible yet; the ids of those that are join `visible`."""
        limits = self._adapters[duty.platform].limits
        pieces = split(duty.markdown, limits)
        for number, piece in enumerate(pieces):
            if number < len(visible):
                continue
            out = _outbound(duty, piece, number, len(pieces))
            ids = await self._finish(duty, out) if number == 0 else ()
            ids = ids or await self._send_piece(duty, out, number)
            visible += ids[:1] if len(pieces) > 1 else ids
            if number + 1 < len(pieces):
                await self._insist(partial(self._outbox.shown, duty.id, tuple(visible)))

    async def _finish(self, duty: Delivery, out: Outbound) -> tuple[str, ...]:
        """Make the message that showed the words so far show the first piece; nothing when there is none (any more).

        Doing so twice does no harm, so a lost answer leaves nothing open.
        """
        adapter, live = self._adapters[duty.platform], duty.live_id
        if live is None or not isinstance(adapter, CanEdit):
            return ()
        try:
            await self._tell(duty, out, lambda out: adapter.edit(live, out))
        except Unreachable as error:
            raise Unreachable(duty.platform, error.detail) from error
        except Rejected as error:
            if error.refusal is not Refusal.GONE:
                raise
            log.info("delivery.live_gone", key=duty.key)
            return ()
        return (live,)

    async def _send_piece(self, duty: Delivery, out: Outbound, number: int) -> tuple[str, ...]:
        adapter = self._adapters[duty.platform]
        if not adapter.limits.idempotent_sends:
            await self._insist(partial(self._outbox.take_off, duty.id))
        ids: tuple[str, ...] = ()
        for text in self._with_mark(duty, number, out.markdown):
            ids = (await self._tell(duty, replace(out, markdown=text), adapter.send)).message_ids
        return ids

    async def _tell(self, duty: Delivery, out: Outbound, call: Callable[[Outbound], Awaitable[T]]) -> T:
        """One call; what the platform cannot read as it is formatted is shown as it stands."""
        chat = _chat_of(duty)
        try:
            return await self._paces.call(chat, lambda: call(out), within=SEND_SECONDS)
        except Rejected as error:
            if error.refusal is not Refusal.BAD_FORMAT or out.plain:
                raise
            log.info("delivery.plain", key=out.key, reason=error.detail)
            plain = replace(out, plain=True)
            return await self._paces.call(chat, lambda: call(plain), within=SEND_SECONDS)

    def _with_mark(self, duty: Delivery, number: int, piece: str) -> tuple[str, ...]:
        """The piece. Where it may have been shown before it is marked, in a message of its own if both do not fit.

        The pieces themselves stay as they were, so that none begins elsewhere than before.
        """
        if duty.why != UNCERTAIN or self._idempotent(duty) or number != len(duty.message_ids):
            return (piece,)
        mark = self._texts.for_words(duty.markdown).say("delivery.recovered")
        limits, both = self._adapters[duty.platform].limits, f"{mark}\n\n{piece}"
        return (both,) if limits.measure(both) <= limits.text else (mark, piece)

    def _idempotent(self, duty: Delivery) -> bool:
        return self._adapters[duty.platform].limits.idempotent_sends

    async def _later(self, duty: Delivery, error: PlatformError, *, progress: bool) -> bool:
        """Put it off, or end it: after a day, or when what was sent once more may have been shown again."""
        now = self._clock.now()
        maybe_done = isinstance(error, Unreachable) and error.maybe_done
        if maybe_done and not progress and duty.why == UNCERTAIN and not self._idempotent(duty):
            return await self._end(duty, Sending.UNKNOWN, why=f"twice without an answer: {error.detail}")
        if now - duty.at > GIVE_UP_AFTER:
            return await self._end(duty, Sending.DEAD, why=f"gave up after a day: {error.detail}")
        uncertain = duty.why == UNCERTAIN or maybe_done
        attempt = 0 if isinstance(error, RateLimited) else duty.attempts + 1
        until = now + delay(error, min(attempt, 10))
        log.warning("delivery.postponed", key=duty.key, adapter=duty.platform, reason=error.detail, until=until)
        why = UNCERTAIN if uncertain else error.detail
        await self._insist(lambda: self._outbox.postpone(duty.id, until=until, why=why))
        return False

    async def _end(self, duty: Delivery, state: Sending, *, ids: Sequence[str] = (), why: str = "") -> bool:
        at = self._clock.now()
        await self._insist(lambda: self._outbox.settle(duty.id, state, at=at, message_ids=ids, why=why))
        self._metrics.outbound.labels(duty.platform, state.value).inc()
        if state is not Sending.SENT:
            log.warning("delivery.ended", key=duty.key, adapter=duty.platform, state=state, reason=why)
        return True

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """What became of a duty must be kept, else its chat waits for ever. A store in trouble is waited for."""
        while True:
            try:
                return await write()
            except StoreError as error:
                log.warning("delivery.store", reason=str(error))
                await self._clock.sleep(STORE_PAUSE)


def _chat_of(duty: Delivery) -> Chat:
    return duty.platform, duty.chat_id


def _outbound(duty: Delivery, piece: str, number: int, pieces: int) -> Outbound:
    return Outbound(
        key=duty.key if pieces == 1 else f"{duty.key}:{number}",
        origin=wire.origin_from_json(duty.origin),
        markdown=piece,
        reply_to=duty.reply_to if number == 0 else None,
        answers=duty.answers,
        session=duty.session,
        tokens=Tokens(input=duty.input_tokens, output=duty.output_tokens),
    )
