"""`hermes chat`: lines in, answers out, on the same line as every other platform."""

import asyncio
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from hermes.cli.lines import Keyboard, Pipe
from hermes.cli.terminal import Terminal
from hermes.clock import SystemClock
from hermes.gateway.node import Node
from hermes.gateway.routing import KeyPolicy, session_key
from hermes.gateway.terminal import PLATFORM, terminal
from hermes.home import Home
from hermes.sessions.model import OWNER, Session

QUIT = {"/quit", "/exit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked on the command line."""

    question: str | None = None
    resume: str | None = None
    go_on: str | None = None
    """Empty: the last session of this terminal's source."""
    model: str | None = None
    source: str | None = None


async def run(home: Home, environ: Mapping[str, str], wish: Wish) -> int:
    """Talk until the person leaves; gives the exit code."""
    screen = Terminal(SystemClock(), colour=sys.stdout.isatty() and not environ.get("NO_COLOR"))
    async with terminal(home, environ, screen, model=wish.model, source=wish.source) as node:
        session = await _session(node, wish)
        talk = _Talk(node, screen, session)
        if wish.question is not None:
            return await talk.once(wish.question)
        await talk.loop()
        return 0


async def _session(node: Node, wish: Wish) -> Session | None:
    """The session to go on with; None starts a new one. Raises SessionNotFound, never starts afresh silently."""
    if wish.resume is not None:
        return await node.store.resolve(wish.resume, OWNER)
    if wish.go_on:
        return await node.store.resolve(wish.go_on, OWNER)
    if wish.go_on is not None:
        return await node.store.latest(wish.source or PLATFORM, OWNER)
    return None


class _Talk:
    def __init__(self, node: Node, screen: Terminal, session: Session | None) -> None:
        self._node = node
        self._screen = screen
        self._session = session
        self._continues = None if session is None else session.id

    async def once(self, question: str) -> int:
        """One question, one answer."""
        answer = await self._screen.ask(question, continues=self._continues)
        await self._leave()
        return 0 if answer.session is not None else 1

    async def loop(self) -> None:
        """Until end of input or /quit. Ctrl-C stops a running answer; at the prompt it empties the line."""
        self._greet()
        lines = Keyboard() if sys.stdin.isatty() else Pipe()
        while (line := await lines.read()) is not None and line.strip() not in QUIT:
            if line.strip():
                await self._ask(line)
        session = await self._leave()
        if session is not None and session.message_count:
            print(f"Session {session.id}. Go on with it later: hermes -r {session.id}")

    async def _ask(self, line: str) -> None:
        continues, self._continues = self._continues, None
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._screen.ask(line, continues=continues))
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, asking.cancel)
            try:
                await asyncio.wait([asking])
            finally:
                loop.remove_signal_handler(signal.SIGINT)

    def _greet(self) -> None:
        if self._session is None:
            print(f"Hermes, answering with {self._node.model_name}. /help lists the commands, Ctrl-D leaves.")
        else:
            name = self._session.title or self._session.preview
            print(f"↻ Going on with {self._session.id} ({name}), {self._session.message_count} messages.")

    async def _leave(self) -> Session | None:
        """Close the session that this terminal was in."""
        session = await self._node.store.find(session_key(self._screen.origin, KeyPolicy()))
        if session is not None:
            await self._node.store.end(session.id, reason="cli_close", at=self._node.clock.now())
        return session
