"""One side of a comparison: a process that does what it is told, a line of JSON at a time. Standard library only."""

import json
import sys
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


def tail(latencies: Sequence[float]) -> dict[str, float]:
    """The 99th of a hundred, and the worst."""
    ordered = sorted(latencies)
    return {"p99": ordered[int(len(ordered) * 0.99)], "max": ordered[-1]}
