"""What every part of one Hermes process shares: who it is, what it keeps things in, and how it is configured."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from hermes.clock import Clock
from hermes.gateway.config import Config
from hermes.gateway.http.metrics import Metrics
from hermes.redact import Redactor
from hermes.sessions.ports import Store
from hermes.texts import Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One process: the daemon, or a terminal. Several may share a store."""

    id: str
    """`gateway-…` or `terminal-…`: owns leases, and what dies with its connections."""
    place: str
    """Where it is, for people: "the gateway", "a terminal"."""
    hex_digits: int
    """Length of the random part of the session ids it makes."""
    store: Store
    clock: Clock
    config: Callable[[], Config]
    """The configuration as it is now; read once a turn, so that a reload is a swap."""
    texts: Texts
    redactor: Redactor
    """Knows the live secrets; every text that leaves passes it."""
    metrics: Metrics
    model_name: str
    """The model that new sessions talk to, for people."""
    zone: tzinfo | None
    """None: the system's."""
    cwd: str | None = None
    """The folder that the person works in, for a process that has one."""
    git_branch: str | None = None
    """The branch that is checked out there."""
    source: str | None = None
    """What new sessions are marked with; None: the platform that they come through."""
