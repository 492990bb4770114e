"""Twenty chats of Telegram that talk while the gateway is killed again and again, at moments that the far sides see."""

import asyncio
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hermes.sessions.database import integrity
from worlds.books import check_status
from worlds.daemon import Daemon, asking
from worlds.kills import Kills, Oracle, Question, Strike, name, plan, tokens
from worlds.llm import Asked, LlmWorld
from worlds.scene import query, settled
from worlds.telegram import USERNAME, Call, TelegramWorld

FORUM = -1_000_000_000_500
MARK = "↻"
"""What an answer begins with that may have been shown before."""

LIVE_SECONDS = 0.5
"""How long the model waits in the middle of some answers for the chat to show their beginning."""
LIVE_EVERY = 3

UNKNOWN_SECONDS = 0.5
"""How long it may take from a message that is shown to the record of it, with twenty chats on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where somebody talks with the bot."""

    name: str
    chat: int
    user: int
    thread: int | None = None

    @property
    def in_room(self) -> bool:
        return self.chat < 0


def places() -> list[Place]:
    """Ten direct chats, six people in three groups, and four topics of a forum."""
    direct = [Place(name=f"d{number}", chat=100 + number, user=100 + number) for number in range(10)]
    groups = [Place(name=f"g{number}", chat=-201 - number // 2, user=210 + number) for number in range(6)]
    topics = [Place(name=f"t{number}", chat=FORUM, user=220 + number, thread=40 + number) for number in range(4)]
    return direct + groups + topics


class Moment(StrEnum):
    """When a kill can come: seen by Telegram's server (most of them) or by the model (asked, told)."""

    HANDED_OVER = "updates are on their way to the gateway"
    ACKNOWLEDGED = "the gateway asks for what comes after them"
    TYPING = "the gateway says that it types"
    ASKED = "the model is asked"
    TOLD = "the model has answered"
    SENDING = "a message arrives and is not shown yet"
    SENT = "a message is shown and the gateway does not know"
    EDITING = "a change arrives and is not made yet"
    EDITED = "a change is made and the gateway does not know"


BEFORE = {"sendMessage": Moment.SENDING, "editMessageText": Moment.EDITING}
AFTER = {"sendMessage": Moment.SENT, "editMessageText": Moment.EDITED, "sendChatAction": Moment.TYPING}


class TelegramStorm:
    """The people, the kills and the model."""

    def __init__(
        self, daemon: Daemon, llm: LlmWorld, telegram: TelegramWorld, strikes: Iterable[Strike], *, seed: int
    ) -> None:
        self._daemon = daemon
        self.telegram = telegram
        self._chance = random.Random(seed)
        self.kills = Kills(daemon, strikes)
        self.oracle = Oracle()
        self.places = places()
        self.asked: dict[str, int] = {}
        """How many questions each place has asked."""
        llm.fallback = self.oracle.think
        llm.before, llm.midway, llm.after = self._asked, self._midway, self._told
        telegram.before, telegram.after = self._coming, self._done
        telegram.chat(FORUM, forum=True, topics=[place.thread for place in self.places if place.thread is not None])

    async def rage(self) -> None:
        """Until the plan is done and every question that was asked is answered."""
        async with asyncio.TaskGroup() as tasks:
            keeper = tasks.create_task(self.kills.keep_alive())
            async with asyncio.TaskGroup() as people:
                for place in self.places:
                    people.create_task(self._talk(place))
            await self._daemon.up.wait()
            keeper.cancel()

    async def _talk(self, place: Place) -> None:
        """Questions alone and in bursts, so that some make turns of their own and some join one that runs."""
        number = 0
        while self.kills:
            burst = [(place.name, number + step) for step in range(1, self._chance.choice((1, 1, 2, 3)) + 1)]
            number += len(burst)
            self.asked[place.name] = number
            for question in burst:
                self.kills.open.add(question)
                words = f"Question {name(*question)}"
                text = f"@{USERNAME} {words}" if place.in_room else words
                await self.telegram.say(text, chat=place.chat, user=place.user, thread=place.thread)
            await self._answers(place, {*burst})
            self.kills.open -= {*burst}

    async def _answers(self, place: Place, burst: set[Question]) -> None:
        await self.telegram.until(lambda: self.answered(place) >= burst, 60.0)

    def answered(self, place: Place) -> set[Question]:
        """The questions of a place whose answers are shown where it is."""
        return {token for text in self.texts(place) for token in tokens(text) if token[0] == place.name}

    def texts(self, place: Place) -> list[str]:
        """What is shown where the place is, in order."""
        shown = self.telegram.messages.values()
        return [one.text for one in shown if (one.chat, one.thread) == (place.chat, place.thread)]

    # -- the far sides ----------------------------------------------------------------------------------------------

    async def _coming(self, call: Call) -> None:
        if call.method in BEFORE:
            self.kills.reach(BEFORE[call.method])
        if call.method == "getUpdates" and "offset" in call.facts:
            self.kills.reach(Moment.ACKNOWLEDGED)

    async def _done(self, call: Call) -> None:
        if call.method in AFTER:
            self.kills.reach(AFTER[call.method])
        if call.method == "getUpdates":
            self.kills.reach(Moment.HANDED_OVER)

    async def _asked(self, _: Asked) -> None:
        self.kills.reach(Moment.ASKED)

    async def _told(self, _: Asked) -> None:
        self.kills.reach(Moment.TOLD)

    async def _midway(self, asked: Asked) -> None:
        """Some answers are slow enough to be seen growing."""
        questions = tokens(asked.last_user_text)
        if not questions or questions[-1][1] % LIVE_EVERY:
            return
        place = next(place for place in self.places if place.name == questions[-1][0])
        before = len(self.texts(place))
        with suppress(TimeoutError):
            await self.telegram.until(lambda: len(self.texts(place)) > before, LIVE_SECONDS)


async def weather_a_telegram_storm(folder: Path, *, kills: int, seed: int) -> None:
    """Talk in twenty chats through `kills` kills, then look at every chat and into every book."""
    async with LlmWorld() as llm, TelegramWorld() as telegram:
        blocks = {
            "access": {"allow_all": True},
            "platforms": {"telegram": {"token": telegram.token, "base_url": telegram.url}},
        }
        streaming = {"enabled": True, "edit_interval_seconds": 0.02}
        daemon = Daemon(folder, asking(llm.url), blocks=blocks, streaming=streaming, user_rate_per_minute=10_000)
        async with daemon:
            storm = TelegramStorm(daemon, llm, telegram, plan(seed, kills, Moment), seed=seed)
            await storm.rage()
            assert storm.kills.struck.total() == kills
            assert storm.oracle.strangers == []
            await settled(daemon)
            for place in storm.places:
                check_place(storm, place)
            check_torsos(storm)
            check_books(daemon, storm)
            await check_status(daemon, sum(storm.asked.values()))
            daemon.terminate()
            assert await daemon.ended() == 0
            assert integrity(daemon.home.database) == []


def check_place(storm: TelegramStorm, place: Place) -> None:
    """Each question is answered there and nowhere else, in order, and once: what came again says so."""
    every = [(place.name, number) for number in range(1, storm.asked[place.name] + 1)]
    answers = [(text, tokens(text)) for text in storm.texts(place)]
    own = [token for _, named in answers for token in named if token[0] == place.name]
    assert list(dict.fromkeys(own)) == every
    unmarked = [token for text, named in answers if not text.startswith(MARK) for token in named]
    assert len({*unmarked}) == len(unmarked)
    elsewhere = [text for other in storm.places if other.chat != place.chat for text in storm.texts(other)]
    assert not [text for text in elsewhere if place.name in dict(tokens(text))]


def check_torsos(storm: TelegramStorm) -> None:
    """No answer stays half shown, but where the gateway died before it could know that its first half was shown."""
    torsos = [shown for shown in storm.telegram.messages.values() if not tokens(shown.text)]
    deaths = storm.kills.times
    assert [one.text for one in torsos if not any(0 <= death - one.at < UNKNOWN_SECONDS for death in deaths)] == []


def check_books(daemon: Daemon, storm: TelegramStorm) -> None:
    """Every message is in the inbox once and has its outcome; each answer was owed once."""
    rows: Mapping[str, int] = dict(query(daemon, "SELECT outcome, count(*) FROM inbox GROUP BY outcome"))
    assert set(rows) <= {"answered", "merged"}
    assert sum(rows.values()) == sum(storm.asked.values())
    owed: list[tuple[Any, ...]] = query(daemon, "SELECT state, count(*) FROM outbox GROUP BY state")
    assert {state for state, _ in owed} <= {"sent", "unknown"}
    assert sum(number for _, number in owed) == rows["answered"]
