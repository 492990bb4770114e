"""Our side: the store as the gateway opens it, and the gateway itself over a room inside the process."""

import asyncio
import random
import resource
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.corpus import QUERIES, Said, conversation, rows, six, talk, texts_of
from benchmarks.side import LockWatch, Stopwatch, p95, serve, spread, tail

from hermes import ids
from hermes.adapters.base import LooseBookmarks, Outbound, Surroundings
from hermes.adapters.loopback import Loopback, LoopbackConfig, Packet, Room
from hermes.agent.models.scripted import Rule, ScriptedChat
from hermes.agent.tools.base import ToolContext
from hermes.agent.tools.session_search import SessionSearch
from hermes.clock import SystemClock
from hermes.gateway.app import App
from hermes.gateway.config import Config
from hermes.gateway.crew import Crew
from hermes.gateway.daemon import spare_the_collector
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.neighbours import GATEWAY
from hermes.gateway.node import Node
from hermes.home import Home
from hermes.ids import GATEWAY_HEX
from hermes.redact import Redactor
from hermes.sessions import dbapi
from hermes.sessions.filters import Filter
from hermes.sessions.model import (
    OWNER,
    Birth,
    ConversationId,
    Kind,
    Lease,
    NewMessage,
    Page,
    Query,
    Role,
    SessionId,
    SessionKey,
    Step,
    ToolCall,
    TurnId,
)
from hermes.sessions.pruning import prune, stamps
from hermes.sessions.store import SqliteStore, open_store
from hermes.texts import Texts

AT_ONCE = 64
"""Conversations that are written side by side while a store is filled."""


