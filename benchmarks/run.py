"""`make bench`: both sides in one run, turn and turn about; the ratio first, the figures beside it.

    python -m benchmarks.run [--scale N] [--write]

The peer is `hermes-agent`, installed into a virtual environment of its own below benchmarks/.venvs/.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
PEER = "hermes-agent==0.19.0"
PEER_HOME = HERE / ".venvs" / "peer"
PAGE = HERE.parent / "docs" / "benchmarks.md"
MARKS = ("<!-- The table is written by `make bench`. -->\n", "<!-- End of the written table. -->\n")

SEED = 20271201
ROUNDS = 3
"""Each side measures so many times, alternating; the median counts."""


class Side:
    """One of the two, in its own process and with its own interpreter."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        folder.mkdir(parents=True)
        environ = {**os.environ, "HERMES_HOME": str(folder), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.folder = folder
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, cwd=HERE.parent
        )

    def do(self, operation: str, **facts: Any) -> Mapping[str, Any]:
        """One operation; gives what it measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": operation, **facts}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{operation} failed; what it printed stands above")
        result: Mapping[str, Any] = json.loads(answer)
        return result

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Figures are seconds or bytes; less is better."""

    number: str
    what: str
    ours: float
    peer: float | None
    target: str
    unit: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As the table shows them: the ratio first."""
        ratio = "–" if self.peer is None else f"**{self.peer / self.ours:.1f}×**"
        peer = "–" if self.peer is None else figure(self.peer, self.unit)
        return (self.number, self.what, ratio, figure(self.ours, self.unit), peer, self.target)


def figure(value: float, unit: str) -> str:
    """A figure in its unit."""
    match unit:
        case "/s":
            return f"{1 / value:,.0f} /s"
        case "ms":
            return f"{value * 1000:,.2f} ms"
        case "MB":
            return f"{value / 1_000_000:.0f} MB"
        case "B":
            return f"{value:,.0f} B"
    raise ValueError(unit)


class Bench:
    """The two sides, and the rows that they have filled."""

    def __init__(self, ours: Side, peer: Side, scale: int, report: Callable[[Row], None]) -> None:
        self._ours = ours
        self._peer = peer
        self._scale = scale
        self._report = report
        self._seeds = iter(range(SEED, SEED + 1000))

    def both(self, operation: str, **facts: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """One operation on either side, once."""
        return self._ours.do(operation, **facts), self._peer.do(operation, **facts)

    def medians(self, operation: str, key: str = "wall", **facts: Any) -> tuple[float, float]:
        """The medians of both, measured in turns so that what else the machine does meets both."""
        ours, peer = [], []
        for _ in range(ROUNDS):
            ours.append(self._ours.do(operation, **facts)[key])
            peer.append(self._peer.do(operation, **facts)[key])
        return statistics.median(ours), statistics.median(peer)

    def fresh(self, operation: str, *keys: str, rounds: int = ROUNDS, **facts: Any) -> list[tuple[float, float]]:
        """The same for what writes, for several figures at once: each round writes other words, the same on both."""
        results = [self.both(operation, seed=next(self._seeds), **facts) for _ in range(rounds)]
        return [
            (
                statistics.median(ours[key] for ours, _ in results),
                statistics.median(peer[key] for _, peer in results),
            )
            for key in keys
        ]

    def row(self, number: str, what: str, pair: tuple[float, float | None], target: str, unit: str) -> None:
        """One line of the table is known."""
        self._report(Row(number, what, *pair, target, unit))

    def open(self, name: str) -> None:
        """A fresh store on either side."""
        for side in (self._ours, self._peer):
            (side.folder / name).mkdir()
            side.do("open", folder=str(side.folder / name))

    # -- the rows ---------------------------------------------------------------------------------------------------

    def appends(self) -> None:
        self.open("appends")
        for kind, count, target in (("mix", 3000, "≥ 6×"), ("2k", 1500, "≥ 2.5×"), ("50k", 200, "≥ 4×")):
            (pair,) = self.fresh("append", "wall", kind=kind, sessions=64, count=count)
            words = {"mix": "the mix", "2k": "2 KB each", "50k": "50 KB each"}[kind]
            self.row("1", f"append a message, 64 sessions, {words}", pair, target, "/s")
        for commits, words, target in ((1, "as one step", "≥ 4×"), (4, "in the four commits of a live turn", "–")):
            (pair,) = self.fresh("turn", "wall", turns=60, commits=commits)
            self.row("2", f"six messages of one turn, {words}", pair, target, "ms")

    def full_store(self) -> None:
        self.open("full")
        self.both("fill", seed=SEED, count=self._scale)
        late = self.both("late_appends", seed=SEED, count=2000)
        size = f"{self._scale:,}"
        self.row("3", f"append at {size} messages, 99th of 100", _pair(late, "p99"), "≤ 25 ms", "ms")
        self.row("3", f"append at {size} messages, the worst of 2,000", _pair(late, "max"), "≤ 1 s", "ms")
        self.row("4", f"disk for a message, at {size}", _pair(self.both("size"), "bytes"), "≤ 1.1 KB", "B")
        found = self.both("discover", times=20)
        self.row("5", f"search, the slowest of 14 queries, at {size}", _pair(found, "worst"), "≤ 50 ms", "ms")
        self.row("5", f"search, the middle one of them, at {size}", _pair(found, "middle"), "–", "ms")
        for writing, words, target in ((False, "alone", "≤ 2 ms"), (True, "while another writes", "≤ 30 ms")):
            around = self.both("scroll", seed=SEED, times=300, writing=writing)
            self.row("6", f"scroll {words}, 95th of 100, at {size}", _pair(around, "p95"), target, "ms")
        gone = self.both("prune", seed=SEED, count=500)
        self.row("9", f"prune 500 sessions, longest write lock, at {size}", _pair(gone, "longest"), "≤ 300 ms", "ms")

    def lists(self) -> None:
        self.open("lists")
        self.both("crowd", seed=SEED, sessions=10_000)
        self.row("7", "list 20 of 10,000 sessions", self.medians("list", times=20), "≤ 2 ms", "ms")
        self.row(
            "7", "browse 20 of 10,000 sessions (the agent's tool)", self.medians("browse", times=10), "≤ 2 ms", "ms"
        )
        self.both("long", seed=SEED, count=2000)
        self.row("8", "load a session of 2,000 messages", self.medians("load", times=10), "≤ 20 ms", "ms")

    def gateway(self) -> None:
        for sessions, rounds in ((64, ROUNDS), (1000, 1)):  # the peer takes minutes for a round with many
            self.open(f"gateway-{sessions}")
            self._peer.do("routes", keys=sessions)
            cpu, wall = self.fresh("gateway", "cpu", "wall", rounds=rounds, sessions=sessions, count=300)
            words = f"{sessions:,} sessions"
            self.row("10", f"processor time for a message, {words}", cpu, "≤ 3 ms, flat", "ms")
            self.row("10", f"messages in a burst, {words}", wall, "≥ 250 /s", "/s")
        self.open("routes")
        self.both("routes", keys=10_000)
        self.row("11", "routing update at 10,000 keys", self.medians("route", times=10), "≤ 1 ms", "ms")

    def commands(self, ours: str, peer: str) -> None:
        homes = {ours: self._ours.folder / "commands", peer: self._peer.folder / "commands"}
        for side, home in ((self._ours, homes[ours]), (self._peer, homes[peer])):
            home.mkdir()
            side.do("open", folder=str(home))
            side.do("crowd", seed=SEED, sessions=100)
        for words, target in ((["--version"], "≤ 100 ms"), (["sessions", "list"], "≤ 200 ms")):
            pair = tuple(_median(partial(_seconds, [program, *words], homes[program])) for program in (ours, peer))
            self.row("12", f"`hermes {' '.join(words)}`", (pair[0], pair[1]), target, "ms")
        memory = [_idle_memory(program, homes[program] / "idle") for program in (ours, peer)]
        self.row("13", "memory of an idle gateway without platforms", (memory[0], memory[1]), "≤ 60 MB", "MB")


def _pair(results: tuple[Mapping[str, Any], Mapping[str, Any]], key: str) -> tuple[float, float]:
    return results[0][key], results[1][key]


def _median(measure: Callable[[], float]) -> float:
    measure()  # the first one warms the disk's cache
    return statistics.median(measure() for _ in range(7))


def _seconds(command: Sequence[str], home: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, env={**os.environ, "HERMES_HOME": str(home)}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _idle_memory(program: str, home: Path) -> float:
    """Bytes that an idle gateway holds, ten seconds after its start."""
    home.mkdir()
    (home / "config.yaml").write_text("model: {provider: scripted}\ngateway: {http: {port: 0}}\n", encoding="utf-8")
    environ = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home)}
    process = subprocess.Popen(
        [program, "gateway", "run"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(10)
        return float(psutil.Process(process.pid).memory_info().rss)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


# -- the run ---------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scale", type=int, default=100_000, help="messages in the full store (100000)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    wanted = parser.parse_args(arguments)
    rows: list[Row] = []

    def report(row: Row) -> None:
        rows.append(row)
        print(" | ".join(row.cells).replace("*", ""), flush=True)

    peer_python = install_peer()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-bench-")))
        ours = stack.enter_context(_side([sys.executable, "-m", "benchmarks.ours"], folder / "ours"))
        peer = stack.enter_context(_side([str(peer_python), str(HERE / "peer.py")], folder / "peer"))
        bench = Bench(ours, peer, wanted.scale, report)
        facts = {"ours": ours.do("open", folder=str(_made(ours.folder / "facts")))}
        facts["peer"] = peer.do("open", folder=str(_made(peer.folder / "facts")))
        bench.appends()
        bench.gateway()
        bench.lists()
        bench.full_store()
        bench.commands(str(Path(sys.executable).with_name("hermes")), str(peer_python.with_name("hermes")))
    if wanted.write:
        write(rows, facts, wanted.scale)
    return 0


@contextmanager
def _side(command: Sequence[str], folder: Path) -> Iterator[Side]:
    side = Side(command, folder)
    with closing(side):
        yield side


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def install_peer() -> Path:
    """The peer's interpreter; makes its environment the first time."""
    python = PEER_HOME / "bin" / "python"
    if not (PEER_HOME / ".installed").exists():
        print(f"Installing {PEER} into {PEER_HOME} …", flush=True)
        shutil.rmtree(PEER_HOME, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(PEER_HOME)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEER], check=True, stderr=subprocess.DEVNULL)
        (PEER_HOME / ".installed").touch()
    return python


def write(rows: Sequence[Row], facts: Mapping[str, Mapping[str, Any]], scale: int) -> None:
    """Put the table between the page's marks."""
    heading = ("row", "what", "peer ÷ Hermes", "Hermes", "peer", "target")
    lines = [f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *(row.cells for row in rows))]
    told = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; SQLite {facts['ours']['sqlite']} (Hermes, `synchronous="
        f"{facts['ours']['synchronous']}`) and {facts['peer']['sqlite']} (peer, `{facts['peer']['synchronous']}`); "
        f"full store of {scale:,} messages, seed {SEED}, medians of {ROUNDS} rounds."
    )
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{MARKS[0]}\n{told}\n\n{table}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
