"""Who watches a turn: tells its screen the words as they come, and keeps each step on disk."""

from collections.abc import Awaitable, Callable, Sequence

from hermes.agent import prompt
from hermes.agent.models.base import Card, Line
from hermes.errors import TakenBack
from hermes.gateway.letters import Letter, joinable, words
from hermes.gateway.node import Node
from hermes.gateway.presence import Screen
from hermes.gateway.work import Work
from hermes.sessions.model import Kind, NewMessage, Role, Session, Step, Usage

Pending = Callable[[], Awaitable[Sequence[Letter]]]
"""The letters of the turn's key that nobody has taken up."""


class TurnObserver:
    """The `Observer` of one turn."""

    def __init__(
        self,
        node: Node,
        work: Work,
        *,
        session: Session,
        letters: Sequence[Letter],
        screen: Screen,
        card: Card,
        pending: Pending,
    ) -> None:
        self._node = node
        self._work = work
        self._screen = screen
        self._card = card
        self._pending = pending
        self.session = session
        """The live segment: a compression during the turn moves it."""
        self.letters = list(letters)
        """What the turn answers; steering adds to it."""
        self.text = ""
        """The words of the step that is running."""

    def said(self, text: str) -> None:
        self.text += text
        self._screen.said(text)

    def tool(self, name: str, *, done: bool) -> None:
        self._screen.tool(name, done=done)

    async def record(self, lines: Sequence[Line], usage: Usage) -> None:
        at = self._node.clock.now()
        rows = tuple(stored(line, at) for line in lines)
        step = Step(
            turn=self._work.turn,
            session=self.session.id,
            at=at,
            messages=rows,
            usage=usage,
            api_calls=bool(usage.output_tokens),
        )
        await self._node.store.commit(self._work.lease, step)
        self.text = ""
        self._screen.kept()

    async def steering(self) -> Sequence[Line]:
        if self._work.inbound.alone or self._node.config().gateway.busy_input_mode != "steer":
            return ()
        came = joinable(await self._pending(), self._work.inbound)
        if not came:
            return ()
        rows = tuple(row for letter in came for row in words(letter))
        taken = tuple(letter.row.id for letter in came)
        at = self._node.clock.now()
        joined = Step(turn=self._work.turn, session=self.session.id, at=at, runs=taken, messages=rows)
        try:
            kept = await self._node.store.commit(self._work.lease, joined)
        except TakenBack:
            return ()  # the next step looks again
        self.letters += came
        return prompt.lines(kept, card=self._card, zone=self._node.zone, shared=self._work.shared)


def stored(line: Line, at: float) -> NewMessage:
    """The row that keeps a line of the agent's. A step without words of its own is tool work, not talk."""
    talk = line.role is Role.ASSISTANT and bool(line.text.strip())
    return NewMessage(
        role=line.role,
        kind=Kind.TALK if talk else Kind.TOOL,
        content=line.text,
        at=at,
        tool_calls=line.tool_calls,
        tool_call_id=line.tool_call_id,
        tool_name=line.tool_name,
    )
