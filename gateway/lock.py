"""One gateway a home: a lock that the kernel drops with the process, however it ends.

The file says who holds it, where that one listens, and the key that opens it to commands of the same home, a line each.
Like everything in the home, nobody but its owner can read it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import ConfigError

TRIES = 5
BLINK_SECONDS = 0.02

LONGEST = 4096
"""Bytes of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The running gateway of a home. `url` and `key` are None until it listens."""

    process: int
    url: str | None = None
    key: str | None = None


@contextmanager
def only_gateway(path: Path) -> Iterator[Callable[[str, str], None]]:
    """Hold the lock file while the block runs; gives what writes down the address that it listens at, and the key.

    Raises ConfigError when another gateway holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(handle):
            other = _read(handle)
            raise ConfigError(
                f"Another gateway (process {other.process if other else 'unknown'}) already serves {path.parent}. "
                "Stop it first, or give this one its own folder with HERMES_HOME."
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield lambda url, key: _note(handle, url, key)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Whether the lock could be had. `holder` takes it for a blink, so one refusal proves nothing."""
    for _ in range(TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(BLINK_SECONDS)
        else:
            return True
    return False


def holder(path: Path) -> Holder | None:
    """The running gateway; None when none runs."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read(handle)
    finally:
        os.close(handle)
    return None


def _note(handle: int, url: str, key: str) -> None:
    os.write(handle, f"{url}\n{key}\n".encode())


def _read(handle: int) -> Holder | None:
    process, *rest = os.pread(handle, LONGEST, 0).decode(errors="replace").splitlines() or [""]
    if not process.isdigit():
        return None
    url, key = rest if len(rest) == 2 else (None, None)
    return Holder(process=int(process), url=url, key=key)
