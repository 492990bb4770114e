"""`hermes sessions browse` over real stores: on prompt_toolkit's pipes, in a real pseudo-terminal, and without one."""

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from io import StringIO
from pathlib import Path
from subprocess import Popen

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from contracts.store.facts import T0, assistant, begin, summary, tell, tool, user, write
from hermes.cli.browse import Peek, choose, last_words, read_rows
from hermes.cli.picker import Row, row_of
from hermes.sessions.database import connect, open_readable
from hermes.sessions.lookup import list_tips
from hermes.sessions.model import OWNER, Page, Session, SessionId, Split
from hermes.sessions.store import SqliteStore, open_store
from worlds.shell import PATIENCE, Shell

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"
NOTHING_YET = "No conversations yet. Start one with: hermes chat\n"


# -- what is read ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def kept(path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(path)
    try:
        yield store
    finally:
        await store.close()


async def fill(path: Path, *names: str) -> list[SessionId]:
    """Conversations with one question each, the last one last active."""
    async with kept(path) as store:
        told = [await tell(store, name, f"about {name}", at=T0 + at) for at, name in enumerate(names)]
        return [one.id for one in told]


async def test_the_rows_are_those_of_the_list_without_what_is_archived(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await fill(path, "a", "b")
    async with kept(path) as store:
        hidden = await tell(store, "hidden", at=T0 + 10)
        await store.archive(hidden.conversation, OWNER, archived=True)
        titled = await tell(store, "c", at=T0 + 11, source="cli")
        await tell(store, "timer", at=T0 - 1, source="cron")
        _, lease = await begin(store, "silent", at=T0 + 14)
        await store.leases.release(lease)
        await store.rename(titled.id, "The third", by_person=True)
    with closing(open_readable(path)) as connection:
        for source in (None, "cli", "telegram", "cron"):
            listed = list_tips(connection, Page(source=source), OWNER)
            assert read_rows(connection, source=source, limit=9) == tuple(map(row_of, listed))
        rows = read_rows(connection, source=None, limit=2)
        assert [row.name for row in rows] == ["The third", "about b"]


async def test_a_preview_is_the_recap_of_the_last_words_over_all_segments(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with kept(path) as store:
        session, lease = await begin(store, "a")
        await write(store, lease, session, *(user(f"question {number}", at=T0) for number in range(20)))
        child = SessionId("20270115_090000_child")
        await store.split(lease, session.id, Split(child=child, head=(), summary=summary("so far"), tail=(), at=T0 + 1))
        tip = await store.get(child, OWNER)
        await write(store, lease, tip, tool("x" * 9000), assistant("Done. " * 5000), turn="turn-2", at=T0 + 2)
    with closing(open_readable(path)) as connection:
        (row,) = read_rows(connection, source=None, limit=9)
        words = last_words(connection, row)
    assert row.id == child
    assert words[:-1] == [f"● question {number}" for number in range(11, 20)]
    assert words[-1].startswith("◆ Done. Done.")
    assert len(words[-1]) < 300


# -- a screen ----------------------------------------------------------------------------------------------------------


class Glass:
    """What a terminal shows of the bytes that it gets: as much of the VT100 as prompt_toolkit uses."""

    _SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|\x1b[=>78]|\x1b\][^\x07]*\x07")

    def __init__(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)
        self._cells: dict[tuple[int, int], str] = {}
        self._x = self._y = 0
        self._rest = ""

    def write(self, text: str) -> None:
        text, at = self._rest + text, 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
            elif (found := self._SEQUENCE.match(text, at)) is None:
                break  # its end has not come yet
            else:
                self._obey(found[1], found[2], found[3])
                at = found.end()
        self._rest = text[at:]

    def lines(self) -> list[str]:
        columns, rows = self.size
        return ["".join(self._cells.get((x, y), " ") for x in range(columns)).rstrip() for y in range(rows)]

    def _put(self, one: str) -> None:
        columns, rows = self.size
        if one == "\r":
            self._x = 0
        elif one == "\n":
            self._y = min(self._y + 1, rows - 1)
        elif one == "\b":
            self._x -= 1
        elif unicodedata.combining(one):
            self._cells[self._x - 1, self._y] += one
        elif one.isprintable() and self._x < columns:
            wide = unicodedata.east_asian_width(one) in "WF"
            self._cells[self._x, self._y] = one
            if wide:
                self._cells[self._x + 1, self._y] = ""
            self._x += 2 if wide else 1
        else:
            assert one == "\x07" or self._x >= columns, f"{one!r} must not reach a terminal"

    def _obey(self, private: str, numbers: str, what: str | None) -> None:
        first, *rest = [int(number or 0) for number in numbers.split(";")] if not private else [0]
        moves = {"A": (0, -1), "B": (0, 1), "C": (1, 0), "D": (-1, 0)}
        if what in moves:
            x, y = moves[what]
            self._x, self._y = self._x + x * max(first, 1), self._y + y * max(first, 1)
        elif what == "H":
            self._x, self._y = max(rest[0] if rest else 1, 1) - 1, max(first, 1) - 1
        elif private and what in {"h", "l"} and numbers == "1049":  # another screen
            self._x = self._y = 0
            self._wipe(lambda x, y: True)
        elif what == "J":
            self._wipe(lambda x, y: first == 2 or y > self._y or (y == self._y and x >= self._x))
        elif what == "K":
            self._wipe(lambda x, y: y == self._y and x >= self._x)

    def _wipe(self, where: Callable[[int, int], bool]) -> None:
        self._cells = {place: one for place, one in self._cells.items() if not where(*place)}


# -- on prompt_toolkit's pipes -----------------------------------------------------------------------------------------


class Paper(StringIO):
    """Everything that was drawn, on a glass too; tells the loop when there is more."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.glass = Glass(columns, rows)
        self._more = asyncio.Event()

    def write(self, text: str) -> int:
        self.glass.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._more.set()

    async def until(self, line: str) -> None:
        """Wait until `line` is one on the screen."""
        async with asyncio.timeout(PATIENCE):
            while line not in self.glass.lines():
                self._more.clear()
                await self._more.wait()


@contextmanager
def terminal(rows: int = 24, columns: int = 80) -> Iterator[tuple[PipeInput, Paper]]:
    paper = Paper(columns, rows)
    output = Vt100_Output(paper, lambda: Size(rows=rows, columns=columns), term="xterm")
    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        yield keys, paper


def rows_of(*names: str, source: str = "cli") -> list[Row]:
    return [
        row_of(
            Session(
                id=SessionId(f"2027_{name}"),
                conversation=SessionId(f"2027_{name}"),  # type: ignore[arg-type]
                source=source,
                started_at=T0,
                last_active=T0,
                title=name,
            )
        )
        for name in names
    ]


def silent(_row: Row) -> Sequence[str]:
    return ()


async def chosen(typed: str, rows: Sequence[Row], peek: Peek = silent) -> str | None:
    with terminal() as (keys, _):
        keys.send_text(typed)
        async with asyncio.timeout(PATIENCE):
            return await choose(rows, peek, tones=True)


MANY = rows_of(*(f"talk{number:02}" for number in range(40)))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("\r", "talk00"),
        (f"{DOWN}{DOWN}{UP}\r", "talk01"),
        ("\x0e\x0e\x0e\x10\r", "talk02"),
        (f"{END}\r", "talk39"),
        (f"{END}{UP}{HOME}{DOWN}\r", "talk01"),
        (f"{PAGE_DOWN}\r", "talk12"),
        (f"{PAGE_DOWN}{PAGE_DOWN}{PAGE_UP}\r", "talk12"),
        ("17\r", "talk17"),
        ("179\x7f\r", "talk17"),
        ("99\x1517\n", "talk17"),
        (f"{DOWN}{DOWN}lk0\r", "talk02"),
        ("zzz\r\x15\r", "talk00"),
        ("lk\x1bOP17\r", "talk17"),  # F1 has no character
        ("\x1b[200~TALK\n 23\x1b[201~\r", "talk23"),
    ],
)
async def test_keys_move_edit_and_choose(typed: str, name: str) -> None:
    assert await chosen(typed, MANY) == f"2027_{name}"


@pytest.mark.parametrize("typed", ["\x1b", "q", "\x03", "ab\x03", "ab\x1b", "ab\x7f\x7fq", f"{DOWN}\x1b"])
async def test_a_person_can_leave(typed: str) -> None:
    assert await chosen(typed, MANY) is None


async def test_a_q_behind_other_letters_is_a_letter() -> None:
    assert await chosen("sq\r", rows_of("sound", "square")) == "2027_square"


async def test_a_terminal_that_goes_away_leaves() -> None:
    with terminal() as (keys, _):
        keys.close()
        async with asyncio.timeout(PATIENCE):
            assert await choose(MANY, silent, tones=True) is None


async def test_previews_come_for_selected_rows_alone_and_once() -> None:
    asked: list[str] = []

    def peek(row: Row) -> Sequence[str]:
        asked.append(row.name)
        return [f"● words of {row.name}"]

    with terminal() as (keys, paper):
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            choosing = tasks.create_task(choose(rows_of("one", "two", "four", "three"), peek, tones=True))
            await paper.until("● words of one")
            keys.send_text(DOWN)
            await paper.until("● words of two")
            keys.send_text(f"{UP}{DOWN}{END}")
            await paper.until("● words of three")
            keys.send_text(HOME)
            await paper.until("● words of one")
            keys.send_text(f"{END}{UP}{UP}")
            await paper.until("● words of two")
            keys.send_text("\x15four")
            await paper.until("● words of four")
            keys.send_text("\r")
    assert choosing.result() == "2027_four"
    assert asked == ["one", "two", "three", "four"], "what was read is kept"


async def test_no_key_waits_for_a_preview_and_what_was_only_passed_by_is_not_read() -> None:
    gate, asked = threading.Event(), list[str]()

    def peek(row: Row) -> Sequence[str]:
        asked.append(row.name)
        gate.wait(PATIENCE)
        return ["● slow words"]

    try:
        with terminal() as (keys, paper):
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
                choosing = tasks.create_task(choose(MANY, peek, tones=True))
                await paper.until("…")
                keys.send_text(f"{DOWN}{DOWN}lk3")
                await paper.until(f"Find: lk3{'10 of 40':>71}")
                keys.send_text("1\r")
        assert choosing.result() == "2027_talk31"
        assert asked == ["talk00"]
    finally:
        gate.set()


@pytest.mark.parametrize("tones", [True, False])
async def test_colours_are_dim_and_reverse_and_none_where_none_are_wanted(tones: bool) -> None:
    with terminal() as (keys, paper):
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            tasks.create_task(choose(MANY, silent, tones=tones))
            await paper.until("No words are kept of it.")
            drawn = paper.getvalue()
            keys.send_text("q")
    assert "› talk00" in drawn
    looks = set(re.findall(r"\x1b\[([\d;]*)m", drawn)) - {"", "0"}
    assert looks == ({"0;2", "0;7"} if tones else set())


# -- a real pseudo-terminal -------------------------------------------------------------------------------------------

PICK = """
import os
from hermes.cli.browse import pick
from hermes.home import locate, open_home
print("chosen:", pick(open_home(locate(os.environ)), source=None, limit=500, environ=os.environ))
"""
BROWSE = """
import os, sys
from hermes.cli.browse import browse
from hermes.home import locate, open_home
sys.exit(browse(open_home(locate(os.environ)), os.environ, source=None, limit=500))
"""


class Person:
    """Somebody before a pseudo-terminal."""

    def __init__(self, master: int, child: "Popen[bytes]", glass: Glass) -> None:
        self._master = master
        self.child = child
        self.glass = glass

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the screen is as it should be; gives its lines."""
        while not holds(self.glass.lines()):
            ready, _, _ = select.select([self._master], [], [], PATIENCE)
            assert ready, "\n".join(self.glass.lines())
            self.glass.write(os.read(self._master, 65536).decode())
        return self.glass.lines()

    def resize(self, columns: int, rows: int) -> None:
        self.glass.size = (columns, rows)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.child.send_signal(signal.SIGWINCH)


@contextmanager
def person(shell: Shell, script: str, *, columns: int, rows: int, **environ: str) -> Iterator[Person]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**shell.environment, "TERM": "xterm", **environ}
    with Popen(
        [sys.executable, "-c", script],
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as child:
        os.close(slave)
        try:
            yield Person(master, child, Glass(columns, rows))
        finally:
            child.kill()
            os.close(master)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, rules=({"say": "Good."},))


