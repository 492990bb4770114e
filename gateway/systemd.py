"""Telling the service manager how we are: sd_notify, in the few lines that it takes (see sd_notify(3))."""

import os
import socket
from collections.abc import Mapping

import structlog

log = structlog.get_logger(__name__)


class Notifier:
    """Sends states to `$NOTIFY_SOCKET`; without one, nowhere."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = int(environ.get("WATCHDOG_USEC", "0")) / 1_000_000 or None
        """How often the manager wants to hear from us; None: not at all."""

    def ready(self) -> None:
        """Messages are taken from now on."""
        self._send("READY=1")

    def stopping(self, seconds: float) -> None:
        """The staged stop has begun and may take that long."""
        self._send(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def alive(self) -> None:
        """Every critical task makes progress."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={text}")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as wire:
                wire.sendto(state.encode(), self._address)
        except OSError as error:
            log.warning("systemd.not_told", state=state, reason=str(error))
