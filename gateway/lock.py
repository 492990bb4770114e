"""One gateway a home: a lock that the kernel drops with the process, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.errors import ConfigError


@contextmanager
def only_gateway(path: Path) -> Iterator[None]:
    """Hold the lock file while the block runs. Raises ConfigError when another gateway holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise ConfigError(
                f"Another gateway (process {holder}) already serves {path.parent}. "
                "Stop it first, or give this one its own folder with HERMES_HOME."
            ) from error
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def holder(path: Path) -> int | None:
    """The process id of the running gateway; None when none runs."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        words = os.read(handle, 32).decode(errors="replace").strip()
        return int(words) if words.isdigit() else None
    finally:
        os.close(handle)
    return None