@pytest.mark.timeout(90)
async def test_a_person_filters_resizes_and_chooses(shell: Shell) -> None:
    names = [f"n{number:02}" for number in range(30)]
    await fill(shell.home.database, *names)
    async with kept(shell.home.database) as store:
        wide = await tell(store, "wide", "What about 重构 👩\u200d👩\u200d👧?\x1b[2J", at=T0 + 100)
        await store.rename(wide.id, "重构认证 Zürich 🎉", by_person=True)
    with person(shell, PICK, columns=90, rows=24) as one:
        shown = one.until(lambda lines: any(line.startswith("● What about 重构 👩👩👧? [2J") for line in lines))
        assert shown[0].endswith("31 of 31")
        assert shown[1].split() == ["Title", "Last", "Active", "Source", "ID"]
        assert shown[2].startswith("› 重构认证 Zürich 🎉")
        assert shown[2].endswith("telegram   20270115_080000_wide")
        assert shown[-1] == "Enter resumes · Esc leaves · Ctrl-U empties the filter"

        one.type("tele n0 abou")
        shown = one.until(lambda lines: lines[0].endswith("10 of 31") and "● about n09" in lines)
        assert shown[0].startswith("Find: tele n0 abou")
        assert [line.split()[-1] for line in shown[2:12]] == [f"20270115_080000_n0{9 - at}" for at in range(10)]
        assert shown[12] == ""

        one.resize(40, 10)
        shown = one.until(lambda lines: lines[9].startswith("Enter resumes") and lines[6].startswith("──"))
        assert shown[2].startswith("› about n09")
        assert shown[5].startswith("  about n06")

        one.type(DOWN * 4)
        one.until(lambda lines: lines[5].startswith("› about n05") and "● about n05" in lines)
        one.type("\r")
        one.until(lambda lines: "chosen: 20270115_080000_n05" in lines)
        assert one.child.wait(PATIENCE) == 0


