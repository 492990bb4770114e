"""A whole gateway on Telegram: strangers are let in, a server that misbehaves is named, and words are seen growing."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from worlds.daemon import Daemon, asking
from worlds.llm import Asked, LlmWorld, Say
from worlds.scene import query, settled, within
from worlds.telegram import UNAUTHORIZED, USERNAME, Broken, TelegramWorld, flood

pytestmark = pytest.mark.crash
OWNER = 7


@asynccontextmanager
async def gateway(
    folder: Path, llm: LlmWorld, telegram: TelegramWorld, *, facts: Mapping[str, Any] | None = None, **blocks: Any
) -> AsyncIterator[Daemon]:
    """A gateway with one bot."""
    bot = {"token": telegram.token, "base_url": telegram.url, **(facts or {})}
    every = {"access": {"owners": [f"telegram:{OWNER}"]}, **blocks, "platforms": {"telegram": bot}}
    streaming = {"edit_interval_seconds": 0.05}
    async with Daemon(folder, asking(llm.url), blocks=every, streaming=streaming, drain_seconds=5) as daemon:
        yield daemon


async def status(daemon: Daemon) -> Mapping[str, Any]:
    """What `hermes status` knows of the bot's link."""
    said = await daemon.run("status", "--json")
    facts: Mapping[str, Any] = json.loads(said.out)["adapters"]["telegram"]
    return facts


async def becomes(daemon: Daemon, state: str) -> Mapping[str, Any]:
    """Wait until the link is like this."""
    async with asyncio.timeout(30):
        while (facts := await status(daemon))["state"] != state:
            await asyncio.sleep(0.05)
    return facts


async def test_a_stranger_shows_a_code_to_the_owner_and_is_a_guest_from_then_on(tmp_path: Path) -> None:
    async with LlmWorld() as llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram) as daemon:
        await telegram.say("hello", chat=55, user=55)
        await telegram.until(lambda: bool(telegram.shown(55)))
        (said,) = telegram.shown(55)
        code = re.search(r"\b[A-Z2-9]{8}\b", said)
        assert code is not None
        assert f"hermes pairing approve telegram {code[0]}" in said
        assert llm.journal == []
        approved = await daemon.run("pairing", "approve", "telegram", code[0])
        assert approved.code == 0, approved.err
        await telegram.say("/whoami", chat=55, user=55)
        await telegram.until(lambda: len(telegram.shown(55)) == 2)
        assert "guest" in telegram.shown(55)[1]
        await telegram.say("hello again", chat=55, user=55)
        await telegram.until(lambda: len(telegram.shown(55)) == 3)
        assert telegram.shown(55)[2].endswith("\nhello again")


async def test_the_menu_and_the_typing_are_seen_and_the_answer_grows_in_one_message(tmp_path: Path) -> None:
    llm = LlmWorld()
    seen = asyncio.Event()

    async def wait(_: Asked) -> None:
        await within(seen.wait())

    llm.midway = wait
    llm.will(Say(text="A **long** answer, told in two breaths."))
    async with llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram):
        await telegram.say("tell me", chat=OWNER, user=OWNER)
        await telegram.until(lambda: bool(telegram.shown(OWNER)))
        seen.set()
        final = "A long answer, told in two breaths."
        await telegram.until(lambda: telegram.shown(OWNER) == [final])
        (shown,) = telegram.messages.values()
        assert shown.drafts
        assert final.startswith(shown.drafts[0][:4])
        assert "sendChatAction" in {call.method for call in telegram.journal}
        assert {"new", "stop", "help"} <= {each["command"] for each in telegram.commands[""]}
        assert set(telegram.commands) == {"", "en"}  # the configuration says which language is spoken here


