"""Stop 2 of the line: judge, record once, wake. When `accept` returns, the platform may be told "received"."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from dataclasses import replace

import structlog

from hermes.adapters.base import Accepted, ChatKind, Event, Hangup, Inbound, Lifetime, Moved, Outbound, Standing, Tokens
from hermes.gateway import access, commands, wire
from hermes.gateway.access import Denied, Role
from hermes.gateway.addresses import Addresses
from hermes.gateway.doorman import Doorman
from hermes.gateway.letters import Letter
from hermes.gateway.mailbox import Mailboxes
from hermes.gateway.node import Node
from hermes.gateway.work import RunningTurns
from hermes.sessions.model import OWNER, Arrival, InboxRow, NewDelivery, Outcome, SessionKey, Settlement
from hermes.text import one_line

log = structlog.get_logger(__name__)

QUEUE_BOUND = 100
"""Messages that may wait in one conversation; the next is refused with a sentence."""

STALE_SECONDS = 48 * 3600.0
"""What was said longer ago, by the platform's clock, is a replay of history: nobody waits for its answer any more.
Twice of what Telegram keeps for a bot that was away.
"""

PAIRING_SECONDS = 3600.0
NAME_CAP = 60


class Intake:
    """Where every adapter's events enter."""

    def __init__(
        self,
        node: Node,
        *,
        doorman: Doorman,
        addresses: Addresses,
        command: Callable[[Letter], Coroutine[None, None, None]],
        running: RunningTurns,
        mailboxes: Mailboxes,
        tasks: asyncio.TaskGroup,
        ring: Callable[[], None],
    ) -> None:
        self._node = node
        self._doorman = doorman
        self._addresses = addresses
        self._command = command
        self._running = running
        self._mailboxes = mailboxes
        self._tasks = tasks
        self._ring = ring
        self._pace = Pace()

    async def accept(self, event: Event) -> Accepted:
        """Record the event. A repeat changes nothing and tells where the first one stands.

        Raises SessionNotFound and AmbiguousSession, with nothing recorded, when it names a session that is not there;
        StoreError when it cannot be kept.
        """
        match event:
            case Hangup():
                return await self._hang_up(event)
            case Moved():
                return await self._move(event)
            case Inbound():
                return await self._take(event)

    async def _take(self, raw: Inbound) -> Accepted:
        if raw.continues is not None:
            await self._node.store.resolve(raw.continues, OWNER)
        event = replace(raw, origin=self._addresses.canonical(raw.origin))
        key = self._doorman.key(event.origin)
        arrival = self._arrival(event, key, chat_id=raw.origin.chat_id)
        refusal = await self._refusal(event, key)
        if refusal is None:
            claim = await self._node.store.inbox.claim(arrival)
        else:
            why, text = refusal
            rejected = Settlement(rows=(), outcome=Outcome.REJECTED, why=why)
            claim = await self._node.store.inbox.claim(
                arrival, settle=rejected, replies=_said(arrival, event.origin.chat_id, text)
            )
        if not claim.fresh:
            return await self._repeat(claim.row)
        if claim.row.outcome is None:
            self._hand_on(Letter(row=claim.row, inbound=event))
        else:
            self._node.metrics.inbound.labels(event.origin.platform, Outcome.REJECTED.value).inc()
            log.info("inbound.rejected", platform=event.origin.platform, why=claim.row.why)
            self._ring()
        return Accepted(standing=Standing.FRESH)

    def _arrival(self, event: Inbound, key: SessionKey, *, chat_id: str) -> Arrival:
        """`chat_id` as the platform named it: event ids are unique under that name alone."""
        origin = event.origin
        return Arrival(
            platform=origin.platform,
            chat_id=chat_id,
            event_id=event.event_id,
            key=key,
            origin=wire.origin_to_json(origin),
            payload=wire.inbound_to_json(event),
            at=self._node.clock.now(),
            node=self._node.id if event.lifetime is Lifetime.CONNECTION else None,
        )

    def _hand_on(self, letter: Letter) -> None:
        key, busy = letter.row.key, letter.row.key in self._running
        if self._mailboxes.is_live(key) and commands.is_urgent(letter.inbound.text):
            self._tasks.create_task(self._command(letter), name=f"command:{key}")
            return
        if busy and letter.command is None and self._node.config().gateway.busy_input_mode == "interrupt":
            self._running[key].cut_short("interrupted")
        self._mailboxes.wake(key)

    # -- who is not let in -------------------------------------------------------------------------------------

    async def _refusal(self, event: Inbound, key: SessionKey) -> tuple[str, str] | None:
        """Why the event is not taken, and what to say (nothing: silence); None when it is."""
        if event.at < self._node.clock.now() - STALE_SECONDS:
            return "too old", ""
        verdict = await self._doorman.judge(event.origin)
        texts = self._node.texts.for_words(event.text)
        if isinstance(verdict, Denied):
            return verdict.reason, await self._pairing(event) if verdict.may_pair else ""
        config = self._node.config()
        if not is_meant(event, require_mention=config.platform(event.origin.platform).require_mention):
            return "not addressed", ""
        limit = config.gateway.user_rate_per_minute
        wait = 0.0
        if verdict is not Role.OWNER:
            wait = self._pace.wait(
                f"{event.origin.platform}:{event.origin.user_id}", limit, self._node.clock.monotonic()
            )
        if wait > 0:
            return "too fast", texts.say("turn.too_fast", limit=limit, seconds=round(wait + 0.5))
        if self._mailboxes.is_live(key) and commands.parse(event.text) is None:
            waiting = await self._node.store.inbox.pending(key, QUEUE_BOUND)
            if len(waiting) >= QUEUE_BOUND:
                return "queue full", texts.say("turn.queue_full", limit=QUEUE_BOUND)
        return None

    async def _pairing(self, event: Inbound) -> str:
        """The code that a stranger shows to the owner."""
        origin, texts = event.origin, self._node.texts.for_words(event.text)
        assert origin.user_id is not None
        code = await self._node.store.roles.request(
            origin.platform,
            origin.user_id,
            name=one_line(origin.user_name, NAME_CAP),
            code=access.new_code(),
            at=self._node.clock.now(),
            ttl=PAIRING_SECONDS,
        )
        if code is None:
            return texts.say("access.pairing_wait", minutes=10)
        return texts.say(
            "access.pairing_code", code=code, platform=origin.platform, minutes=round(PAIRING_SECONDS / 60)
        )

    # -- repeats and hang-ups ----------------------------------------------------------------------------------

    async def _repeat(self, row: InboxRow) -> Accepted:
        if row.outcome is None:
            self._mailboxes.wake(row.key)  # whoever recorded it may have been cut off before it could
            return Accepted(standing=Standing.PENDING)
        return Accepted(standing=Standing.SETTLED, answer=await self._answer(row))

    async def _answer(self, row: InboxRow) -> Outbound | None:
        """The words that were given to this event."""
        if row.turn is None:
            return None
        given = await self._node.store.outbox.of_turn(row.turn)
        duty = next((duty for duty in given if duty.answers == row.event_id), None)
        if duty is None:
            return None
        return Outbound(
            key=duty.key,
            origin=wire.origin_from_json(duty.origin),
            markdown=duty.markdown,
            answers=duty.answers,
            session=duty.session,
            tokens=Tokens(input=duty.input_tokens, output=duty.output_tokens),
        )

    async def _hang_up(self, event: Hangup) -> Accepted:
        origin, at = event.origin, self._node.clock.now()
        inbox = self._node.store.inbox
        row = await inbox.take_back(origin.platform, origin.chat_id, event.event_id, why="hung up", at=at)
        if row is None or row.outcome is not None:
            return Accepted(standing=Standing.SETTLED)
        running = self._running.get(row.key)
        if running is not None and running.work.turn == row.turn:
            running.cut_short("hung up")
        return Accepted(standing=Standing.PENDING)

    async def _move(self, event: Moved) -> Accepted:
        for key in await self._addresses.move(event.platform, event.chat_id, event.to):
            self._mailboxes.wake(key)
        self._ring()
        return Accepted(standing=Standing.SETTLED)