@pytest.mark.timeout(90)
async def test_ctrl_c_at_the_picker_leaves_it_and_a_signal_does_too(shell: Shell) -> None:
    await fill(shell.home.database, "a")
    leaves: tuple[Callable[[Person], None], ...] = (
        lambda one: one.type("\x03"),
        lambda one: one.child.send_signal(signal.SIGINT),
    )
    for leave in leaves:
        with person(shell, PICK, columns=80, rows=24, NO_COLOR="1") as one:
            one.until(lambda lines: "● about a" in lines)
            leave(one)
            one.until(lambda lines: "chosen: None" in lines)
            assert one.child.wait(PATIENCE) == 0


@pytest.mark.timeout(90)
async def test_a_preview_that_cannot_be_read_says_why_and_the_row_can_still_be_chosen(shell: Shell) -> None:
    await fill(shell.home.database, "a")
    with closing(connect(shell.home.database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("ALTER TABLE messages RENAME TO lost")
    with person(shell, PICK, columns=200, rows=24) as one:
        one.until(lambda lines: any("state.db: no such table: messages" in line for line in lines))
        one.type("\r")
        one.until(lambda lines: "chosen: 20270115_080000_a" in lines)


@pytest.mark.timeout(90)
async def test_the_chosen_conversation_goes_on(shell: Shell) -> None:
    await fill(shell.home.database, "a", "b")
    with person(shell, BROWSE, columns=80, rows=24) as one:
        one.until(lambda lines: "● about b" in lines)
        one.type("080000_a\r")
        one.until(lambda lines: any("20270115_080000_a, 1 messages: about a" in line for line in lines))


# -- without a terminal -----------------------------------------------------------------------------------------------


def without_screen(shell: Shell, script: str, typed: bytes) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], env=shell.environment, input=typed, capture_output=True, timeout=PATIENCE
    )
    assert done.stderr == b"" or script == BROWSE, done.stderr.decode()
    return done.stdout.decode()


