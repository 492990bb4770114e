"""One side of a comparison: a process that does what it is told, a line of JSON at a time. Standard library only."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

Operation = Callable[..., Mapping[str, Any] | None]


def serve(operations: Mapping[str, Operation]) -> None:
    """Until stdin ends: each line names an operation and its arguments, and is answered by a line."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not stand among the answers
    for line in sys.stdin:
        wanted = json.loads(line)
        result = operations[wanted.pop("do")](**wanted)
        print(json.dumps(result or {}), file=answers, flush=True)


class Stopwatch:
    """Wall-clock time, and this process's time on a processor, of a block. Seconds."""

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu

    def per(self, count: int) -> dict[str, float]:
        """What one of `count` took."""
        return {"wall": self.wall / count, "cpu": self.cpu / count}


class LockWatch:
    """How long somebody else has to wait for the write lock at most, while a block runs: asked every millisecond."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.longest = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        connection = self._connect()
        while not self._over.wait(0.001):
            asked = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            self.longest = max(self.longest, time.perf_counter() - asked)
            connection.execute("ROLLBACK")
        connection.close()


def p95(latencies: Sequence[float]) -> float:
    """The 95th of a hundred."""
    return sorted(latencies)[int(len(latencies) * 0.95)]


def spread(figures: Sequence[float]) -> dict[str, float]:
    """The largest of some figures, and the middle one."""
    return {"worst": max(figures), "middle": sorted(figures)[len(figures) // 2]}


def tail(latencies: Sequence[float]) -> dict[str, float]:
    """The 99th of a hundred, and the worst."""
    ordered = sorted(latencies)
    return {"p99": ordered[int(len(ordered) * 0.99)], "max": ordered[-1]}
