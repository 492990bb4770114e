"""What the service manager is told, through a real socket."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.gateway.systemd import Notifier
from worlds.daemon import Daemon


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(1)
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


@pytest.mark.crash
async def test_a_gateway_says_when_it_takes_messages_that_it_lives_and_when_it_goes(
    tmp_path: Path, manager: socket.socket
) -> None:
    daemon = Daemon(tmp_path, {"provider": "scripted"}, drain_seconds=5)
    daemon.extra = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "200000"}
    async with daemon:
        said = [heard(manager) for _ in range(4)]
        assert sorted(said) == ["READY=1", *["WATCHDOG=1"] * 3]
        daemon.terminate()
        assert await daemon.ended() == 0
    assert "STOPPING=1\nEXTEND_TIMEOUT_USEC=50000000" in iter(lambda: heard(manager), "")
