"""The last resort: a process that nobody's word can reach any more ends itself and says where it stood."""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Fuse:
    """Burns down unless it is lit anew in time: then every thread's trace goes to `out`, and the process ends with 1.

    It burns in a thread of C, below Python: neither a blocked loop nor a native call that keeps the interpreter's lock
    can hold it up.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def light(self, seconds: float) -> None:
        """From now on there are so many seconds."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._out)

    def trace(self) -> None:
        """Write down where every thread stands now."""
        faulthandler.dump_traceback(self._out)


@contextmanager
def burning(out: TextIO, seconds: float) -> Iterator[Fuse]:
    """A fuse that is lit for `seconds`, and put out when the block is left.

    Who is ended by SIGABRT meanwhile, as systemd's watchdog does it, leaves the same trace.
    """
    fuse = Fuse(out)
    faulthandler.enable(out)
    fuse.light(seconds)
    try:
        yield fuse
    finally:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