class Ours:
    """One store at a time, on one loop."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._store: SqliteStore | None = None

    @property
    def store(self) -> SqliteStore:
        assert self._store is not None
        return self._store

    def open(self, folder: str) -> Mapping[str, Any]:
        if self._store is not None:
            self._runner.run(self._store.close())
        self._folder = Path(folder)
        self._store = self._runner.run(open_store(self._folder / "state.db"))
        return {"sqlite": ".".join(map(str, dbapi.VERSION)), "synchronous": "FULL"}

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, kind: str, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        """One message a commit, from so many sessions at once; each waits until its own is on disk."""
        return self._runner.run(self._append(kind, seed, sessions, count))

    async def _append(self, kind: str, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        said = texts_of(kind, seed, count)
        writers = [await self._begin(f"append-{kind}-{seed}-{number}") for number in range(sessions)]

        async def write(number: int) -> None:
            for one in said[number::sessions]:
                await writers[number].write((_row(one),))

        with Stopwatch() as watch:
            async with asyncio.TaskGroup() as group:
                for number in range(sessions):
                    group.create_task(write(number))
        return watch.per(len(said))

    def turn(self, seed: int, turns: int, commits: int) -> Mapping[str, Any]:
        """Six messages in one session: in one commit, or in the four that a turn makes while it runs."""
        return self._runner.run(self._turn(seed, turns, commits))

    async def _turn(self, seed: int, turns: int, commits: int) -> Mapping[str, Any]:
        chance = random.Random(seed)
        writer = await self._begin(f"turn-{seed}")
        cuts = {1: (0, 6), 4: (0, 1, 3, 5, 6)}[commits]
        every = [[_row(one) for one in six(chance)] for _ in range(turns)]
        with Stopwatch() as watch:
            for turn in every:
                for start, end in pairwise(cuts):
                    await writer.write(turn[start:end])
        return watch.per(turns)

    def fill(self, seed: int, count: int) -> None:
        """A conversation a commit, many side by side, by the writing path of every day."""
        self._runner.run(self._write_all(f"fill-{seed}", rows(seed, count)))

    def crowd(self, seed: int, sessions: int) -> None:
        chance = random.Random(seed)
        self._runner.run(self._write_all("crowd", (conversation(chance, 1) for _ in range(sessions))))

    async def _write_all(self, name: str, every: Iterable[list[Said]]) -> None:
        numbered = enumerate(every)

        async def write() -> None:
            for number, one in numbered:
                writer = await self._begin(f"{name}-{number}")
                await writer.write([_row(said) for said in one])

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(write())

    def size(self) -> Mapping[str, Any]:
        return self._runner.run(self._size())

    async def _size(self) -> Mapping[str, Any]:
        total = await asyncio.to_thread(_checkpointed, self._folder / "state.db")
        return {"bytes": (self._folder / "state.db").stat().st_size / total}

    def late_appends(self, seed: int, count: int) -> Mapping[str, Any]:
        return self._runner.run(self._late_appends(seed, count))

    async def _late_appends(self, seed: int, count: int) -> Mapping[str, Any]:
        writer = await self._begin(f"late-{seed}")
        took = []
        for one in texts_of("mix", seed, count):
            began = time.perf_counter()
            await writer.write((_row(one),))
            took.append(time.perf_counter() - began)
        return tail(took)

    # -- reading ----------------------------------------------------------------------------------------------------

    def list(self, times: int) -> Mapping[str, Any]:
        return self._runner.run(self._list(times))

    async def _list(self, times: int) -> Mapping[str, Any]:
        with Stopwatch() as watch:
            for _ in range(times):
                assert len(await self.store.list(Page(limit=20), OWNER)) == 20
        return watch.per(times)

    def browse(self, times: int) -> Mapping[str, Any]:
        return self._runner.run(self._browse(times))

    async def _browse(self, times: int) -> Mapping[str, Any]:
        tool, context = SessionSearch(self.store), _context()
        with Stopwatch() as watch:
            for _ in range(times):
                assert (await tool({"limit": 20}, context)).text
        return watch.per(times)

    def long(self, seed: int, count: int) -> None:
        said = conversation(random.Random(seed), count)[:count]
        self._runner.run(self._write_all("long", [said]))

    def load(self, times: int) -> Mapping[str, Any]:
        return self._runner.run(self._load(times))

    async def _load(self, times: int) -> Mapping[str, Any]:
        session = (await self.store.find(_key("long-0"))) or None
        assert session is not None
        with Stopwatch() as watch:
            for _ in range(times):
                assert len(await self.store.history(session.id)) > 1000
        return watch.per(times)

    def discover(self, times: int) -> Mapping[str, Any]:
        """The agent's tool, each query so often: the 95th of a hundred of the slowest query, and of the middle one."""
        return self._runner.run(self._discover(times))

    async def _discover(self, times: int) -> Mapping[str, Any]:
        tool, context = SessionSearch(self.store), _context()
        return spread([await self._timed(times, partial(tool, {"query": query}, context)) for query in QUERIES])

    def scroll(self, seed: int, times: int, *, writing: bool) -> Mapping[str, Any]:
        """Ten messages to each side of a random one, alone or while another task appends."""
        return self._runner.run(self._scroll(seed, times, writing=writing))

    async def _scroll(self, seed: int, times: int, *, writing: bool) -> Mapping[str, Any]:
        places = await self.store.readers.run(partial(_places, seed=seed, count=times))
        writer = await self._begin(f"beside-{seed}")
        took = []
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(self._append_for_ever(writer)) if writing else None
            for session, message in places:
                began = time.perf_counter()
                await self.store.search.scroll(session, message, 10, OWNER)
                took.append(time.perf_counter() - began)
            if beside is not None:
                beside.cancel()
        return {"p95": p95(took)}

    async def _append_for_ever(self, writer: "Conversation") -> None:
        said = texts_of("mix", 1, 500)
        while True:
            for one in said:
                await writer.write((_row(one),))

    def prune(self, seed: int, count: int) -> Mapping[str, Any]:
        """Delete so many conversations as `hermes sessions prune` does; how long others wait for the lock at most."""
        return self._runner.run(self._prune(seed, count))

    async def _prune(self, seed: int, count: int) -> Mapping[str, Any]:
        found = [one for one in await self.store.select(Filter(), OWNER) if f"fill-{seed}-" in one.conversation]
        path = str(self._folder / "state.db")
        with LockWatch(lambda: dbapi.connect(path, timeout=600, isolation_level=None)) as watch, Stopwatch() as whole:
            done = await prune(self.store, found[:count], await stamps(self.store, found[:count]), now=time.time)
        assert done.gone == count, done
        return {"longest": watch.longest, "wall": whole.wall}

    async def _timed(self, times: int, work: Callable[[], Awaitable[object]]) -> float:
        took = []
        for _ in range(times):
            began = time.perf_counter()
            await work()
            took.append(time.perf_counter() - began)
        return p95(took)

    # -- recall -----------------------------------------------------------------------------------------------------

    def learn(self, conversations: Sequence[Sequence[str]]) -> None:
        """Conversations of plain talk, a question and its answers each."""
        every = [
            [Said("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(one)] for one in conversations
        ]
        self._runner.run(self._write_all("recall", every))

    def recall(self, queries: Sequence[str], limit: int) -> Mapping[str, Any]:
        """Which conversations each query finds, by number."""
        return {"found": [self._runner.run(self._found(query, limit)) for query in queries]}

    async def _found(self, query: str, limit: int) -> Sequence[int]:
        found = await self.store.search.discover(Query(text=query, limit=limit), OWNER)
        return sorted(int(hit.session.id.rpartition("-")[2]) for hit in found.hits)

    # -- the routing index, and the gateway -------------------------------------------------------------------------

    def routes(self, keys: int) -> None:
        self._runner.run(self._routes(keys))

    async def _routes(self, keys: int) -> None:
        numbers = iter(range(keys))

        async def make() -> None:
            for number in numbers:
                await self.store.open(_key(f"route-{number}"), _birth(f"route-{number}"))

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(make())
        self._keys = keys

    def route(self, times: int) -> Mapping[str, Any]:
        return self._runner.run(self._route(times))

    async def _route(self, times: int) -> Mapping[str, Any]:
        """A message comes from a chat whose name has changed: its route is written anew."""
        with Stopwatch() as watch:
            for number in range(times):
                name = f"route-{number * 7 % self._keys}"
                await self.store.open(_key(name), _birth(name, origin=f'{{"named": {number}}}'))
        return watch.per(times)

    def gateway(self, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        """A whole gateway with a model that answers at once: from the wire to the shown answer."""
        return self._runner.run(self._gateway(seed, sessions, count))

    async def _gateway(self, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        clock = SystemClock()
        folder, room = self._folder / f"gateway-{seed}", CountingRoom()
        folder.mkdir()
        async with AsyncExitStack() as stack:
            store = await open_store(folder / "state.db")
            stack.push_async_callback(store.close)
            around = Surroundings(instance="room", clock=clock, cache=folder, bookmarks=LooseBookmarks(clock))
            adapters = {"room": Loopback(LoopbackConfig(), around, room)}
            model = ScriptedChat(clock, (Rule(say=talk(random.Random(seed), 60)),))
            tasks = await stack.enter_async_context(Crew())
            app = App(_node(store, clock), Home(folder), adapters=adapters, model=model, titles=None, tasks=tasks)
            await app.recover()
            app.start()
            await _converse(room, seed, sessions, sessions)  # every chat has begun
            with Stopwatch() as watch:
                await _converse(room, seed + 1, sessions, count)
            await app.stop(5.0)
        return watch.per(count)

    def memory(self) -> Mapping[str, Any]:
        return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    async def _begin(self, name: str) -> "Conversation":
        session = await self.store.open(_key(name), _birth(name))
        lease = await self.store.leases.take(
            session.conversation, owner="bench", place="a benchmark", now=time.time(), ttl=3600
        )
        return Conversation(self.store, session.id, lease)


class Conversation:
    """A conversation that may be written to."""

    def __init__(self, store: SqliteStore, session: SessionId, lease: Lease) -> None:
        self._store = store
        self._session = session
        self._lease = lease

    async def write(self, messages: Sequence[NewMessage]) -> None:
        """One commit."""
        step = Step(turn=TurnId("turn"), session=self._session, at=time.time(), messages=tuple(messages))
        await self._store.commit(self._lease, step)


def _context() -> ToolContext:
    return ToolContext(
        conversation=ConversationId("none"), scope=OWNER, role="owner", memory_owner="owner", now=time.time()
    )


def _places(connection: dbapi.Connection, seed: int, count: int) -> Sequence[tuple[SessionId, int]]:
    """Random messages of talk, each with its session."""
    (last,) = connection.execute("SELECT max(id) FROM messages").fetchone()
    chance = random.Random(seed)
    places: list[tuple[SessionId, int]] = []
    while len(places) < count:
        wanted = chance.randrange(1, last)
        row = connection.execute(
            "SELECT session_id, id FROM messages WHERE id >= ? AND kind = 'talk' LIMIT 1", (wanted,)
        ).fetchone()
        places += [] if row is None else [(SessionId(row[0]), row[1])]
    return places


def _checkpointed(path: Path) -> int:
    """Messages in a store whose log has been moved into its file."""
    connection = dbapi.connect(str(path))
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])
    finally:
        connection.close()


def _node(store: SqliteStore, clock: SystemClock) -> Node:
    config = Config.model_validate({"access": {"allow_all": True}, "gateway": {"user_rate_per_minute": 1_000_000}})
    return Node(
        id=ids.fresh(GATEWAY),
        place="the gateway",
        hex_digits=GATEWAY_HEX,
        store=store,
        clock=clock,
        config=lambda: config,
        texts=Texts("en"),
        redactor=Redactor(()),
        metrics=Metrics(),
        model_name="scripted",
        zone=UTC,
    )


class CountingRoom(Room):
    """A room that tells when so many messages are shown."""

    def __init__(self) -> None:
        super().__init__(forgets=True)
        self._wanted = 0
        self._reached = asyncio.Event()

    async def shows(self, count: int) -> None:
        """Wait for so many."""
        self._wanted = count
        self._reached.clear()
        if len(self.shown) < count:
            await self._reached.wait()

    async def post(self, out: Outbound) -> str:
        shown = await super().post(out)
        if len(self.shown) >= self._wanted:
            self._reached.set()
        return shown


async def _converse(room: CountingRoom, seed: int, sessions: int, count: int) -> None:
    """So many messages, from every chat in turn and never two of one chat at once, until all are answered."""
    chance, asked = random.Random(seed), len(room.shown)
    for first in range(0, count, sessions):
        wave = min(sessions, count - first)
        for number in range(wave):
            id_ = f"{seed}-{first + number}"
            packet = Packet(
                id=id_, chat=str(number), kind="dm", user=str(number), text=talk(chance, 20), at=time.time()
            )
            room.speak(packet)
        asked += wave
        await room.shows(asked)


def _key(name: str) -> SessionKey:
    return SessionKey(f"agent:main:telegram:dm:{name}")


def _birth(name: str, origin: str = "{}") -> Birth:
    return Birth(
        id=SessionId(f"20270101_000000_{name}"), source="telegram", at=time.time(), origin=origin, user_id=name
    )


def _row(one: Said) -> NewMessage:
    calls = () if one.call is None else (ToolCall(id=one.call[0], name=one.call[1], arguments=one.call[2]),)
    talks = one.role in {"user", "assistant"} and one.text
    return NewMessage(
        role=Role(one.role),
        kind=Kind.TALK if talks else Kind.TOOL,
        content=one.text,
        at=time.time(),
        tool_calls=calls,
        tool_call_id=one.answers,
        tool_name=None if one.answers is None else "terminal",
    )


if __name__ == "__main__":
    spare_the_collector()  # as the gateway does
    with asyncio.Runner() as runner:
        ours = Ours(runner)
        serve({name: getattr(ours, name) for name in dir(ours) if not name.startswith("_") and name != "store"})
