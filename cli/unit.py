"""The text of the systemd unit, for the whole machine and for one account. Pure; `hermes.service` is made from it."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM_HOME = Path("/var/lib/hermes")
SYSTEM_COMMAND = "/usr/local/bin/hermes"
ACCOUNT = "hermes"
"""Whom the system's service runs as."""

BEHIND_PROTECTION = ("/home/", "/root/", "/run/user/")
"""What ProtectHome=yes hides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One installation: what runs, on which home, and for whom."""

    command: str
    """The absolute path of `hermes`."""
    home: Path
    is_system: bool

    @property
    def name(self) -> str:
        """`hermes.service` for the usual home; any other home has a service of its own."""
        usual = SYSTEM_HOME if self.is_system else Path.home() / ".hermes"
        if self.home == usual:
            return "hermes.service"
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", self.home.name).strip("-") or "home"
        return f"hermes-{slug}-{hashlib.sha256(str(self.home).encode()).hexdigest()[:6]}.service"

    @property
    def text(self) -> str:
        """The unit."""
        lines = (*_unit(self), *_service(self), *_install(self))
        return "\n".join(lines) + "\n"


def _unit(service: Service) -> Iterator[str]:
    yield "# Hermes as a service; docs/running.md says how to install it. Written by `hermes gateway install`."
    yield ""
    yield "[Unit]"
    yield "Description=Hermes, an AI agent in the chats you already use"
    if service.is_system:
        yield "Wants=network-online.target"
        yield "After=network-online.target"
    yield "# A crash loop ends after ten starts in five minutes; whatever dies more rarely always comes back."
    yield "StartLimitIntervalSec=300"
    yield "StartLimitBurst=10"
    yield ""


def _service(service: Service) -> Iterator[str]:
    yield "[Service]"
    yield "Type=notify"
    yield "NotifyAccess=main"
    yield f"ExecStart={_quoted(service.command)} gateway run"
    yield f"Environment={_quoted(f'HERMES_HOME={service.home}')}"
    if service.is_system:
        yield from _account(service)
    yield ""
    yield from SUPERVISION
    yield ""
    yield "# It writes into its own folder, talks to the network, and needs nothing else of this machine."
    yield from EVERYWHERE
    if service.is_system:
        yield from BY_NAMESPACES
        hidden = service.command.startswith(BEHIND_PROTECTION) or f"{service.home}/".startswith(BEHIND_PROTECTION)
        yield f"ProtectHome={'read-only' if hidden else 'yes'}"
    yield ""


def _account(service: Service) -> Iterator[str]:
    yield f"User={ACCOUNT}"
    yield f"Group={ACCOUNT}"
    yield f"WorkingDirectory={service.home}"
    if service.home == SYSTEM_HOME:
        yield "StateDirectory=hermes"
        yield "StateDirectoryMode=0700"
    else:
        yield f"ReadWritePaths={_quoted(str(service.home))}"


def _install(service: Service) -> Iterator[str]:
    yield "[Install]"
    yield f"WantedBy={'multi-user' if service.is_system else 'default'}.target"


def _quoted(word: str) -> str:
    """A word as systemd reads it: percent signs are its specifiers, blanks need quotes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[\s\"'\\]", word) else escaped


SUPERVISION: Sequence[str] = (
    "Restart=always",
    "RestartSec=5",
    "# A configuration that cannot be used: starting again would not help.",
    "RestartPreventExitStatus=78",
    "RestartForceExitStatus=75",
    "# A start may migrate a large store first.",
    "TimeoutStartSec=900",
    "# gateway.drain_seconds (60), 45 s to flush and close, and a margin. A longer drain asks for more by itself.",
    "TimeoutStopSec=120",
    "# The signal goes to the gateway alone: it ends the embedded model itself, after the last answer.",
    "KillMode=mixed",
    "# Fed while the event loop turns, and while the store's writer, delivery, housekeeping and every adapter get on.",
    "WatchdogSec=60",
)

EVERYWHERE: Sequence[str] = (
    "UMask=0077",
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RestrictNamespaces=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "# Holds for the embedded model's runtime too: xllamacpp, on the processor alone, makes no code at run time.",
    "MemoryDenyWriteExecute=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "SystemCallErrorNumber=EPERM",
)
"""What an account's own service manager can do as well: it needs no namespaces."""

BY_NAMESPACES: Sequence[str] = (
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "ProtectSystem=strict",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateUsers=yes",
    "PrivateIPC=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "RemoveIPC=yes",
)