async def test_without_a_terminal_a_number_is_asked_for_until_there_is_one(shell: Shell) -> None:
    await fill(shell.home.database, "a", "b\x1b[2J", "c")
    shown = without_screen(shell, PICK, b"4\n0\n\xff\n-1\nx\x1b[2J\n 2 \n")
    lines = shown.splitlines()
    assert [line.split()[:3] for line in lines[:3]] == [
        ["1", "about", "c"],
        ["2", "about", "b"],
        ["3", "about", "a"],
    ]
    assert lines[0].endswith("telegram   20270115_080000_c")
    assert [line for line in lines if "is no number" in line] == [
        f"{bad!r} is no number from 1 to 3." for bad in ("4", "0", "\ufffd", "-1", "x [2J")
    ]
    assert lines[-1] == "chosen: 20270115_080000_b\x1b[2J"


@pytest.mark.parametrize("typed", [b"", b"\n", b"9\n", b"nine", b"\n1\n", b"9" * 6000])
async def test_a_blank_line_and_the_end_of_input_leave(shell: Shell, typed: bytes) -> None:
    await fill(shell.home.database, "a")
    assert without_screen(shell, PICK, typed).splitlines()[-1] == "chosen: None"


async def test_a_number_in_a_pipe_is_followed_by_what_is_said(shell: Shell) -> None:
    told = await fill(shell.home.database, "a", "b")
    assert "Good." in without_screen(shell, BROWSE, b"2\nGo on, please\n")
    async with kept(shell.home.database) as store:
        assert [(await store.get(one, OWNER)).message_count for one in told] == [3, 1]


def test_a_store_without_conversations_says_so_in_the_words_of_the_list(shell: Shell) -> None:
    assert without_screen(shell, PICK, b"1\n") == f"{NOTHING_YET}chosen: None\n"
    assert shell.hermes("sessions", "list").stdout == NOTHING_YET
    assert not shell.home.database.exists()


async def test_a_store_of_archived_conversations_has_nothing_to_choose(shell: Shell) -> None:
    (only,) = await fill(shell.home.database, "a")
    async with kept(shell.home.database) as store:
        await store.archive((await store.get(only, OWNER)).conversation, OWNER, archived=True)
    assert without_screen(shell, PICK, b"1\n") == f"{NOTHING_YET}chosen: None\n"
