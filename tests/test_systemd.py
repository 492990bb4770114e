"""What the service manager is told, through a real socket."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.gateway.systemd import Notifier


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
