"""Who else works on this home, and what is done about those who died.

A terminal signs in with a lock that the kernel drops with the process, however it ends. The gateway's own lock
(lock.py) says the same of gateways: there is only one, so every other that left something behind is dead.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from hermes.sessions.ports import Store

log = structlog.get_logger(__name__)

GATEWAY = "gateway"
TERMINAL = "terminal"
"""What the node ids of each kind begin with."""


@contextmanager
def signed_in(folder: Path, node: str) -> Iterator[None]:
    """Be known as alive while the block runs."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / node, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        (folder / node).unlink(missing_ok=True)
        os.close(handle)


class Neighbours:
    """What the gateway knows of other processes; only the one that holds the home's lock may ask."""

    def __init__(self, store: Store, folder: Path, *, me: str) -> None:
        self._store = store
        self._folder = folder
        self._me = me

    async def bury(self, at: float) -> None:
        """End what the dead have left open, so that no event waits for ever."""
        await self._store.leases.bury(owner_prefix=f"{GATEWAY}-", except_owner=self._me)
        for node in await self._store.inbox.connected():
            if node != self._me and self._is_gone(node):
                events = await self._store.inbox.abandon(node, at=at)
                log.info("neighbour.buried", node=node, events=events)

    def _is_gone(self, node: str) -> bool:
        if not node.startswith(f"{TERMINAL}-"):
            return True
        path = self._folder / node
        if is_open(path):
            return False
        path.unlink(missing_ok=True)
        return True


def is_open(sign: Path) -> bool:
    """Whether the terminal that signed in with this file still lives."""
    try:
        handle = os.open(sign, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
