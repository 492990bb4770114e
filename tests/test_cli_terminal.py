"""The terminal as a platform."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest

from fakes import VirtualClock, settle
from hermes.adapters.base import Accepted, Event, Hangup, Inbound, Lifetime, Outbound, Standing
from hermes.cli.screen import Screen
from hermes.cli.terminal import Terminal
from hermes.errors import SessionNotFound
from hermes.gateway.terminal import branch_of


@dataclass(kw_only=True)
class Desk:
    """A person at a terminal, and a gateway that takes what they type and answers when told to."""

    terminal: Terminal
    notes: StringIO
    hang_up: Standing = Standing.PENDING
    events: "asyncio.Queue[Event]" = field(default_factory=asyncio.Queue)

    async def emit(self, event: Event, /) -> Accepted:
        if isinstance(event, Inbound) and event.continues == "nowhere":
            raise SessionNotFound(event.continues)
        self.events.put_nowait(event)
        return Accepted(standing=self.hang_up if isinstance(event, Hangup) else Standing.FRESH)

    async def answer(self, text: str, *, answers: str | None) -> None:
        await self.terminal.send(Outbound(key=text, origin=self.terminal.origin, markdown=text, answers=answers))

    async def asked(self) -> Inbound:
        event = await self.events.get()
        assert isinstance(event, Inbound)
        return event


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    notes = StringIO()
    one = Desk(terminal=Terminal(VirtualClock(), Screen({}, out=StringIO(), err=notes)), notes=notes)
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(one.terminal.listen(one.emit))
        yield one
        listening.cancel()


async def test_a_line_becomes_a_question_of_its_own_that_goes_with_the_terminal() -> None:
    async with desk() as one, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(one.terminal.ask("Hello\x00", continues="20270115_080000_abcdef"))
        question = await one.asked()
        assert (question.text, question.alone, question.lifetime) == ("Hello\ufffd", True, Lifetime.CONNECTION)
        assert question.continues == "20270115_080000_abcdef"
        await one.answer("Hi", answers=question.event_id)
        given = await asking
        assert given is not None
        assert given.markdown == "Hi"


async def test_a_word_on_the_way_is_shown_and_is_not_the_answer() -> None:
    async with desk() as one, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(one.terminal.ask("Hello"))
        question = await one.asked()
        await one.answer("busy in the gateway", answers=None)
        await settle()
        assert not asking.done()
        assert one.notes.getvalue() == "busy in the gateway\n"
        await one.answer("Hi", answers=question.event_id)


async def test_stopping_waits_for_what_was_written_so_far() -> None:
    async with desk() as one, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(one.terminal.ask("Hello"))
        question = await one.asked()
        stopping = tasks.create_task(one.terminal.stop())
        hangup = await one.events.get()
        assert isinstance(hangup, Hangup)
        assert hangup.event_id == question.event_id
        await settle()
        assert not stopping.done()
        await one.answer("half", answers=question.event_id)
        given = await asking
        assert given is not None
        assert given.markdown == "half"


async def test_what_nobody_has_begun_is_taken_back() -> None:
    async with desk() as one, asyncio.TaskGroup() as tasks:
        one.hang_up = Standing.SETTLED
        asking = tasks.create_task(one.terminal.ask("Hello"))
        await one.asked()
        await one.terminal.stop()
        assert await asking is None


async def test_without_a_question_there_is_nothing_to_stop() -> None:
    async with desk() as one:
        await one.terminal.stop()
        assert one.events.empty()


async def test_a_session_that_is_not_there_is_said_and_the_next_line_works() -> None:
    async with desk() as one, asyncio.TaskGroup() as tasks:
        with pytest.raises(SessionNotFound):
            await one.terminal.ask("Hello", continues="nowhere")
        asking = tasks.create_task(one.terminal.ask("Hello"))
        await one.answer("Hi", answers=(await one.asked()).event_id)
        assert await asking is not None


@pytest.mark.parametrize(
    ("head", "branch"), [("ref: refs/heads/feature/new\n", "feature/new"), ("0123456789abcdef\n", None)]
)
def test_the_branch_is_read_from_the_repository_around_the_folder(
    tmp_path: Path, head: str, branch: str | None
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    assert branch_of(inner) == branch
