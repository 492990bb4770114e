"""`hermes chat`: lines in, answers out, on the same line as every other platform."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hermes.cli.lines import Keyboard, Pipe
from hermes.cli.recap import recap
from hermes.cli.screen import Screen
from hermes.cli.terminal import Terminal
from hermes.clock import SystemClock
from hermes.errors import SessionNotFound, UserError
from hermes.gateway import routing
from hermes.gateway.node import Node
from hermes.gateway.terminal import PLATFORM, terminal
from hermes.home import Home
from hermes.sessions.model import OWNER, Message, Outcome, Role, Session
from hermes.text import repair

QUIT = {"/quit", "/exit"}
WELL = {Outcome.ANSWERED, Outcome.COMMAND}
"""How a question has to end for its answer to be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    question: str | None = None
    resume: str | None = None
    go_on: str | None = None
    """Empty: the last session of this terminal's source."""
    model: str | None = None
    source: str | None = None


async def run(home: Home, environ: Mapping[str, str], wish: Wish) -> int:
    """Talk until the person leaves; gives the exit code. Raises ConfigError, StoreError and UserError."""
    screen = Screen(environ)
    keyboard = Terminal(SystemClock(), screen)
    async with terminal(home, environ, keyboard, model=wish.model, source=wish.source) as node:
        talk = _Talk(node, keyboard, screen, await _session(node, wish))
        if wish.question is not None:
            return await talk.once(wish.question)
        await talk.loop()
        return 0


async def _session(node: Node, wish: Wish) -> Session | None:
    """The session to go on with; None starts a new one. Raises when there is none: it never starts afresh silently."""
    if name := wish.resume or wish.go_on:
        return await node.store.resolve(name, OWNER)
    if wish.go_on is None:
        return None
    source = wish.source or PLATFORM
    try:
        return await node.store.latest(source, OWNER)
    except SessionNotFound as error:
        raise UserError(
            f"There is no earlier {source} session to go on with. Start one with: hermes chat"
            " (or see all with: hermes sessions list)"
        ) from error


class _Talk:
    """One person's way through one or more conversations."""

    def __init__(self, node: Node, keyboard: Terminal, screen: Screen, session: Session | None) -> None:
        self._node = node
        self._keyboard = keyboard
        self._screen = screen
        self._session = session
        self._continues = None if session is None else session.id
        self._seen = 0
        """The last row of the conversation that was shown here."""

    async def once(self, question: str) -> int:
        """One question, one answer."""
        well = await self._ask(question)
        await self._leave()
        return 0 if well else 1

    async def loop(self) -> None:
        """Until end of input or /quit. Ctrl-C stops a running answer; at the prompt it empties the line."""
        await self._greet()
        lines = Keyboard() if sys.stdin.isatty() else Pipe(sys.stdin.fileno())
        while (line := await lines.read()) is not None and line.strip() not in QUIT:
            if line.strip():
                await self._catch_up()
                await self._ask(line)
                await self._catch_up(asked=line)
        session = await self._leave()
        if session is not None and session.message_count:
            self._screen.note(f"Session {session.id}\nGo on with it later: hermes -r {session.id}")

    async def _ask(self, line: str) -> bool:
        """Whether there was an answer. It is on the screen then, and so is the reason if there was none."""
        continues, self._continues = self._continues, None
        async with asyncio.TaskGroup() as tasks:
            with _interrupts(lambda: tasks.create_task(self._keyboard.stop())):
                answer = await self._keyboard.ask(line, continues=continues)
        if answer is None:
            self._screen.note("⏹ Taken back.")
            return False
        origin = self._keyboard.origin
        row = await self._node.store.inbox.find(origin.platform, origin.chat_id, answer.answers or "")
        well = row is not None and row.outcome in WELL
        self._screen.answer(answer.markdown, well=well)
        return well

    # -- what was said before and elsewhere ------------------------------------------------------------------------

    async def _greet(self) -> None:
        session = self._session
        if session is None:
            self._screen.heading(f"Hermes, answering with {self._node.model_name}.")
            self._screen.note("/help lists the commands, Ctrl-D leaves.")
            return
        rows = await self._node.store.history(session.id)
        self._seen = rows[-1].id if rows else 0
        name = session.title or session.preview
        self._screen.heading(f"↻ {session.id}, {session.message_count} messages: {name}")
        if self._node.config().display.resume_display == "full":
            self._screen.note("\n".join(recap(rows)))

    async def _catch_up(self, *, asked: str | None = None) -> None:
        """Show what came into this conversation elsewhere; `asked` is what was just said here."""
        session = await self._here()
        if session is None:
            return
        rows = await self._node.store.transcript(session.conversation, OWNER, after=self._seen)
        foreign = _foreign(rows, asked)
        if foreign:
            self._screen.note("\n".join(["↻ Said elsewhere meanwhile:", *recap(foreign)]))
        self._seen = rows[-1].id if rows else self._seen

    async def _here(self) -> Session | None:
        """The live session of this terminal: where its key leads, or what it is about to go on with."""
        if self._continues is not None:
            return self._session
        return await self._node.store.find(routing.session_key(self._keyboard.origin, routing.KeyPolicy()))

    async def _leave(self) -> Session | None:
        """Close the session that this terminal was in, unless it belongs to a chat that goes on."""
        session = await self._here()
        if session is not None and session.key is not None and routing.parse(session.key).platform == PLATFORM:
            await self._node.store.end(session.id, reason="cli_close", at=self._node.clock.now())
        return session


def _foreign(rows: tuple[Message, ...], asked: str | None) -> list[Message]:
    """The rows of turns that are not the one in which `asked` was said."""
    said = None if asked is None else repair(asked)
    own = next((row.turn for row in reversed(rows) if row.role is Role.USER and row.content == said), None)
    return [row for row in rows if own is None or row.turn != own]


@contextmanager
def _interrupts(stop: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C calls `stop` inside the block; outside it ends the command."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
