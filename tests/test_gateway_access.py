"""Who gets in, who gets silence, and whose words reach whom."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hermes.adapters.base import Standing
from hermes.gateway.intake import STALE_SECONDS
from hermes.sessions.model import Outcome
from worlds.hand import HandModel
from worlds.house import House, both_stores, house

CLOSED: dict[str, Any] = {"access": {"owners": ["loopback:owner"]}}


async def code_for(h: House, user: str) -> str:
    """The code that a stranger is shown."""
    before = len(h.room.texts(user))
    await h.say("hello", chat=user, user=user)
    said = (await h.room.shows(before + 1, user))[-1]
    found = re.search(r"\*\*([A-Z2-9]{8})\*\*", said)
    assert found is not None, said
    return found[1]


class TestPairing:
    @both_stores
    async def test_a_stranger_gets_one_code_however_often_they_write(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, **CLOSED) as h:
            assert {await code_for(h, "stranger") for _ in range(3)} == {await code_for(h, "stranger")}
            assert model.is_unasked
            await h.quiet()
            assert (await h.balanced()).inbound["rejected"] == 4

    async def test_a_crowd_gets_three_codes_and_patience(self, tmp_path: Path) -> None:
        async with house(tmp_path, **CLOSED) as h:
            for number in range(3):
                await code_for(h, f"stranger{number}")
            await h.say("hello", chat="fourth", user="fourth")
            assert "try again" in (await h.room.shows(1, "fourth"))[0]

    @both_stores
    async def test_approved_they_are_a_guest_and_revoked_they_are_out_with_the_next_message(
        self, tmp_path: Path, kind: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, **CLOSED) as h:
            code = await code_for(h, "ada")
            await h.store.roles.approve("loopback", code, role="guest", at=h.clock.now())
            await h.say("/whoami", chat="ada", user="ada")
            assert (await h.room.shows(2, "ada"))[-1].endswith("Role: guest")
            await h.say("hi", chat="ada", user="ada")
            (await model.question()).answer("welcome")
            assert (await h.room.shows(3, "ada"))[-1] == "welcome"
            await h.quiet()

            await h.store.roles.revoke("loopback", "ada")
            packet = await h.say("hi again", chat="ada", user="ada")
            await h.quiet()
            assert (await h.row(packet)).outcome is Outcome.REJECTED
            assert model.is_unasked

    async def test_a_code_is_asked_for_in_the_strangers_language(self, tmp_path: Path) -> None:
        async with house(tmp_path, **CLOSED) as h:
            await h.say("你好，请问你是谁", chat="x", user="x")
            assert "配对码" in (await h.room.shows(1))[0]


class TestSilence:
    @pytest.mark.parametrize(
        ("blocks", "facts"),
        [
            (CLOSED, {"kind": "group", "chat": "g1", "user": "stranger"}),
            ({"access": {"unauthorized_dm": "ignore"}}, {"chat": "x", "user": "stranger"}),
            (
                {"access": {"allow_all": True}, "platforms": {"loopback": {"allowed_users": ["friend"]}}},
                {"chat": "x", "user": "stranger"},
            ),
            (CLOSED, {"chat": "x", "user": None}),
        ],
    )
    async def test_strangers_are_met_with_silence(
        self, tmp_path: Path, blocks: dict[str, Any], facts: dict[str, Any]
    ) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, **blocks) as h:
            for text in ("hello", "/help", "/new"):
                await h.say(text, **facts)
            await h.quiet()
            assert h.room.texts() == []
            assert model.is_unasked
            assert (await h.balanced()).inbound["rejected"] == 3
            assert (await h.store.counts()).messages == 0

    async def test_taken_off_the_list_somebody_is_out_with_the_next_message(self, tmp_path: Path) -> None:
        model = HandModel()
        listed = {"loopback": {"allowed_users": ["friend", "other"]}}
        async with house(tmp_path, model=model, access={}, platforms=listed) as h:
            await h.say("hi", chat="friend", user="friend")
            (await model.question()).answer("hello")
            await h.quiet()
            h.configure(platforms={"loopback": {"allowed_users": ["other"]}})
            await h.say("hi", chat="friend", user="friend")
            await h.quiet()
            assert h.room.texts() == ["hello"]


async def look_up(h: House, model: HandModel, tool: str, question: str, **arguments: object) -> str:
    """What a tool gives when the model calls it in this person's turn."""
    (await model.question()).call(tool, **arguments)
    step = await model.question()
    step.answer(f"about {question}")
    await h.quiet()
    return step.results[-1]


