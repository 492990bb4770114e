"""Whether a process is well, and who is told."""

import asyncio
import socket
from pathlib import Path

from fakes import VirtualClock, settle
from hermes.errors import Unreachable
from hermes.gateway.supervise import Link, LinkState
from hermes.gateway.systemd import Notifier
from hermes.gateway.watch import STUCK_SECONDS, Watch


def test_readiness_tells_the_word_and_each_link() -> None:
    clock = VirtualClock(100.0)
    link = Link("web", clock)
    watch = Watch({"web": link}, stuck_for=lambda: 0.0)
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


def test_a_stuck_writer_is_not_ready() -> None:
    watch = Watch({}, stuck_for=lambda: STUCK_SECONDS)
    watch.word = "ready"
    assert (watch.readiness().ready, watch.readiness().word) == (False, "store stuck")


async def test_the_watchdog_is_fed_while_all_is_well_and_again_after_trouble(tmp_path: Path) -> None:
    clock, stuck = VirtualClock(), [0.0]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "60000000"})
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(Watch({}, stuck_for=lambda: stuck[0]).feed(notifier, clock))
            await settle()
            stuck[0] = STUCK_SECONDS
            await clock.advance(30)
            stuck[0] = 0.0
            await clock.advance(30)
            feeding.cancel()
        fed = [manager.recv(64) for _ in range(2)]
        assert fed == [b"WATCHDOG=1"] * 2
        assert clock.slept == [30.0, 30.0, 30.0]
