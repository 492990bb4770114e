"""People who talk while the gateway is killed again and again, at moments that a seeded plan chooses."""

import asyncio
import random
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from hermes.sessions.model import ToolCall
from worlds.daemon import Daemon
from worlds.llm import Asked, LlmWorld, Say
from worlds.person import Frame, Page, Program

CHATS = ("ann", "ben", "cem")
API = "api"
TOKEN = re.compile(r"\[(\w+)#(\d+)\]")
REMEMBERED = re.compile(r"^- (\w+) (\d+) by request \d+$", re.MULTILINE)
TOOL_EVERY = 4
"""Each question with a multiple of this number makes the model use a tool first."""
LONGEST_SKIP = 3


class Moment(StrEnum):
    """When a kill can come: seen by the page (acknowledged, first words, answer) or by the model (asked, told)."""

    ACKNOWLEDGED = "acknowledged"
    ASKED = "asked"
    WORDS = "words"
    TOLD = "told"
    ANSWERED = "answered"


FRAMES = {"ack": Moment.ACKNOWLEDGED, "delta": Moment.WORDS, "answer": Moment.ANSWERED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One kill: at this moment, after it has come and gone `skip` times."""

    moment: Moment
    skip: int


def plan(seed: int, kills: int) -> list[Strike]:
    """The same seed gives the same plan; every moment has its turn."""
    chance = random.Random(seed)
    moments = [list(Moment)[number % len(Moment)] for number in range(kills)]
    chance.shuffle(moments)
    return [Strike(moment=moment, skip=chance.randint(0, LONGEST_SKIP)) for moment in moments]


def tokens(text: str) -> list[tuple[str, int]]:
    """The questions that a text names, each as its chat and its number."""
    return [(chat, int(number)) for chat, number in TOKEN.findall(text)]


def name(chat: str, number: int) -> str:
    """What `tokens` finds again."""
    return f"[{chat}#{number}]"


class Storm:
    """Kills by plan. A turn is killed once at most: the next kill waits until all that the last one hurt is answered.

    So nothing is ever parked, and every question must be answered.
    """

    def __init__(self, daemon: Daemon, world: LlmWorld, strikes: Iterable[Strike], *, seed: int) -> None:
        self._daemon = daemon
        self._strikes = deque(strikes)
        self._chance = random.Random(seed)
        self._open: set[tuple[str, int]] = set()
        self._hurt: set[tuple[str, int]] = set()
        self._killed = asyncio.Event()
        self.kills = 0
        self.said: dict[str, list[str]] = {chat: [] for chat in CHATS}
        """The ids of each chat's messages."""
        self.programs: list[str] = []
        """What the program was answered, in order."""
        self.strangers: list[tuple[str, ...]] = []
        """Chats whose words came together in one request to the model; there must be none."""
        self._requests = count(1)
        world.fallback = self._think
        world.before = self._asked
        world.after = self._told

    async def rage(self, page: Page, program: Program) -> None:
        """Until the plan is done and every question that was asked is answered."""
        async with asyncio.TaskGroup() as tasks:
            keeper = tasks.create_task(self._keep())
            async with asyncio.TaskGroup() as people:
                for chat in CHATS:
                    people.create_task(self._chat(page, chat))
                people.create_task(self._program(program))
            await self._daemon.up.wait()
            keeper.cancel()

    def hear(self, frame: Frame) -> None:
        """Every frame of the page's socket."""
        if frame["t"] in FRAMES:
            self._reach(FRAMES[frame["t"]])

    # -- the people ---------------------------------------------------------------------------------------------

    async def _chat(self, page: Page, chat: str) -> None:
        """Questions alone and in bursts, so that some make turns of their own and some join one that runs."""
        number = 0
        while self._strikes:
            burst = [(chat, number + step) for step in range(1, self._chance.choice((1, 1, 2, 3)) + 1)]
            number += len(burst)
            for question in burst:
                self._open.add(question)
                self.said[chat].append(await page.say(chat, f"Question {name(*question)}"))
            await self._answers(page, chat, {*burst})
            self._open -= {*burst}

    async def _answers(self, page: Page, chat: str, burst: set[tuple[str, int]]) -> None:
        await page.until(lambda: answered(page.rows[chat]) >= burst)

    async def _program(self, program: Program) -> None:
        for number in count(1):
            if not self._strikes:
                return
            self._open.add((API, number))
            self.programs.append(await program.ask(f"Question {name(API, number)}", streamed=number % 2 == 0))
            self._open.discard((API, number))

    # -- the kills ----------------------------------------------------------------------------------------------

    def _reach(self, moment: Moment) -> None:
        if not self._strikes or not self._daemon.up.is_set() or self._hurt & self._open:
            return
        strike = self._strikes[0]
        if strike.moment is not moment:
            return
        if strike.skip:
            self._strikes[0] = Strike(moment=moment, skip=strike.skip - 1)
            return
        self._strikes.popleft()
        self._hurt = set(self._open)
        self.kills += 1
        self._daemon.kill()
        self._killed.set()

    async def _keep(self) -> None:
        while True:
            await self._killed.wait()
            self._killed.clear()
            await self._daemon.restart()

    # -- the model ----------------------------------------------------------------------------------------------

    async def _asked(self, _: Asked) -> None:
        self._reach(Moment.ASKED)

    async def _told(self, _: Asked) -> None:
        self._reach(Moment.TOLD)

    def _think(self, asked: Asked) -> Say:
        """Answers all questions that no answer has named yet; for some of them a tool has to run first."""
        messages = asked.body["messages"]
        talk = [token for message in messages if message["role"] != "system" for token in tokens(_words(message))]
        if len(chats := {chat for chat, _ in talk}) > 1:
            self.strangers.append(tuple(chats))
        since = _unanswered(messages)
        questions = [token for message in since if message["role"] == "user" for token in tokens(_words(message))]
        if any(number % TOOL_EVERY == 0 for _, number in questions) and all(m["role"] == "user" for m in since):
            return Say(calls=(self._remember(*questions[-1]),))
        return Say(text="Answer to " + " and ".join(name(*question) for question in questions))

    def _remember(self, chat: str, number: int) -> ToolCall:
        """Every request asks to keep something else, so that a call that was run twice leaves two entries."""
        request = next(self._requests)
        entry = f"{chat} {number} by request {request}"
        arguments = f'{{"action": "add", "content": "{entry}"}}'
        return ToolCall(id=f"call_{request}", name="memory", arguments=arguments)


def answered(rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """The questions that the answers in a transcript name."""
    return {token for row in rows if row["role"] == "assistant" for token in tokens(row["content"])}


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _unanswered(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What came after the last answer."""
    final = [at for at, one in enumerate(messages) if one["role"] == "assistant" and not one.get("tool_calls")]
    start = final[-1] + 1 if final else 0
    return [message for message in messages[start:] if message["role"] != "system"]