class TestWhoReadsWhat:
    @both_stores
    async def test_a_guest_never_finds_another_persons_words(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await h.say("the safe opens with saffron", chat="owner", user="owner")
            (await model.question()).answer("noted")
            await h.quiet()
            await h.say("my own saffron recipe", chat="ada", user="ada")
            (await model.question()).answer("nice")
            await h.quiet()
            await h.say("/new", chat="ada", user="ada")
            await h.room.shows(3)
            await h.say("what do you know of saffron?", chat="ada", user="ada")
            found = await look_up(h, model, "session_search", "saffron", query="saffron")
            assert "recipe" in found
            assert "safe opens" not in found
            await h.say("and lately?", chat="ada", user="ada")
            browsed = await look_up(h, model, "session_search", "lately")
            assert json.loads(browsed)["count"] == 1
            assert "safe opens" not in browsed

    async def test_an_id_that_a_guest_has_overheard_opens_nothing(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("secret", chat="owner", user="owner")
            (await model.question()).answer("noted")
            await h.quiet()
            session = await h.session("owner")
            first = (await h.rows(session))[0].id
            await h.say("read it", chat="ada", user="ada")
            seen = await look_up(h, model, "session_search", "it", session_id=session.id, around_message_id=first)
            assert "secret" not in seen

    async def test_the_owner_finds_everything_alone_and_nothing_private_in_a_group(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("ada likes saffron", chat="ada", user="ada")
            (await model.question()).answer("noted")
            await h.quiet()
            await h.say("saffron?", chat="owner", user="owner")
            assert "ada likes" in await look_up(h, model, "session_search", "it", query="saffron")
            await h.say("saffron?", kind="group", chat="g1", user="owner")
            assert "ada likes" not in await look_up(h, model, "session_search", "it", query="saffron")

    async def test_a_guests_memory_is_their_own(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("remember", chat="owner", user="owner")
            await look_up(h, model, "memory", "it", action="add", content="the safe code is 1234")
            await h.say("what do you remember?", chat="ada", user="ada")
            question = await model.question()
            assert "1234" not in question.request.system
            question.call("memory", action="read")
            step = await model.question()
            assert "1234" not in step.results[-1]
            step.answer("nothing")
            await h.quiet()
            await h.say("and I?", chat="owner2", user="owner")
            question = await model.question()
            assert "1234" in question.request.system
            question.answer("the code")
            await h.quiet()


class TestRooms:
    """Where the agent has to be named."""

    NAMED: ClassVar[dict[str, Any]] = {"access": {"allow_all": True}, "platforms": {}}

    async def test_what_people_say_to_each_other_is_none_of_its_business(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, **self.NAMED) as h:
            talk = await h.say("lunch?", chat="g", kind="group", user="ann")
            row = await h.done(talk)
            assert (row.outcome, row.why, row.payload) == (Outcome.REJECTED, "not addressed", None)
            await h.quiet()
            assert model.is_unasked
            assert h.room.texts() == []

    @pytest.mark.parametrize(
        ("text", "facts"),
        [
            ("what is the time?", {"mentions_me": True}),
            ("what is the time?", {"kind": "dm"}),
        ],
    )
    async def test_it_answers_who_names_it_and_who_is_alone_with_it(
        self, tmp_path: Path, text: str, facts: dict[str, Any]
    ) -> None:
        model = HandModel()
        async with house(tmp_path, model=model, **self.NAMED) as h:
            await h.say(text, **{"chat": "g", "kind": "group", "user": "ann", **facts})
            (await model.question()).answer("noon")
            assert await h.room.shows(1) == ["noon"]
            await h.quiet()

    async def test_commands_are_meant_for_it(self, tmp_path: Path) -> None:
        async with house(tmp_path, **self.NAMED) as h:
            await h.say("/whoami", chat="g", kind="group", user="ann")
            assert "ann" in (await h.room.shows(1))[0]

    async def test_rooms_can_be_told_to_do_without(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("lunch?", chat="g", kind="group", user="ann")
            (await model.question()).answer("soup")
            assert await h.room.shows(1) == ["soup"]
            await h.quiet()


class TestHistory:
    """What a platform replays."""

    @both_stores
    async def test_what_was_said_days_ago_is_recorded_and_not_answered(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            old = replace(h.event("months ago"), at=h.clock.now() - STALE_SECONDS - 1)
            assert (await h.hand(old)).standing is Standing.FRESH
            row = await h.store.inbox.find("loopback", "c1", old.event_id)
            assert row is not None
            assert (row.outcome, row.why) == (Outcome.REJECTED, "too old")
            await h.quiet()
            assert (h.room.texts(), model.is_unasked) == ([], True)

    async def test_what_was_said_while_we_were_away_for_a_day_is_answered(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.hand(replace(h.event("yesterday"), at=h.clock.now() - 24 * 3600.0))
            (await model.question()).answer("today")
            assert await h.room.shows(1) == ["today"]
            await h.quiet()
