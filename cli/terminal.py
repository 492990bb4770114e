"""The terminal as a platform: lines typed become events, glimpses and answers become text on the screen."""

import asyncio
import sys
from collections.abc import Callable

from hermes import ids
from hermes.adapters.base import Accepted, Emit, Inbound, Lifetime, Limits, Origin, Outbound, Progress, Receipt
from hermes.clock import Clock
from hermes.text import repair

DIM, RESET = "\x1b[2m", "\x1b[0m"


class Terminal:
    """A `PlatformAdapter` with one chat and one person."""

    limits = Limits(text=1_000_000, idempotent_sends=True)

    def __init__(self, clock: Clock, *, show: Callable[[str], object] = sys.stdout.write, colour: bool = False) -> None:
        self._clock = clock
        self._show = show
        self._dim, self._reset = (DIM, RESET) if colour else ("", "")
        self.origin = Origin(platform="cli", chat_id=ids.fresh("tty"), user_id="owner")
        self._emit: asyncio.Future[Emit] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, asyncio.Future[Outbound]] = {}
        self._shown = ""

    async def listen(self, emit: Emit) -> None:
        """Until cancelled; lines are handed over by `ask`."""
        self._emit.set_result(emit)
        await asyncio.Event().wait()

    async def send(self, out: Outbound) -> Receipt:
        """Show what the glimpses have not shown yet."""
        question = self._waiting.get(out.answers or "")
        if question is None or out.session is None:  # a notice on the way, or the reply to a command
            self._show(f"{self._dim}{out.markdown}{self._reset}\n")
        else:
            self._finish(out.markdown)
        if question is not None and not question.done() and not _is_notice(out):
            question.set_result(out)
        return Receipt((out.key,))

    def progress(self, glimpse: Progress) -> None:
        """Words as they come; a tool is named while it runs."""
        if glimpse.text:
            self._shown += glimpse.text
            self._show(glimpse.text)
        elif glimpse.tool is not None and not glimpse.done:
            self._show(f"{self._dim}[{glimpse.tool}]{self._reset}\n")
            self._shown = ""

    async def ask(self, text: str, *, continues: str | None = None) -> Outbound:
        """Hand a line over and wait for its answer. Cancelling stops the turn."""
        emit = await self._emit
        event = ids.fresh("m:line")
        answer: asyncio.Future[Outbound] = asyncio.get_running_loop().create_future()
        self._waiting[event] = answer
        self._shown = ""
        try:
            await emit(self._inbound(event, text, continues))
            return await answer
        except asyncio.CancelledError:
            await self._stop(emit)
            raise
        finally:
            del self._waiting[event]

    async def _stop(self, emit: Emit) -> Accepted:
        return await emit(self._inbound(ids.fresh("m:stop"), "/stop", None))

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

    def _finish(self, markdown: str) -> None:
        if markdown.startswith(self._shown):
            self._show(markdown[len(self._shown) :] + "\n")
        else:
            self._show(f"\n{markdown}\n")


def _is_notice(out: Outbound) -> bool:
    return out.key.startswith("busy:")
