"""Naming conversations after their first exchange, in the background: no answer waits for it."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import structlog

from hermes.agent import titling
from hermes.agent.models.base import ChatModel, TextDelta
from hermes.errors import ModelError, StoreError
from hermes.gateway.crew import Crew
from hermes.gateway.node import Node
from hermes.sessions.model import MACHINE_SOURCES, OWNER, ConversationId, Link, Message, Role, Session

log = structlog.get_logger(__name__)

AT_ONCE = 2
"""Titles that are asked for at the same time; people's answers come first."""
WAITING = 100
"""Conversations that may wait for a name; beyond it the next exchange asks again."""
MODEL_SECONDS = 30.0
EXCHANGES = 2
"""A conversation in which a person has spoken more often than this goes without a title of ours."""
LOOKED_AT = 50
"""Rows of a conversation that are read for its title."""
UNASKED = MACHINE_SOURCES | {"api-server"}
"""Entries whose conversations nobody reads in a list: they are named by their first words alone."""


class Titler:
    """Names each conversation once. `model` None: by its first words alone."""

    def __init__(self, node: Node, model: ChatModel | None, tasks: Crew) -> None:
        self._node = node
        self._model = model if model is not None and model.card.writes_summaries else None
        self._tasks = tasks
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._pending: dict[ConversationId, asyncio.Task[None]] = {}

    def consider(self, session: Session) -> None:
        """There was an answer in this session: name its conversation, unless it has a name."""
        nameable = session.title is None and session.link is not Link.DELEGATE
        if nameable and session.conversation not in self._pending and len(self._pending) < WAITING:
            task = self._tasks.create_task(self._name(session.conversation), name=f"title:{session.conversation}")
            self._pending[session.conversation] = task

    async def idle(self) -> None:
        """Every conversation that was considered has been looked at."""
        while self._pending:
            await asyncio.wait(tuple(self._pending.values()))

    async def hurry(self) -> None:
        """The process stops: what still waits for a model is named by its first words."""
        self._model = None
        for task in tuple(self._pending.values()):
            task.cancel()
        unnamed = tuple(self._pending)
        await self.idle()
        for conversation in unnamed:
            await self._settle(conversation)

    async def _name(self, conversation: ConversationId) -> None:
        try:
            async with self._gate:
                await self._settle(conversation)
        except Exception:  # a name is never worth a gateway
            log.exception("title.broken", conversation=conversation)
        finally:
            del self._pending[conversation]

    async def _settle(self, conversation: ConversationId) -> None:
        """Give the name. One that is gone, or a store in trouble, gets none: the next exchange asks again."""
        store = self._node.store
        try:
            tip = await store.tip(conversation)
            rows = await store.transcript(conversation, OWNER, limit=LOOKED_AT)
            said = [self._node.redactor.text(row.content) for row in rows if row.role is Role.USER and row.content]
            if tip.title is not None or not 0 < len(said) <= EXCHANGES:
                return
            title = await self._asked(tip, said[0], rows) or titling.first_words(said[0])
            if title is not None:
                await store.rename(tip.id, self._node.redactor.text(title), by_person=False)
        except StoreError as error:
            log.warning("title.not_given", conversation=conversation, reason=str(error))

    async def _asked(self, session: Session, question: str, rows: Sequence[Message]) -> str | None:
        """The model's title; None when it gives none that can be taken."""
        if self._model is None or session.source in UNASKED:
            return None
        answer = next((row.content for row in rows if row.role is Role.ASSISTANT and row.content), "")
        try:
            async with (
                asyncio.timeout(MODEL_SECONDS),
                aclosing(self._model.stream(titling.request(question, answer))) as events,
            ):
                said = "".join([event.text async for event in events if isinstance(event, TextDelta)])
        except (ModelError, TimeoutError) as error:
            log.info("title.no_model", session=session.id, reason=str(error) or type(error).__name__)
            return None
        return titling.salvage(said)
