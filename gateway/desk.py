"""Where commands are carried out: each once, its outcome and its reply in one transaction."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from hermes.adapters.base import Lifetime
from hermes.errors import LeaseBusy, StoreError, TitleTaken, UserError
from hermes.gateway import commands
from hermes.gateway.access import Role
from hermes.gateway.commands import Asked
from hermes.gateway.conversations import LEASE_SECONDS, Conversations
from hermes.gateway.doorman import Doorman
from hermes.gateway.letters import Letter, notice, reply
from hermes.gateway.node import Node
from hermes.gateway.privacy import Privacy
from hermes.gateway.resuming import Resumption
from hermes.gateway.work import RunningTurns
from hermes.sessions import titles
from hermes.sessions.model import Outcome, Session, SessionKey, Settlement


class Desk:
    """The `Powers` behind the commands."""

    def __init__(
        self,
        node: Node,
        *,
        conversations: Conversations,
        doorman: Doorman,
        running: RunningTurns,
        privacy: Privacy,
        ring: Callable[[], None],
    ) -> None:
        self._node = node
        self._conversations = conversations
        self._doorman = doorman
        self._running = running
        self._ring = ring
        self._privacy = privacy
        self._resumption = Resumption(node, doorman)
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    async def handle(self, letter: Letter) -> None:
        """Carry out a command that has no outcome yet. The mailbox and the bypass may both ask: the first does it."""
        lock = self._locks.setdefault(letter.row.key, asyncio.Lock())
        async with lock:
            row = letter.row
            found = await self._node.store.inbox.find(row.platform, row.chat_id, row.event_id)
            if found is None or found.outcome is not None:
                return
            text = await self._answer(letter) or self._word_for_waiting(letter)
            at = self._node.clock.now()
            session = await self._node.store.find(row.key)  # where the person is now: /new leads elsewhere
            said = reply(letter, text, key=f"command:{row.id}", at=at)
            replies = [replace(said, session=None if session is None else session.id)] if text else []
            await self._node.store.inbox.settle(
                Settlement(rows=(row.id,), outcome=Outcome.COMMAND), at=at, deliveries=replies
            )
            self._node.metrics.inbound.labels(row.platform, Outcome.COMMAND.value).inc()
        self._ring()

    def _word_for_waiting(self, letter: Letter) -> str:
        """Silence in a chat is no answer to who waits at a connection."""
        if letter.inbound.lifetime is not Lifetime.CONNECTION:
            return ""
        return self._node.texts.for_words(letter.inbound.text).say("command.done")

    async def _answer(self, letter: Letter) -> str:
        found = commands.parse(letter.inbound.text)
        assert found is not None
        name, rest = found
        asked = Asked(
            inbound=letter.inbound,
            key=letter.row.key,
            row=letter.row.id,
            role=await self._doorman.role_of(letter.inbound.origin),
            rest=rest,
            texts=self._node.texts.for_words(letter.inbound.text),
        )
        try:
            return await commands.answer(self, asked, name)
        except TitleTaken as error:
            return str(error) if asked.role is Role.OWNER else asked.texts.say("command.title_taken", title=error.title)
        except (UserError, StoreError) as error:
            return str(error)

    async def start_over(self, asked: Asked) -> str:
        title = titles.clean(asked.rest)
        text = asked.texts.say("turn.dropped")
        await self._drop_waiting(
            asked, why="new conversation", text=text
        )  # first, or it would begin when the running turn ends
        await self._running.cut_short(asked.key, "new conversation")
        session = await self._conversations.enter(asked.key, asked.inbound)
        birth = self._conversations.birth(asked.inbound, title)
        async with self._conversations.held(session.conversation, force=True) as lease:
            await self._node.store.start_over(lease, asked.key, birth, reason="session_reset")
        if title is None:
            return asked.texts.say("command.new")
        return asked.texts.say("command.new_named", title=title)

    async def _drop_waiting(self, asked: Asked, *, why: str, text: str) -> bool:
        """End what was said before the command and has not begun; whether there was any.

        Whoever waits for such an answer at a connection is told `text`.
        """
        earlier = [row for row in await self._node.store.inbox.pending(asked.key) if row.id < asked.row]
        if not earlier:
            return False
        at = self._node.clock.now()
        gone = Settlement(rows=tuple(row.id for row in earlier), outcome=Outcome.ABANDONED, why=why)
        told = [notice(row, text, key=f"dropped:{row.id}", at=at) for row in earlier if row.node is not None]
        await self._node.store.inbox.settle(gone, at=at, deliveries=told)
        return True

    async def title(self, asked: Asked) -> str:
        title = titles.clean(asked.rest)
        if title is not None:
            session = await self._conversations.enter(asked.key, asked.inbound)
            await self._node.store.rename(session.id, title, by_person=True)
            return asked.texts.say("command.title_set", title=title)
        known = await self._node.store.find(asked.key)
        if known is None or known.title is None:
            return asked.texts.say("command.title_none")
        return asked.texts.say("command.title", title=known.title)

    async def sessions(self, asked: Asked) -> str:
        return await self._resumption.listed(asked)

    async def resume(self, asked: Asked) -> str:
        return await self._resumption.resume(asked)

    async def export(self, asked: Asked) -> str:
        return await self._privacy.export(asked)

    async def forget(self, asked: Asked) -> str:
        return await self._privacy.forget(asked)

    async def status(self, asked: Asked) -> str:
        session = await self._node.store.find(asked.key)
        if session is None:
            return asked.texts.say("command.status_empty", model=self._node.model_name)
        return asked.texts.say(
            "command.status",
            session=session.id,
            title=session.title or asked.texts.say("command.status_untitled"),
            model=session.model or self._node.model_name,
            messages=session.message_count,
            input_tokens=session.usage.input_tokens,
            output_tokens=session.usage.output_tokens,
            state=await self._state(asked),
        )

    async def _state(self, asked: Asked) -> str:
        if asked.key not in self._running:
            return asked.texts.say("command.status_idle")
        waiting = sum(row.id != asked.row for row in await self._node.store.inbox.pending(asked.key))
        if not waiting:
            return asked.texts.say("command.status_thinking")
        return asked.texts.say("command.status_waiting", waiting=waiting)

    async def stop(self, asked: Asked) -> str:
        dropped = asked.key not in self._running and await self._drop_waiting(
            asked, why="stopped", text=asked.texts.say("command.stop_waiting")
        )
        found = asked.key in self._running
        await self._running.cut_short(asked.key, "stopped")
        if dropped:
            return asked.texts.say("command.stop_waiting")
        if found:
            return ""  # the turn itself says that it was stopped
        session = await self._node.store.find(asked.key)
        place = None if session is None else await self._take_from_elsewhere(session)
        if place is None:
            return asked.texts.say("command.stop_nothing")
        return asked.texts.say("command.stop_elsewhere", place=place)

    async def _take_from_elsewhere(self, session: Session) -> str | None:
        """End a turn that another process runs on this conversation: its writes are fenced off from here on."""
        node = self._node
        take = partial(
            node.store.leases.take,
            session.conversation,
            owner=node.id,
            place=node.place,
            now=node.clock.now(),
            ttl=LEASE_SECONDS,
        )
        try:
            await node.store.leases.release(await take())
        except LeaseBusy as error:
            await node.store.leases.release(await take(force=True))
            return error.place
        return None