def is_meant(event: Inbound, *, require_mention: bool) -> bool:
    """Whether the agent is spoken to: always in a direct chat, in a room by name, by a reply, or with a command."""
    alone = event.origin.kind is ChatKind.DIRECT
    return alone or not require_mention or event.mentions_me or commands.parse(event.text) is not None


class Pace:
    """How fast people write: a sliding minute each."""

    def __init__(self) -> None:
        self._times: defaultdict[str, deque[float]] = defaultdict(deque)

    def wait(self, person: str, limit: int, now: float) -> float:
        """Count one message; seconds to wait when it is one too many, which then does not count."""
        times = self._times[person]
        while times and times[0] <= now - 60:
            times.popleft()
        if len(times) >= limit:
            return times[0] + 60 - now
        times.append(now)
        return 0.0


def _said(arrival: Arrival, chat_id: str, text: str) -> tuple[NewDelivery, ...]:
    """A refusal's sentence as a duty; nothing for silence."""
    if not text:
        return ()
    return (
        NewDelivery(
            key=f"refusal:{arrival.platform}:{arrival.chat_id}:{arrival.event_id}",
            platform=arrival.platform,
            chat_id=chat_id,
            origin=arrival.origin,
            markdown=text,
            at=arrival.at,
            answers=arrival.event_id,
            node=arrival.node,
        ),
    )
