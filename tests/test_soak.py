"""The long runs: hundreds of kills, a lock held for half a minute, ten thousand turns on one gateway."""

import asyncio
import re
import signal
from pathlib import Path

import aiohttp
import pytest

from worlds.books import weather_a_storm
from worlds.daemon import BEARER, PATIENCE, Daemon
from worlds.person import program
from worlds.scene import Slow, conversation, scene, wait_for_a_writer, within
from worlds.telegram_storm import weather_a_telegram_storm

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

KILLS = 200
SEED = 8642
LOCKED_SECONDS = 30.0

TURNS = 10_000
WARM_TURNS = 2_000
"""After so many turns everything that is made once has been made."""
CALLERS = 8
TURNS_A_CONVERSATION = 20
GROWTH = 1.15
LONGEST_LAG = 0.5
"""Seconds that the loop may wake late while all callers ask at once."""


async def test_two_hundred_kills(tmp_path: Path) -> None:
    await weather_a_storm(tmp_path, kills=KILLS, seed=SEED)


async def test_a_hundred_kills_over_telegram(tmp_path: Path) -> None:
    await weather_a_telegram_storm(tmp_path, kills=KILLS // 2, seed=SEED)


async def test_words_wait_half_a_minute_while_another_process_writes(tmp_path: Path) -> None:
    await wait_for_a_writer(tmp_path, LOCKED_SECONDS)


async def test_ten_thousand_turns_leave_the_gateway_as_large_and_as_quick_as_before(tmp_path: Path) -> None:
    async with Daemon(tmp_path, {"provider": "scripted"}) as daemon, asyncio.TaskGroup() as tasks:
        lags: list[float] = []
        watching = tasks.create_task(watch_the_loop(daemon, lags))
        await talk(daemon, 0, WARM_TURNS)
        warm = daemon.memory_in_use
        await talk(daemon, WARM_TURNS, TURNS)
        watching.cancel()
        assert daemon.memory_in_use < warm * GROWTH
        assert max(lags) < LONGEST_LAG
        daemon.terminate()
        assert await daemon.ended() == 0


async def talk(daemon: Daemon, first: int, end: int) -> None:
    """Turns `first` to `end`, each answered, from several callers at once."""
    numbers = iter(range(first, end, TURNS_A_CONVERSATION))

    async def call() -> None:
        for start in numbers:
            async with program(daemon, f"conversation {start}") as caller:
                for number in range(start, start + TURNS_A_CONVERSATION):
                    assert f"number {number}." in await caller.ask(f"This is number {number}.")

    async with asyncio.TaskGroup() as callers:
        for _ in range(CALLERS):
            callers.create_task(call())


async def watch_the_loop(daemon: Daemon, lags: list[float]) -> None:
    """Note the lag that the gateway measures, each second."""
    async with aiohttp.ClientSession(headers=BEARER) as client:
        while True:
            async with client.get(f"{daemon.url}/metrics") as response:
                found = re.search(r"^hermes_loop_lag_seconds (\S+)$", await response.text(), re.MULTILINE)
            assert found is not None
            lags.append(float(found[1]))
            await asyncio.sleep(1)


async def test_a_terminal_that_dies_while_it_thinks_does_not_hold_the_conversation_for_ever(tmp_path: Path) -> None:
    world = Slow()
    async with scene(tmp_path, world) as (daemon, talk):
        session = await conversation(world, talk)
        async with daemon.beside("chat", "-q", "From the terminal", "-r", session) as terminal:
            await within(world.asked.acquire())
            terminal.send_signal(signal.SIGKILL)
            await within(terminal.wait())
        world.go_on.set()
        mine = await talk.say("chat", "From the page")
        # A dead owner's lease ends after half a minute.
        assert (await talk.answer(mine, seconds=2 * PATIENCE)).endswith("From the page")
