"""What the service manager is told, through a real socket."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from hermes.gateway.systemd import Notifier
from worlds.daemon import PATIENCE, Daemon


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(PATIENCE)
        yield ear


def heard(manager: socket.socket) -> str:
    return manager.recv(1024).decode()


def test_each_state_reaches_the_manager(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    notifier.ready()
    notifier.alive()
    notifier.stopping(105)
    assert [heard(manager) for _ in range(3)] == ["READY=1", "WATCHDOG=1", "STOPPING=1\nEXTEND_TIMEOUT_USEC=105000000"]


def test_without_a_manager_nothing_is_sent() -> None:
    notifier = Notifier({})
    notifier.ready()
    assert notifier.watchdog_seconds is None


def test_a_manager_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).ready()


def test_the_watchdog_is_asked_for_in_microseconds() -> None:
    assert Notifier({"WATCHDOG_USEC": "60000000"}).watchdog_seconds == 60.0


async def answer_at_ready(manager: socket.socket, daemon: Daemon) -> int:
    """What a gateway says of itself at the moment at which it has told the manager that it is ready."""
    while await asyncio.to_thread(heard, manager) != "READY=1":
        pass
    async with aiohttp.ClientSession() as client, client.get(f"{daemon.url}/readyz") as response:
        return response.status


@pytest.mark.crash
async def test_a_gateway_says_when_it_takes_messages_that_it_lives_and_when_it_goes(
    tmp_path: Path, manager: socket.socket
) -> None:
    daemon = Daemon(tmp_path, {"provider": "scripted"}, drain_seconds=5)
    daemon.extra = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "200000"}
    async with asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(answer_at_ready(manager, daemon))
        async with daemon:
            assert await answer == 200
            assert [heard(manager) for _ in range(2)] == ["WATCHDOG=1"] * 2
            daemon.terminate()
            assert await daemon.ended() == 0
    assert "STOPPING=1\nEXTEND_TIMEOUT_USEC=50000000" in iter(lambda: heard(manager), "")
