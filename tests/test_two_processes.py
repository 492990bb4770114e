"""Two processes on one home: a gateway, and a terminal, a reader or a writer beside it."""

import asyncio
from asyncio.subprocess import Process
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hermes.sessions.database import integrity
from worlds.daemon import Daemon
from worlds.llm import Asked, LlmWorld
from worlds.person import Page
from worlds.scene import Slow, conversation, scene, wait_for_a_writer, within

pytestmark = pytest.mark.crash

LOCKED_SECONDS = 5.0
READERS = 20


class Counting(Slow):
    """A slow model that knows how many think at once."""

    def __init__(self) -> None:
        super().__init__()
        self.thinking = 0
        self.most = 0
        self.after = self._told

    async def _think(self, asked: Asked) -> None:
        self.thinking += 1
        self.most = max(self.most, self.thinking)
        await super()._think(asked)

    async def _told(self, _: Asked) -> None:
        self.thinking -= 1


async def note(process: Process) -> str:
    """The next line that the process prints beside its answer."""
    assert process.stderr is not None
    return (await within(process.stderr.readline())).decode()


async def rest(process: Process) -> str:
    """What the process prints until it ends, which it must do well."""
    out, err = await within(process.communicate())
    assert process.returncode == 0, err.decode()
    return out.decode()


def words(rows: list[Any]) -> list[tuple[str, str]]:
    return [(row["role"], row["content"].rpartition("\n")[2]) for row in rows]


async def test_a_terminal_waits_while_the_gateway_thinks_about_the_same_conversation(tmp_path: Path) -> None:
    world = Counting()
    async with scene(tmp_path, world) as (daemon, talk):
        session = await conversation(world, talk)
        mine = await talk.say("chat", "From the page")
        await within(world.asked.acquire())
        async with daemon.beside("chat", "-q", "From the terminal", "-r", session) as terminal:
            assert "busy in the gateway" in await note(terminal)
            world.go_on.set()
            assert (await talk.answer(mine)).endswith("From the page")
            assert "From the terminal" in await rest(terminal)
        assert world.most == 1
        await check_talk(talk, session, "From the page", "From the terminal")


async def test_the_gateway_waits_while_a_terminal_thinks_about_the_same_conversation(tmp_path: Path) -> None:
    world = Counting()
    async with scene(tmp_path, world) as (daemon, talk):
        session = await conversation(world, talk)
        async with daemon.beside("chat", "-q", "From the terminal", "-r", session) as terminal:
            await within(world.asked.acquire())
            mine = await talk.say("chat", "From the page")
            await talk.until(lambda: bool(talk.notices))
            assert "busy in a terminal" in talk.notices[0]
            world.go_on.set()
            assert "From the terminal" in await rest(terminal)
        assert (await talk.answer(mine)).endswith("From the page")
        assert world.most == 1
        await check_talk(talk, session, "From the terminal", "From the page")


async def check_talk(talk: Page, session: str, first: str, second: str) -> None:
    """Question and answer, question and answer: nothing between them."""
    rows = await talk.transcript(session)
    assert words(rows)[2:] == [
        ("user", first),
        ("assistant", first),
        ("user", second),
        ("assistant", second),
    ]
    assert rows[3]["content"] != first


async def test_a_terminal_whose_turn_was_stopped_from_the_page_says_so_and_leaves(tmp_path: Path) -> None:
    world = Counting()
    async with scene(tmp_path, world) as (daemon, talk):
        session = await conversation(world, talk)
        async with daemon.beside("chat", "-q", "From the terminal", "-r", session) as terminal:
            await within(world.asked.acquire())
            assert "terminal" in await talk.answer(await talk.say("chat", "/stop"))
            world.go_on.set()
            out, err = await within(terminal.communicate())
        assert out == b""
        assert "Stopped from elsewhere" in err.decode()
        assert terminal.returncode == 1
        assert words(await talk.transcript(session))[2:] == [("user", "From the terminal")]


async def test_words_wait_while_another_process_writes(tmp_path: Path) -> None:
    await wait_for_a_writer(tmp_path, LOCKED_SECONDS)


async def test_readers_that_come_and_go_or_are_killed_do_no_harm(tmp_path: Path) -> None:
    async with scene(tmp_path, LlmWorld()) as (daemon, talk):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(come_and_go(daemon))
            for number in range(2 * READERS):
                said = await talk.say("chat", f"Question {number}")
                assert (await talk.answer(said)).endswith(f"Question {number}")
        assert integrity(daemon.home.database) == []
        roles = Counter(row["role"] for row in talk.rows["chat"])
        assert roles == {"user": 2 * READERS, "assistant": 2 * READERS}


async def come_and_go(daemon: Daemon) -> None:
    """Every other reader is killed as soon as it has begun."""
    for number in range(READERS):
        async with daemon.beside("sessions", "list", "--json") as reader:
            if number % 2:
                await asyncio.sleep(0.02 * number)  # somewhere between its start and its end
            else:
                assert '"source": "web"' in await rest(reader)
