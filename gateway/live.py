"""An answer that is shown while it is written: one message that grows by edits, with one record in the outbox."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog

from hermes.adapters.base import CanEdit, ChatKind, Outbound, PlatformAdapter
from hermes.adapters.split import split
from hermes.errors import PlatformError, RateLimited, StoreError, Unreachable
from hermes.gateway import wire
from hermes.gateway.node import Node
from hermes.gateway.work import Work
from hermes.sessions.model import Delivery, NewDelivery

log = structlog.get_logger(__name__)

T = TypeVar("T")

LEAST_INTERVAL = 0.02
"""Seconds; who configures no interval at all shall not keep the loop busy."""

QUIET_SECONDS = 60.0
"""Without new words for this long, the message says that work goes on, and for how long it has."""


class Editor(PlatformAdapter, CanEdit, Protocol):
    """A platform whose messages can be changed."""


class Call(Protocol):
    """One bounded call to the chat. Raises PlatformError."""

    async def __call__(self, make: Callable[[], Awaitable[T]], /) -> T: ...


class LiveAnswer:
    """Shows the running step's words. `duty` is the answer's, with no words yet.

    The record is on disk before the message is begun, and the message's id right after: whoever finishes the answer,
    now or after a crash, edits that message.
    """

    def __init__(self, node: Node, work: Work, duty: NewDelivery, adapter: Editor, call: Call) -> None:
        self._node = node
        self._work = work
        self._duty = duty
        self._adapter = adapter
        self._call = call
        self._texts = node.texts.for_words(work.inbound.text)
        self._began = self._spoke = node.clock.monotonic()
        self._words = ""
        self._fresh = True
        """The next words are the first of a step."""
        self._tool: str | None = None
        self._message: str | None = None
        self._shown = ""

    # -- what the turn tells ----------------------------------------------------------------------------------------

    def said(self, text: str) -> None:
        """Words that join the running step's."""
        self._words = text if self._fresh else self._words + text
        self._fresh = False
        self._spoke = self._node.clock.monotonic()

    def tool(self, name: str, *, done: bool) -> None:
        """A tool starts, or has ended."""
        self._tool = None if done else name

    def kept(self) -> None:
        """The step is over; its words stay until the next one's come."""
        self._fresh = True

    # -- what the chat sees -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled, or until showing more would do harm: the answer itself comes in the end in any case."""
        while True:
            await self._node.clock.sleep(self._interval())
            picture = self._picture()
            if picture in {"", self._shown}:
                continue
            try:
                await self._show(picture)
            except (PlatformError, StoreError) as error:
                log.info("live.not_shown", turn=self._work.turn, reason=str(error))
                if not self._may_go_on(error):
                    return
            else:
                self._shown = picture

    def _may_go_on(self, error: PlatformError | StoreError) -> bool:
        """After a wait that the platform asked for, and after a gap in the line, unless a message may have been begun
        that nobody can find again.
        """
        if isinstance(error, Unreachable):
            return self._message is not None or not error.maybe_done
        return isinstance(error, RateLimited)

    def _interval(self) -> float:
        """Seconds between two edits: as configured, in rooms no more than the platform allows."""
        wanted = max(LEAST_INTERVAL, self._node.config().gateway.streaming.edit_interval_seconds)
        if self._work.inbound.origin.kind is ChatKind.DIRECT:
            return wanted
        return max(wanted, 60.0 / self._adapter.limits.edits_per_minute)

    def _picture(self) -> str:
        """What the message should show now; empty: there is nothing to show yet."""
        limits, state = self._adapter.limits, self._state()
        start = self._words[: 2 * limits.text]  # enough for a first piece, however long the answer has become
        (words, *more) = split(start, limits) or ("",)
        if not state or more:
            return words
        both = f"{words}\n\n{state}".strip()
        return both if limits.measure(both) <= limits.text else words

    def _state(self) -> str:
        """The line below the words."""
        now = self._node.clock.monotonic()
        if now - self._spoke >= QUIET_SECONDS:
            minutes = int((now - self._began) // 60)
            return self._texts.say("turn.still_working", minutes=minutes)
        return self._texts.say("turn.using_tool", tool=self._tool) if self._tool and self._message else ""

    async def _show(self, markdown: str) -> None:
        out = self._outbound(markdown)
        if self._message is None:
            record = await self._node.store.outbox.stream(self._work.lease, self._duty)
            if record.live_id is None:
                return await self._call(lambda: self._begin(record, out))
            self._message = record.live_id  # an earlier process began it
        message = self._message
        return await self._call(lambda: self._adapter.edit(message, out))

    async def _begin(self, record: Delivery, out: Outbound) -> None:
        """One call: whoever waits for its end finds the message's id on disk."""
        receipt = await self._adapter.send(out)
        self._message = receipt.message_ids[0]
        await self._node.store.outbox.live(self._work.lease, record.id, self._message)

    def _outbound(self, markdown: str) -> Outbound:
        duty = self._duty
        return Outbound(
            key=duty.key,
            origin=wire.origin_from_json(duty.origin),
            markdown=markdown,
            reply_to=duty.reply_to,
            answers=duty.answers,
            session=duty.session,
        )
