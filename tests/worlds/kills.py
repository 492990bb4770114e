"""Kills by plan, and a model whose answers name their questions: what every storm has in common."""

import asyncio
import random
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from hermes.sessions.model import ToolCall
from worlds.daemon import Daemon
from worlds.llm import Asked, Say

TOKEN = re.compile(r"\[(\w+)#(\d+)\]")
TOOL_EVERY = 4
"""Each question with a multiple of this number makes the model use a tool first."""
LONGEST_SKIP = 3

Question = tuple[str, int]
"""A chat's name and a number."""


def tokens(text: str) -> list[Question]:
    """The questions that a text names."""
    return [(chat, int(number)) for chat, number in TOKEN.findall(text)]


def name(chat: str, number: int) -> str:
    """What `tokens` finds again."""
    return f"[{chat}#{number}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One kill: at this moment, after it has come and gone `skip` times."""

    moment: StrEnum
    skip: int


def plan(seed: int, kills: int, moments: type[StrEnum]) -> list[Strike]:
    """The same seed gives the same plan; every moment has its turn."""
    chance = random.Random(seed)
    turns = [list(moments)[number % len(moments)] for number in range(kills)]
    chance.shuffle(turns)
    return [Strike(moment=moment, skip=chance.randint(0, LONGEST_SKIP)) for moment in turns]


class Kills:
    """A turn is killed once at most: the next kill waits until all that the last one hurt is answered.

    So nothing is ever parked, and every question must be answered.
    """

    def __init__(self, daemon: Daemon, strikes: Iterable[Strike]) -> None:
        self._daemon = daemon
        self._strikes = deque(strikes)
        self._hurt: set[Question] = set()
        self._killed = asyncio.Event()
        self.open: set[Question] = set()
        """What was asked and is not answered yet."""
        self.struck: Counter[StrEnum] = Counter()
        """How often at which moment."""
        self.times: list[float] = []
        """When, in monotonic seconds."""

    def __bool__(self) -> bool:
        """Whether there are more to come."""
        return bool(self._strikes)

    def reach(self, moment: StrEnum) -> None:
        """Something happens: kill, if it is time."""
        if not self._strikes or not self._daemon.up.is_set() or self._hurt & self.open:
            return
        strike = self._strikes[0]
        if strike.moment is not moment:
            return
        if strike.skip:
            self._strikes[0] = Strike(moment=moment, skip=strike.skip - 1)
            return
        self._strikes.popleft()
        self._hurt = set(self.open)
        self.struck[moment] += 1
        self.times.append(time.monotonic())
        self._daemon.kill()
        self._killed.set()

    async def keep_alive(self) -> None:
        """Until cancelled: start the gateway again after each kill."""
        while True:
            await self._killed.wait()
            self._killed.clear()
            await self._daemon.restart()


class Oracle:
    """Answers all questions that no answer has named yet; for some of them a tool has to run first."""

    def __init__(self) -> None:
        self.strangers: list[tuple[str, ...]] = []
        """Chats whose words came together in one request to the model; there must be none."""
        self._requests = count(1)

    def think(self, asked: Asked) -> Say:
        """The answer to a request."""
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


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _unanswered(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What came after the last answer."""
    final = [at for at, one in enumerate(messages) if one["role"] == "assistant" and not one.get("tool_calls")]
    start = final[-1] + 1 if final else 0
    return [message for message in messages[start:] if message["role"] != "system"]
