"""The terminal as a platform: lines typed become events, answers come back to who asked."""

import asyncio
from dataclasses import dataclass, field

from hermes import ids
from hermes.adapters.base import (
    Emit,
    Hangup,
    Inbound,
    Lifetime,
    Limits,
    Origin,
    Outbound,
    Progress,
    Receipt,
    Standing,
)
from hermes.cli.screen import Screen
from hermes.clock import Clock
from hermes.text import repair

PATIENCE_SECONDS = 6.0
"""How long a stopped answer may take to store what it has: a little more than the gateway waits for that."""


def _future() -> "asyncio.Future[Outbound | None]":
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, kw_only=True)
class _Question:
    event: str
    answer: "asyncio.Future[Outbound | None]" = field(default_factory=_future)


class Terminal:
    """A `PlatformAdapter` with one chat and one person, who asks one thing at a time."""

    limits = Limits(text=1_000_000, idempotent_sends=True)

    def __init__(self, clock: Clock, screen: Screen) -> None:
        self._clock = clock
        self._screen = screen
        self.origin = Origin(platform="cli", chat_id=ids.fresh("tty"), user_id="owner")
        self._emit: asyncio.Future[Emit] = asyncio.get_running_loop().create_future()
        self._question: _Question | None = None

    async def listen(self, emit: Emit) -> None:
        """Until cancelled; lines are handed over by `ask`."""
        self._emit.set_result(emit)
        await asyncio.Event().wait()

    async def send(self, out: Outbound) -> Receipt:
        """Hand the answer to who asked; a word on the way, such as where the conversation is busy, is shown."""
        question = self._question
        if question is None or out.answers != question.event:
            self._screen.note(out.markdown)
        elif not question.answer.done():
            question.answer.set_result(out)
        return Receipt((out.key,))

    def progress(self, glimpse: Progress) -> None:
        """Words as they come; a tool is named when it starts."""
        if glimpse.text:
            self._screen.words(glimpse.text)
        elif glimpse.tool is not None and not glimpse.done:
            self._screen.tool(glimpse.tool)

    async def ask(self, text: str, *, continues: str | None = None) -> Outbound | None:
        """Hand a line over and wait for its answer; None when it was taken back before anybody thought about it.

        Raises SessionNotFound and AmbiguousSession when `continues` names no session.
        """
        emit = await self._emit
        question = self._question = _Question(event=ids.fresh("m:line"))
        try:
            await emit(self._inbound(question.event, text, continues))
            return await question.answer
        finally:
            self._question = None

    async def stop(self) -> None:
        """End the running answer: what was written so far is kept, and is what `ask` gives."""
        question = self._question
        if question is None:
            return
        emit = await self._emit
        accepted = await emit(Hangup(origin=self.origin, event_id=question.event))
        if accepted.standing is not Standing.SETTLED:
            await asyncio.wait([question.answer], timeout=PATIENCE_SECONDS)
        if not question.answer.done():
            question.answer.set_result(None)

    def _inbound(self, event: str, text: str, continues: str | None) -> Inbound:
        return Inbound(
            event_id=event,
            origin=self.origin,
            text=repair(text),
            at=self._clock.now(),
            lifetime=Lifetime.CONNECTION,
            alone=True,
            continues=continues,
        )
