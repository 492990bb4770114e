"""People at the web chat and a program at the API, who talk while the gateway is killed again and again."""

import asyncio
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import Any

from worlds.daemon import Daemon
from worlds.kills import Kills, Oracle, Question, Strike, name, tokens
from worlds.llm import Asked, LlmWorld
from worlds.person import Frame, Page, Program

CHATS = ("ann", "ben", "cem")
API = "api"
REMEMBERED = re.compile(r"^- (\w+) (\d+) by request \d+$", re.MULTILINE)


class Moment(StrEnum):
    """When a kill can come: seen by the page (acknowledged, first words, answer) or by the model (asked, told)."""

    ACKNOWLEDGED = "acknowledged"
    ASKED = "asked"
    WORDS = "words"
    TOLD = "told"
    ANSWERED = "answered"


FRAMES = {"ack": Moment.ACKNOWLEDGED, "delta": Moment.WORDS, "answer": Moment.ANSWERED}


class Storm:
    """The people, the kills and the model."""

    def __init__(self, daemon: Daemon, world: LlmWorld, strikes: Iterable[Strike], *, seed: int) -> None:
        self._daemon = daemon
        self._chance = random.Random(seed)
        self.kills = Kills(daemon, strikes)
        self.oracle = Oracle()
        self.said: dict[str, list[str]] = {chat: [] for chat in CHATS}
        """The ids of each chat's messages."""
        self.programs: list[str] = []
        """What the program was answered, in order."""
        world.fallback = self.oracle.think
        world.before = self._asked
        world.after = self._told

    async def rage(self, page: Page, program: Program) -> None:
        """Until the plan is done and every question that was asked is answered."""
        async with asyncio.TaskGroup() as tasks:
            keeper = tasks.create_task(self.kills.keep_alive())
            async with asyncio.TaskGroup() as people:
                for chat in CHATS:
                    people.create_task(self._chat(page, chat))
                people.create_task(self._program(program))
            await self._daemon.up.wait()
            keeper.cancel()

    def hear(self, frame: Frame) -> None:
        """Every frame of the page's socket."""
        if frame["t"] in FRAMES:
            self.kills.reach(FRAMES[frame["t"]])

    async def _asked(self, _: Asked) -> None:
        self.kills.reach(Moment.ASKED)

    async def _told(self, _: Asked) -> None:
        self.kills.reach(Moment.TOLD)

    async def _chat(self, page: Page, chat: str) -> None:
        """Questions alone and in bursts, so that some make turns of their own and some join one that runs."""
        number = 0
        while self.kills:
            burst = [(chat, number + step) for step in range(1, self._chance.choice((1, 1, 2, 3)) + 1)]
            number += len(burst)
            for question in burst:
                self.kills.open.add(question)
                self.said[chat].append(await page.say(chat, f"Question {name(*question)}"))
            await self._answers(page, chat, {*burst})
            self.kills.open -= {*burst}

    async def _answers(self, page: Page, chat: str, burst: set[Question]) -> None:
        await page.until(lambda: answered(page.rows[chat]) >= burst)

    async def _program(self, program: Program) -> None:
        for number in count(1):
            if not self.kills:
                return
            self.kills.open.add((API, number))
            self.programs.append(await program.ask(f"Question {name(API, number)}", streamed=number % 2 == 0))
            self.kills.open.discard((API, number))


def answered(rows: Sequence[Mapping[str, Any]]) -> set[Question]:
    """The questions that the answers in a transcript name."""
    return {token for row in rows if row["role"] == "assistant" for token in tokens(row["content"])}
