"""One task a key: in order inside, parallel across, bounded, gone when idle."""

import asyncio
from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from fakes import settle
from hermes.gateway.mailbox import Mailboxes
from hermes.sessions.model import SessionKey

ONE, TWO, THREE = (SessionKey(name) for name in ("one", "two", "three"))


class Queues:
    """What waits for each key, and how much of it is being worked on."""

    def __init__(self) -> None:
        self.waiting: defaultdict[SessionKey, list[str]] = defaultdict(list)
        self.done: list[tuple[SessionKey, str]] = []
        self.running: Counter[SessionKey] = Counter()
        self.most = 0
        self.gates: dict[SessionKey, asyncio.Event] = {}

    async def work(self, key: SessionKey) -> bool:
        self.running[key] += 1
        assert self.running[key] == 1
        self.most = max(self.most, self.running.total())
        if key in self.gates:
            await self.gates[key].wait()
        await asyncio.sleep(0)
        self.running[key] -= 1
        if not self.waiting[key]:
            return False
        self.done.append((key, self.waiting[key].pop(0)))
        return True


async def test_what_waits_is_done_in_order_and_the_mailbox_is_gone() -> None:
    queues = Queues()
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=8)
        queues.waiting[ONE] = ["a", "b", "c"]
        boxes.wake(ONE)
        assert boxes.is_live(ONE)
        await boxes.idle()
        assert (len(boxes), boxes.is_live(ONE)) == (0, False)
    assert queues.done == [(ONE, "a"), (ONE, "b"), (ONE, "c")]


async def test_a_wake_up_during_the_last_look_is_not_lost() -> None:
    queues = Queues()
    gate = queues.gates[ONE] = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=8)
        boxes.wake(ONE)
        await settle()
        boxes.wake(ONE)
        gate.set()
        await asyncio.sleep(0)
        queues.waiting[ONE] = ["late"]
        await boxes.idle()
    assert queues.done == [(ONE, "late")]


async def test_a_slow_key_delays_no_other() -> None:
    queues = Queues()
    gate = queues.gates[ONE] = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=8)
        queues.waiting |= {ONE: ["slow"], TWO: ["quick"]}
        boxes.wake(ONE)
        boxes.wake(TWO)
        await settle()
        assert queues.done == [(TWO, "quick")]
        assert len(boxes) == 1
        gate.set()
    assert queues.done == [(TWO, "quick"), (ONE, "slow")]


async def test_no_more_keys_are_worked_on_at_once_than_the_bound() -> None:
    queues = Queues()
    queues.gates = {key: asyncio.Event() for key in (ONE, TWO, THREE)}
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=2)
        for key, gate in queues.gates.items():
            queues.waiting[key] = ["x"]
            boxes.wake(key)
            del gate
        await settle()
        assert queues.running.total() == 2
        for gate in queues.gates.values():
            gate.set()
    assert queues.most == 2
    assert len(queues.done) == 3


async def test_closed_it_finishes_what_runs_and_wakes_nobody() -> None:
    queues = Queues()
    gate = queues.gates[ONE] = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=8)
        queues.waiting |= {ONE: ["running", "next"], TWO: ["never"]}
        boxes.wake(ONE)
        await settle()
        boxes.close()
        boxes.wake(TWO)
        gate.set()
        await boxes.idle()
    assert queues.done == [(ONE, "running")]


async def test_closed_it_begins_nothing_that_was_waiting_for_a_place() -> None:
    queues = Queues()
    gate = queues.gates[ONE] = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        boxes = Mailboxes(queues.work, tasks=tasks, bound=1)
        queues.waiting |= {ONE: ["running"], TWO: ["waits for a place"]}
        boxes.wake(ONE)
        boxes.wake(TWO)
        await settle()
        boxes.close()
        gate.set()
        await boxes.idle()
    assert queues.done == [(ONE, "running")]


async def test_with_nothing_to_do_it_is_idle_at_once() -> None:
    async with asyncio.TaskGroup() as tasks:
        await asyncio.wait_for(Mailboxes(Queues().work, tasks=tasks, bound=1).idle(), 1)


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO, THREE]), st.integers(0, 3)), max_size=30), st.integers(1, 3))
def test_whenever_it_arrives_everything_is_done_once_and_in_order(
    arrivals: list[tuple[SessionKey, int]], bound: int
) -> None:
    async def scene() -> Queues:
        queues = Queues()
        async with asyncio.TaskGroup() as tasks:
            boxes = Mailboxes(queues.work, tasks=tasks, bound=bound)
            for number, (key, pause) in enumerate(arrivals):
                queues.waiting[key].append(str(number))
                boxes.wake(key)
                await settle(pause)
            await boxes.idle()
        return queues

    queues = asyncio.run(scene())
    assert queues.most <= bound
    for key in (ONE, TWO, THREE):
        mine = [int(what) for whose, what in queues.done if whose == key]
        assert mine == [number for number, (whose, _) in enumerate(arrivals) if whose == key]
