"""Whether a process is well, and who is told."""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from structlog.testing import capture_logs

from fakes import VirtualClock, settle
from hermes.errors import Unreachable
from hermes.gateway.fuse import Fuse
from hermes.gateway.supervise import Link, LinkState
from hermes.gateway.systemd import Notifier
from hermes.gateway.vital import Vital
from hermes.gateway.watch import FUSE_SECONDS, LATE_SECONDS, ROUND_SECONDS, Watch


class CountedFuse(Fuse):
    """Burns nothing; remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.lit: list[float] = []
        self.traces = 0

    def light(self, seconds: float) -> None:
        self.lit.append(seconds)

    def trace(self) -> None:
        self.traces += 1


def test_readiness_tells_the_word_and_each_link() -> None:
    clock = VirtualClock(100.0)
    link = Link("web", clock)
    watch = Watch({"web": link}, {})
    assert (watch.readiness().ready, watch.readiness().word) == (False, "starting")
    watch.word = "ready"
    link.heard()
    link.turn(LinkState.DOWN, Unreachable("web", "no route").detail, 3)
    facts = watch.readiness().adapters["web"]
    assert watch.readiness().ready
    assert facts == {
        "state": "down",
        "since": 100.0,
        "last_inbound": 100.0,
        "last_sign": None,
        "last_send": None,
        "streak": 3,
        "reason": "no route",
    }


def test_what_is_stuck_is_named_and_the_gateway_is_not_ready() -> None:
    clock = VirtualClock()
    link, housekeeping = Link("telegram", clock), Vital(clock)
    watch = Watch({"telegram": link}, {"store": lambda: LATE_SECONDS + 1, "delivery": lambda: 0.0})
    watch.add("housekeeping", housekeeping.late)
    watch.word = "ready"
    assert (watch.readiness().ready, watch.readiness().word) == (False, "stuck: store")
    link.vital.expect(-LATE_SECONDS - 1)
    housekeeping.expect(-LATE_SECONDS - 1)
    assert watch.readiness().word == "stuck: store, telegram, housekeeping"


def test_who_is_late_only_for_a_while_or_waits_for_what_may_never_come_is_well() -> None:
    clock = VirtualClock()
    vital = Vital(clock)
    watch = Watch({}, {"delivery": vital.late})
    assert watch.stuck() == []
    vital.expect(-LATE_SECONDS)
    assert watch.stuck() == []
    vital.expect(-LATE_SECONDS - 1)
    assert watch.stuck() == ["delivery"]
    vital.rest()
    assert watch.stuck() == []


@asynccontextmanager
async def fed(
    folder: Path, late: Callable[[], float], *, manager_seconds: int | None = 60
) -> AsyncIterator[tuple[VirtualClock, socket.socket, CountedFuse]]:
    """A watch that is fed, with what the service manager hears."""
    clock, fuse = VirtualClock(), CountedFuse()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder / "notify"))
        manager.setblocking(False)
        asked = {} if manager_seconds is None else {"WATCHDOG_USEC": f"{manager_seconds}000000"}
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), **asked})
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(Watch({}, {"store": late}).feed(notifier, fuse, clock))
            await settle()
            yield clock, manager, fuse
            feeding.cancel()


def heard(manager: socket.socket) -> list[bytes]:
    words = []
    while True:
        try:
            words.append(manager.recv(64))
        except BlockingIOError:
            return words


async def test_the_watchdog_is_silent_while_a_task_is_stuck_and_fed_again_after_it(tmp_path: Path) -> None:
    late = [0.0]
    async with fed(tmp_path, lambda: late[0]) as (clock, manager, fuse):
        assert (heard(manager), fuse.lit) == ([b"WATCHDOG=1"], [FUSE_SECONDS])
        late[0] = LATE_SECONDS + 1
        await clock.advance(10 * ROUND_SECONDS)
        assert (heard(manager), len(fuse.lit)) == ([], 1)
        assert fuse.traces == 1
        late[0] = 0.0
        await clock.advance(ROUND_SECONDS)
        assert (heard(manager), len(fuse.lit)) == ([b"WATCHDOG=1"], 2)


async def test_a_manager_that_wants_to_hear_more_often_does(tmp_path: Path) -> None:
    async with fed(tmp_path, lambda: 0.0, manager_seconds=10) as (clock, manager, _):
        await clock.advance(20)
        assert len(heard(manager)) == 5


async def test_without_a_manager_the_fuse_is_renewed_all_the_same(tmp_path: Path) -> None:
    async with fed(tmp_path, lambda: 0.0, manager_seconds=None) as (clock, _, fuse):
        await clock.advance(2 * ROUND_SECONDS)
        assert len(fuse.lit) == 3


async def test_the_log_says_who_is_stuck_and_where_and_when_it_is_well_again(tmp_path: Path) -> None:
    answer, late = asyncio.Event(), [0.0]

    async def ask_the_platform() -> None:
        await answer.wait()

    async def listen() -> None:
        await ask_the_platform()

    with capture_logs() as lines:
        async with asyncio.TaskGroup() as tasks, fed(tmp_path, lambda: late[0]) as (clock, _, _):
            tasks.create_task(listen(), name="store")
            late[0] = LATE_SECONDS + 1
            await clock.advance(3 * ROUND_SECONDS)
            late[0] = 0.0
            await clock.advance(3 * ROUND_SECONDS)
            answer.set()
    first, last = lines
    assert (first["event"], first["stuck"]) == ("watchdog.stuck", ["store"])
    calls = [call.split(".")[-1].split(":")[0] for call in first["where"]["store"].split(" > ")]
    assert calls == ["listen", "ask_the_platform", "wait"]
    assert last["event"] == "watchdog.well_again"
