"""From a stored history to the final words: make room, ask the agent, mend what can be mended once."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import structlog

from hermes import ids
from hermes.agent import loop, prompt
from hermes.agent.loop import Reply
from hermes.agent.models.base import ChatModel, Line, ModelRequest, TextDelta
from hermes.agent.tools.base import ToolContext
from hermes.agent.tools.memory import Memory
from hermes.agent.tools.registry import Toolbox
from hermes.compression import pipeline, summary
from hermes.compression.pipeline import Budget, Compressed, Fitted, Pruned
from hermes.compression.policy import CompressionPolicy, OnFailure
from hermes.compression.repair import validate_and_repair
from hermes.compression.summary import Summarise, SummaryRequest
from hermes.errors import BadTranscript, ContextOverflow
from hermes.gateway.access import memory_owner, scope_for
from hermes.gateway.config import Compression
from hermes.gateway.node import Node
from hermes.gateway.observer import TurnObserver
from hermes.gateway.work import Work
from hermes.sessions.model import Message, Role, Session, SessionId, Snapshot, Split

log = structlog.get_logger(__name__)

ANSWER_SHARE = 8
"""One part in this many of the window is kept free for the answer, unless max_output_tokens says otherwise."""


def compression_policy(block: Compression) -> CompressionPolicy:
    """The configuration's block as the value that compression understands."""
    facts = block.model_dump()
    return CompressionPolicy(**{**facts, "on_summary_failure": OnFailure(facts["on_summary_failure"])})


class Thinker:
    """Answers with one model, its tools, and the history in the store."""

    def __init__(self, node: Node, model: ChatModel, tools: Toolbox, memory: Memory) -> None:
        self._node = node
        self._tools = tools
        self._memory = memory
        self.model = model

    def snapshot(self, work: Work) -> Snapshot:
        """The stable start of a session's requests, made when the session starts and kept with it."""
        card = self.model.card
        specs = self._tools.specs if card.tools else ()
        system = prompt.system_prompt(
            card,
            own=self._node.config().agent.system_prompt,
            tools=specs,
            memory=self._memory.snapshot(self._memory_owner(work)) if card.tools else "",
            instructions=work.inbound.instructions,
        )
        return Snapshot(
            model=card.name, provider=card.provider, system_prompt=system, tools=prompt.tool_snapshot(specs)
        )

    async def think(self, work: Work, observer: TurnObserver) -> Reply:
        """The final words, not yet stored. Raises ModelError, TurnLimit, CompressionStuckError, StoreError."""
        rows = await self._fitted(work, observer)
        try:
            return await self._ask(work, observer, rows)
        except ContextOverflow:
            log.warning("turn.overflow", turn=work.turn, session=observer.session.id)
            await self._compress(work, observer)
        except BadTranscript as error:
            log.warning("turn.bad_transcript", turn=work.turn, session=observer.session.id, reason=str(error))
        return await self._ask(work, observer, await self._history(observer))

    async def _history(self, observer: TurnObserver) -> tuple[Message, ...]:
        note = self._node.texts.say("tool.interrupted")
        return validate_and_repair(await self._node.store.history(observer.session.id), note)

    async def _ask(self, work: Work, observer: TurnObserver, rows: tuple[Message, ...]) -> Reply:
        config, session = self._node.config(), observer.session
        request = ModelRequest(
            system=session.system_prompt or "",
            lines=prompt.lines(rows, card=self.model.card, zone=self._node.zone, shared=work.shared),
            tools=prompt.restore_tools(session.tools),
            max_output_tokens=config.model.max_output_tokens,
        )
        return await loop.reply(
            self.model,
            request,
            tools=self._tools,
            context=self._context(work, session),
            observer=observer,
            max_steps=config.agent.max_steps,
        )

    def _context(self, work: Work, session: Session) -> ToolContext:
        return ToolContext(
            conversation=session.conversation,
            scope=scope_for(work.role, work.inbound.origin, shared=work.shared),
            role=work.role.value,
            memory_owner=self._memory_owner(work),
            now=self._node.clock.now(),
        )

    def _memory_owner(self, work: Work) -> str:
        return memory_owner(work.role, work.inbound.origin, shared=work.shared)

    async def _fitted(self, work: Work, observer: TurnObserver) -> tuple[Message, ...]:
        """The history, with room made before the model is asked at all."""
        rows = await self._history(observer)
        policy = self._policy()
        fitted = await pipeline.fit(
            rows,
            budget=self._budget(observer.session),
            policy=policy,
            summarise=self._summariser(),
            at=self._node.clock.now(),
        )
        if not isinstance(fitted, Compressed | Pruned):
            return rows
        await self._apply(fitted, work, observer)
        return await self._history(observer)

    async def _compress(self, work: Work, observer: TurnObserver) -> None:
        """The model said that it was too much: its window is smaller than we thought, whatever its card says."""
        rows = await self._history(observer)
        known = self._budget(observer.session)
        window = min(known.window, known.prompt(rows))
        fitted = await pipeline.compress(
            rows,
            budget=replace(known, window=window, reserve=window // ANSWER_SHARE),
            policy=self._policy(),
            summarise=self._summariser(),
            at=self._node.clock.now(),
        )
        await self._apply(fitted, work, observer)

    async def _apply(self, fitted: Fitted, work: Work, observer: TurnObserver) -> None:
        store, session, at = self._node.store, observer.session, self._node.clock.now()
        if isinstance(fitted, Pruned):
            await store.replace(work.lease, session.id, fitted.view)
        elif isinstance(fitted, Compressed):
            child = SessionId(ids.session_id(at, hex_digits=self._node.hex_digits, zone=self._node.zone))
            split = Split(
                child=child,
                head=fitted.head,
                summary=fitted.summary,
                tail=fitted.tail,
                at=at,
                snapshot=self.snapshot(work),
            )
            observer.session = await store.split(work.lease, session.id, split)
            log.info("session.split", parent=session.id, child=child, before=fitted.before, after=fitted.after)

    def _policy(self) -> CompressionPolicy:
        """A model that writes no summaries gets a digest instead: keeping everything would leave it no room."""
        policy = compression_policy(self._node.config().compression)
        if self.model.card.writes_summaries:
            return policy
        return replace(policy, on_summary_failure=OnFailure.DROP)

    def _summariser(self) -> Summarise | None:
        return self._summarise if self.model.card.writes_summaries else None

    async def _summarise(self, request: SummaryRequest) -> str:
        """One call of the model without tools. Raises ModelError, TimeoutError."""
        asked = ModelRequest(
            system=summary.SYSTEM,
            lines=(Line(role=Role.USER, text=summary.prompt(request)),),
            max_output_tokens=request.budget * 2,
        )
        async with (
            asyncio.timeout(self._node.config().compression.hygiene_total_ceiling_seconds),
            aclosing(self.model.stream(asked)) as events,
        ):
            return "".join([event.text async for event in events if isinstance(event, TextDelta)])

    def _budget(self, session: Session) -> Budget:
        window = self.model.card.context_length
        reserve = self._node.config().model.max_output_tokens or window // ANSWER_SHARE
        budget = Budget(window=window, reserve=reserve)
        system = budget.meter.text(session.system_prompt or "") + budget.meter.text(session.tools or "")
        return Budget(window=window, reserve=reserve, system_tokens=system)
