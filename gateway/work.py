"""A turn while it lives: its fixed facts, and the register of those that are thinking now."""

import asyncio
from dataclasses import dataclass, field

from hermes.adapters.base import Inbound
from hermes.gateway.access import Role
from hermes.sessions.model import Lease, SessionKey, TurnId

PATIENCE_SECONDS = 5.0
"""How long somebody who cut a turn short waits for it to store what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The fixed facts of one turn."""

    turn: TurnId
    lease: Lease
    inbound: Inbound
    """The message that is answered."""
    role: Role
    shared: bool
    """Others read the conversation too."""


@dataclass(slots=True, kw_only=True)
class Running:
    """A turn that is thinking now."""

    work: Work
    limit: asyncio.Timeout
    why: str | None = None
    """Set when somebody cut it short."""
    thinking: bool = False
    """Its first write is on disk and the limit holds."""
    thought: bool = False
    """It has its ending and only writes it down: too late to cut it short."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def cut_short(self, why: str) -> None:
        """Cancel what the turn is waiting for: it stores what it has and ends. The first reason stays."""
        if self.why is None and not self.thought and not self.limit.expired():
            self.why = why
            self._cancel_if_cut()

    def begin(self) -> None:
        """Called inside the limit, before the first thought. Who cut it short before then is obeyed now."""
        self.thinking = True
        self._cancel_if_cut()

    def _cancel_if_cut(self) -> None:
        if self.thinking and self.why is not None:
            self.limit.reschedule(asyncio.get_running_loop().time())


class RunningTurns(dict[SessionKey, Running]):
    """The turns of this process that are thinking, by key."""

    async def idle(self) -> None:
        """Wait until none is thinking."""
        while self:
            await next(iter(self.values())).ended.wait()

    def of(self, turn: TurnId) -> Running | None:
        """The turn, if it is thinking here."""
        return next((running for running in self.values() if running.work.turn == turn), None)

    async def cut_short(self, key: SessionKey, why: str) -> bool:
        """End the turn of `key` and wait until it has; False when there was none, or it would not end."""
        running = self.get(key)
        if running is None:
            return False
        running.cut_short(why)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await running.ended.wait()
        except TimeoutError:
            return False
        return True