async def test_in_a_group_it_answers_those_who_name_it_each_on_their_own(tmp_path: Path) -> None:
    open_house = {"allow_all": True}
    async with (
        LlmWorld() as llm,
        TelegramWorld() as telegram,
        gateway(tmp_path, llm, telegram, access=open_house) as daemon,
    ):
        await telegram.say("lunch?", chat=-9, user=1)
        first = await telegram.say(f"@{USERNAME} one", chat=-9, user=1)
        await telegram.until(lambda: len(telegram.shown(-9)) == 1)
        answer = next(iter(telegram.messages.values()))
        assert answer.reply_to == first
        assert answer.text.endswith(f"\n@{USERNAME} one")
        await telegram.say("and two?", chat=-9, user=2, reply_to=answer.id)
        await telegram.until(lambda: len(telegram.shown(-9)) == 2)
        await settled(daemon)
        assert query(daemon, "SELECT outcome, why FROM inbox ORDER BY id")[0] == ("rejected", "not addressed")
        assert len(query(daemon, "SELECT key FROM routes")) == 2


async def test_a_group_that_becomes_a_supergroup_goes_on_with_what_was_said(tmp_path: Path) -> None:
    shared = {"access": {"allow_all": True}, "group_sessions_per_user": False}
    bot = {"require_mention": False}
    async with LlmWorld() as llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram, facts=bot, **shared):
        await telegram.say("one", chat=-9, user=1)
        await telegram.until(lambda: len(telegram.shown(-9)) == 1)
        await telegram.upgrade(-9, -1009)
        await telegram.say("two", chat=-1009, user=1)
        await telegram.until(lambda: len(telegram.shown(-1009)) == 1)
        words = [message["content"] for message in llm.journal[-1].body["messages"] if message["role"] == "user"]
        assert ["one" in words[0], "two" in words[-1]] == [True, True]


async def test_status_names_a_server_that_misbehaves_and_the_way_back(tmp_path: Path) -> None:
    async with LlmWorld() as llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram) as daemon:
        await becomes(daemon, "up")
        telegram.go_away()
        facts = await becomes(daemon, "down")
        assert "connection failed" in facts["reason"]
        said = await daemon.run("status")
        assert re.search(r"telegram +(down|connecting): the connection failed .*\(alive ", said.out), said.out
        await telegram.come_back()
        telegram.will("getMe", Broken())
        facts = await becomes(daemon, "up")
        assert (facts["reason"], facts["last_sign"] > 0) == ("", True)
        await telegram.say("still there?", chat=OWNER, user=OWNER)
        await telegram.until(lambda: "still there?" in "".join(telegram.shown(OWNER)))


async def test_a_token_that_is_refused_parks_the_bot_and_nothing_else(tmp_path: Path) -> None:
    async with LlmWorld() as llm, TelegramWorld() as telegram:
        telegram.will("getMe", UNAUTHORIZED)
        async with gateway(tmp_path, llm, telegram) as daemon:
            facts = await becomes(daemon, "parked")
            assert "@BotFather" in facts["reason"]
            assert (await daemon.run("status")).code == 0
            assert telegram.token.partition(":")[2] not in daemon.log


async def test_a_flood_wait_delays_the_answer_and_loses_nothing(tmp_path: Path) -> None:
    async with LlmWorld() as llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram) as daemon:
        telegram.will("sendMessage", flood(1), flood(1))
        await telegram.say("one", chat=OWNER, user=OWNER)
        await telegram.say("two", chat=OWNER, user=OWNER)
        await telegram.until(lambda: len(telegram.shown(OWNER)) >= 1 and "two" in telegram.shown(OWNER)[-1])
        await settled(daemon)
        assert {state for (state,) in query(daemon, "SELECT state FROM outbox")} == {"sent"}


async def test_another_bots_place_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    async with LlmWorld() as llm, TelegramWorld() as telegram, gateway(tmp_path, llm, telegram) as daemon:
        await telegram.say("hi", chat=OWNER, user=OWNER)
        await telegram.until(lambda: bool(telegram.shown(OWNER)) and not telegram._updates)
        ((name, value),) = query(daemon, "SELECT name, value FROM bookmarks")
        assert name == "offset:4242"
        daemon.kill()
        await daemon.ended()
        telegram.journal.clear()
        await daemon.start()
        await telegram.until(lambda: any(call.method == "getUpdates" for call in telegram.journal))
        poll = next(call for call in telegram.journal if call.method == "getUpdates")
        assert poll.facts["offset"] == value
