"""The one place where concrete parts are made and joined, for the daemon and for a terminal alike."""

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial

import structlog

from hermes.adapters.base import Accepted, Event, HasPulse, Origin, PlatformAdapter, Pulse
from hermes.agent.models.base import ChatModel
from hermes.agent.tools.memory import Memory
from hermes.agent.tools.registry import Toolbox
from hermes.agent.tools.session_search import SessionSearch
from hermes.errors import UserError
from hermes.gateway.access import Role, memory_owner
from hermes.gateway.addresses import Addresses
from hermes.gateway.closing import Closing
from hermes.gateway.conversations import Conversations
from hermes.gateway.crew import Crew
from hermes.gateway.delivery import Deliverer
from hermes.gateway.desk import Desk
from hermes.gateway.doorman import Doorman
from hermes.gateway.intake import Intake
from hermes.gateway.mailbox import Mailboxes
from hermes.gateway.node import Node
from hermes.gateway.paces import Paces
from hermes.gateway.presence import Presences
from hermes.gateway.privacy import Privacy
from hermes.gateway.routing import KeyPolicy
from hermes.gateway.supervise import Link, supervise
from hermes.gateway.thinking import Thinker
from hermes.gateway.titling import Titler
from hermes.gateway.turn import SHUTDOWN, Turns
from hermes.gateway.work import RunningTurns
from hermes.home import Home
from hermes.sessions.model import Session

log = structlog.get_logger(__name__)

FLUSH_SECONDS = 10.0
"""How long each later stage of a stop may take."""


class App:
    """Everything that runs in one process; `tasks` owns whatever it starts."""

    def __init__(
        self,
        node: Node,
        home: Home,
        *,
        adapters: Mapping[str, PlatformAdapter],
        model: ChatModel,
        titles: ChatModel | None,
        tasks: Crew,
    ) -> None:
        """`titles` names conversations; None: they keep no name until a person gives them one."""
        config = node.config()
        policy = KeyPolicy(
            group_sessions_per_user=config.group_sessions_per_user,
            thread_sessions_per_user=config.thread_sessions_per_user,
        )
        self._node = node
        self._adapters = adapters
        self._tasks = tasks
        self._running = RunningTurns()
        self.links = {name: Link(name, node.clock, _pulse(adapter)) for name, adapter in adapters.items()}
        paces, memory, doorman = Paces(node.clock), Memory(home.memory), Doorman(node, policy)
        self._addresses = Addresses(node, doorman, partial(_memory_follows, memory))
        self.deliverer = Deliverer(node, adapters, self.links, paces=paces, addresses=self._addresses)
        ring = self.deliverer.wake
        conversations = Conversations(node, policy, tasks)
        desk = Desk(
            node,
            conversations=conversations,
            doorman=doorman,
            running=self._running,
            privacy=Privacy(node, home, memory),
            ring=ring,
        )
        self.titler = None if titles is None else Titler(node, titles, tasks)
        turns = Turns(
            node,
            conversations=conversations,
            thinker=Thinker(node, model, _toolbox(node, memory), memory),
            doorman=doorman,
            desk=desk,
            running=self._running,
            presences=Presences(node, adapters, paces, tasks=tasks, ring=ring),
            closing=Closing(node, ring),
            named=self._consider_title,
            ring=ring,
        )
        self.mailboxes = Mailboxes(turns.run, tasks=tasks, bound=config.gateway.max_concurrent_turns)
        self.intake = Intake(
            node,
            doorman=doorman,
            addresses=self._addresses,
            command=turns.command,
            running=self._running,
            mailboxes=self.mailboxes,
            tasks=tasks,
            ring=ring,
        )
        self._listening: list[asyncio.Task[None]] = []

    async def recover(self) -> None:
        """Before anything new: what waits for this process goes on."""
        await self._addresses.load()
        await self.deliverer.recover()
        await self.wake()

    async def wake(self) -> None:
        """Wake every conversation that waits for this process."""
        for key in await self._node.store.inbox.waiting_keys(tuple(self._adapters), node=self._node.id):
            self.mailboxes.wake(key)

    def start(self) -> None:
        """Send what is due, and listen on every adapter."""
        self._tasks.create_task(self.deliverer.run(self._tasks), name="delivery")
        for name, adapter in self._adapters.items():
            listen = partial(adapter.listen, partial(self._hear, name))
            task = self._tasks.create_task(supervise(self.links[name], listen, clock=self._node.clock), name=name)
            self._listening.append(task)

    async def _hear(self, name: str, event: Event, /) -> Accepted:
        self.links[name].heard()
        return await self.intake.accept(event)

    def _consider_title(self, session: Session) -> None:
        if self.titler is not None:
            self.titler.consider(session)

    async def stop(self, drain_seconds: float) -> None:
        """In stages, each bounded: adapters hear nothing more, turns end or are put aside, what is due goes out.

        Whatever still waits for something then (a busy conversation, a silent platform) is sent home: its row stays.
        """
        for task in self._listening:
            task.cancel()
        self.mailboxes.close()
        if not await _within(drain_seconds, self._running.idle()):
            for turn in tuple(self._running.values()):
                turn.cut_short(SHUTDOWN)
            await _within(FLUSH_SECONDS, self._running.idle())
        await _within(FLUSH_SECONDS, self.deliverer.idle())
        if self.titler is not None:
            await _within(FLUSH_SECONDS, self.titler.hurry())
        self._tasks.dismiss()


def _toolbox(node: Node, memory: Memory) -> Toolbox:
    known = {tool.spec.name: tool for tool in (SessionSearch(node.store, zone=node.zone), memory)}
    return Toolbox([known[name] for name in node.config().agent.tools if name in known])


async def _memory_follows(memory: Memory, old: Origin, new: Origin) -> None:
    """What the agent keeps about a room goes with it. Files that cannot be moved stay: the conversation goes on."""
    try:
        await memory.rename(memory_owner(Role.GUEST, old, shared=True), memory_owner(Role.GUEST, new, shared=True))
    except UserError as error:
        log.warning("memory.left_behind", platform=old.platform, reason=str(error))


def _pulse(adapter: PlatformAdapter) -> Pulse | None:
    return adapter.pulse if isinstance(adapter, HasPulse) else None


async def _within(seconds: float, stage: Coroutine[None, None, None]) -> bool:
    """Whether the stage ended in time."""
    try:
        async with asyncio.timeout(seconds):
            await stage
    except TimeoutError:
        return False
    return True
