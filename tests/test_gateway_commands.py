"""Commands in a chat: what they do to the conversation, and that each is done once."""

import asyncio
from pathlib import Path

import pytest

from fakes import VirtualClock
from hermes.errors import LeaseLost
from hermes.gateway.commands import COMMANDS
from hermes.sessions.model import OWNER, Link, Outcome, SessionId, Split, Step, TurnId
from worlds.hand import HandModel
from worlds.house import House, both_stores, house


async def told(h: House, text: str, **facts: str) -> str:
    """What a command says, with nothing else going on."""
    before = len(h.room.texts())
    await h.say(text, **facts)
    return (await h.room.shows(before + 1))[-1]


async def talked(h: House, model: HandModel, text: str = "hello", **facts: str) -> None:
    """One question and its answer."""
    await h.say(text, **facts)
    (await model.question()).answer(f"re: {text}")
    await h.quiet()


class TestNew:
    @both_stores
    @pytest.mark.parametrize("command", ["/new", "/reset", "/NEW", " /new ", "/new@hermes_bot"])
    async def test_the_next_message_belongs_to_a_fresh_session(self, tmp_path: Path, kind: str, command: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await talked(h, model)
            old = await h.session()
            assert "New conversation" in await told(h, command)
            await h.say("again")
            question = await model.question()
            assert question.heard == ["again"]
            question.answer("ok")
            await h.quiet()
            new = await h.session()
            assert new.conversation != old.conversation
            assert (new.parent, new.link) == (old.id, Link.RESET)
            assert (await h.store.get(old.id, OWNER)).end_reason == "session_reset"
            assert await h.transcript() == ["user: again", "assistant: ok"]

    async def test_it_can_be_named(self, tmp_path: Path) -> None:
        async with house(tmp_path) as h:
            assert "**Trip to Rome**" in await told(h, "/new Trip to  Rome")
            assert (await h.session()).title == "Trip to Rome"

    async def test_a_name_that_is_taken_changes_nothing_and_says_who_has_it(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await told(h, "/new Rome", chat="c2")
            await talked(h, model)
            before = await h.session()
            said = await told(h, "/new Rome")
            assert (await h.session("c2")).id in said
            assert (await h.session()).id == before.id

    @both_stores
    async def test_what_the_old_turn_thinks_later_does_nothing_to_the_new_session(
        self, tmp_path: Path, kind: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            asked = await h.say("old question")
            old = await model.question()
            old.say("half an")
            await old.taken()
            waiting = await h.say("waits for the old one")
            await h.say("/new")
            stopped, new = await h.room.shows(2)
            assert stopped.startswith("half an")
            assert "New conversation" in new
            old.answer(" answer")
            await h.say("new question")
            question = await model.question()
            assert question.heard == ["new question"]
            question.answer("new answer")
            assert (await h.room.shows(3))[-1] == "new answer"
            await h.quiet()
            assert await h.transcript() == ["user: new question", "assistant: new answer"]
            assert [(await h.row(one)).outcome for one in (asked, waiting)] == [Outcome.ABANDONED] * 2
            await h.balanced()


class TestTitle:
    @both_stores
    async def test_it_is_shown_set_and_cleaned(self, tmp_path: Path, kind: str) -> None:
        async with house(tmp_path, kind=kind) as h:
            assert "no title yet" in await told(h, "/title")
            assert "**Rome**" in await told(h, "/title \u200b Rome\t ")
            assert await told(h, "/title") == "Title: **Rome**"
            assert (await h.session()).title_by_person

    async def test_one_that_is_taken_says_who_has_it(self, tmp_path: Path) -> None:
        async with house(tmp_path) as h:
            await told(h, "/title Rome", chat="c2")
            said = await told(h, "/title Rome")
            assert (await h.session("c2")).id in said
            assert (await h.session()).title is None


class TestStatus:
    async def test_before_anything_was_said(self, tmp_path: Path) -> None:
        async with house(tmp_path) as h:
            said = await told(h, "/status")
            assert "No conversation here yet" in said
            assert "the model" in said

    async def test_it_tells_the_session_its_size_and_what_runs(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model)
            said = await told(h, "/status")
            session = await h.session()
            assert session.id in said
            assert "Messages: 2\nTokens: 10 in, 5 out\nState: idle" in said
            await h.say("long")
            question = await model.question()
            assert (await told(h, "/status")).endswith("State: answering")
            await h.say("another")
            assert (await told(h, "/status")).endswith("State: answering, 1 waiting")
            question.answer("done")
            (await model.question()).answer("done too")
            await h.quiet()


class TestStop:
    @both_stores
    async def test_what_was_written_is_shown_and_kept(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            asked = await h.say("story")
            question = await model.question()
            question.say("Once upon")
            await question.taken()
            command = await h.say("/stop")
            assert (await h.room.shows(1))[0].startswith("Once upon\n\n⏹")
            await question.left.wait()
            await h.quiet()
            assert await h.transcript() == ["user: story", "assistant: Once upon"]
            assert (await h.row(asked)).why == "stopped"
            await h.done(command)
            await h.balanced()

    async def test_before_the_first_word_only_the_notice_is_shown(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("story")
            await model.question()
            assert (await told(h, "/stop")).startswith("⏹")
            await h.quiet()
            assert await h.transcript() == ["user: story"]

    async def test_what_was_said_just_before_and_has_not_begun_is_stopped_too(self, tmp_path: Path) -> None:
        async with house(tmp_path, model=HandModel()) as h:
            (first, stop) = [h.event(text) for text in ("too quick", "/stop")]
            async with asyncio.TaskGroup() as both:
                both.create_task(h.hand(first))
                both.create_task(h.hand(stop))
            await h.quiet()
            (shown,) = h.room.texts()
            assert shown.startswith("⏹")
            assert (await h.balanced()).inbound["abandoned"] == 1

    async def test_with_nothing_to_stop_it_says_so(self, tmp_path: Path) -> None:
        async with house(tmp_path) as h:
            assert await told(h, "/stop") == "Nothing is running here."

    @both_stores
    async def test_a_turn_elsewhere_loses_the_conversation(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await talked(h, model)
            session = await h.session()
            lease = await h.store.leases.take(
                session.conversation, owner="terminal-1", place="a terminal", now=h.clock.now(), ttl=60
            )
            assert "a terminal" in await told(h, "/stop")
            with pytest.raises(LeaseLost):
                await h.store.commit(lease, Step(turn=TurnId("t"), session=session.id, at=h.clock.now()))
            await talked(h, model, "free again")

    @both_stores
    async def test_a_turn_that_lost_its_conversation_says_so_and_is_not_taken_up_again(
        self, tmp_path: Path, kind: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            asked = await h.say("long")
            question = await model.question()
            await h.store.leases.take(
                (await h.session()).conversation, owner="x", place="a terminal", now=0, ttl=0, force=True
            )
            question.call("session_search", query="x")
            await h.quiet()
            assert model.is_unasked
            assert ((await h.row(asked)).outcome, (await h.row(asked)).why) == (Outcome.ABANDONED, "taken over")
            assert h.room.texts() == ["⏹ Stopped from elsewhere. What was written so far is kept."]


class TestWords:
    async def test_help_lists_every_command_in_the_persons_language(self, tmp_path: Path) -> None:
        async with house(tmp_path) as h:
            english = await told(h, "/help")
            chinese = await told(h, "/help 请帮帮我")
            for command in COMMANDS.values():
                assert (f"/{command.name}" in english) is not command.hidden
                assert (f"/{command.name}" in chinese) is not command.hidden
            assert "start a new conversation" in english
            assert "开始新会话" in chinese

    async def test_a_configured_language_is_kept(self, tmp_path: Path) -> None:
        async with house(tmp_path, language="zh") as h:
            assert "开始新会话" in await told(h, "/help")

    @pytest.mark.parametrize(("user", "role"), [("owner", "owner"), ("somebody", "guest")])
    async def test_whoami_tells_the_id_and_the_role(self, tmp_path: Path, user: str, role: str) -> None:
        async with house(tmp_path) as h:
            assert await told(h, "/whoami", user=user) == f"Platform: loopback\nUser: `{user}`\nRole: {role}"

    @both_stores
    async def test_start_is_silent(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            packet = await h.say("/start")
            await h.quiet()
            assert h.room.texts() == []
            assert model.is_unasked
            assert (await h.row(packet)).outcome is Outcome.COMMAND

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("/statsu", "There is no command /statsu. Did you mean /status?"),
            ("/frobnicate", "There is no command /frobnicate. /help lists them all."),
        ],
    )
    async def test_an_unknown_one_is_told_the_nearest(self, tmp_path: Path, text: str, answer: str) -> None:
        async with house(tmp_path) as h:
            assert await told(h, text) == answer

    @pytest.mark.parametrize("text", ["/etc/hosts is a file", "/", "/ new", "1/2", "/2", "see /new", "//"])
    async def test_what_only_looks_like_one_is_talk(self, tmp_path: Path, text: str) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say(text)
            question = await model.question()
            assert question.heard == [text]
            question.answer("ok")
            await h.quiet()


class TestUrgency:
    @pytest.mark.parametrize("command", ["/status", "/whoami", "/help"])
    async def test_urgent_ones_do_not_wait_for_the_running_turn(self, tmp_path: Path, command: str) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("long")
            question = await model.question()
            await told(h, command)
            question.answer("at last")
            assert (await h.room.shows(2))[1] == "at last"
            await h.quiet()

    async def test_others_wait_and_split_what_was_said_before_and_after(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await h.say("one")
            question = await model.question()
            await h.say("two")
            await h.say("/title Rome")
            await h.say("three")
            question.answer("first")
            second = await model.question()
            assert second.heard == ["one", "two"]
            second.answer("second")
            third = await model.question()
            assert third.heard == ["one", "two", "three"]
            third.answer("third")
            shown = await h.room.shows(4)
            assert shown[:2] == ["first", "second"]
            assert "Rome" in shown[2]
            assert shown[3] == "third"

    @both_stores
    async def test_each_is_done_once_though_the_bypass_and_the_mailbox_both_see_it(
        self, tmp_path: Path, kind: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await h.say("long")
            question = await model.question()
            events = [h.event("/whoami") for _ in range(5)]
            async with asyncio.TaskGroup() as group:
                for event in events:
                    group.create_task(h.hand(event))
                    group.create_task(h.hand(event))
                question.answer("done")
            await h.room.shows(6)
            await h.quiet()
            assert len(h.room.texts()) == 6
            books = await h.balanced()
            assert (books.inbound["command"], books.inbound["answered"]) == (5, 1)

    @both_stores
    async def test_a_stop_that_comes_when_the_answer_is_being_written_down_does_no_harm(
        self, tmp_path: Path, kind: str
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            for number in range(10):
                await h.say(f"question {number}")
                question = await model.question()
                question.answer("done")
                await question.left.wait()
                await h.say("/stop")
                await h.quiet()
            await talked(h, model, "still there?")
            *before, last = h.room.texts()
            assert last == "re: still there?"
            assert before.count("done") == 10
            assert set(before) <= {"done", "Nothing is running here."}


async def later(h: House) -> None:
    """A minute passes: lists tell conversations apart by when they were last active."""
    assert isinstance(h.clock, VirtualClock)
    await h.clock.advance(60)


class TestResume:
    @both_stores
    async def test_a_person_goes_back_by_number_title_or_id(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            await talked(h, model, "about Rome")
            await told(h, "/title Rome")
            rome = await h.session()
            for way in ("2", "Rome", rome.id, rome.id[:-1]):
                await later(h)
                await told(h, "/new")
                await talked(h, model, f"something else {way}")
                other = await h.session()
                said = await told(h, f"/resume {way}")
                assert said.startswith("↻ Going on with Rome")
                assert "● about Rome\n◆ re: about Rome" in said
                assert (await h.session()).conversation == rome.conversation
                left = await h.store.get(other.id, OWNER)
                assert left.end_reason == "resumed_other", "nobody else would ever close it"
            await h.say("and Naples?")
            question = await model.question()
            assert question.heard == ["about Rome", "and Naples?"]
            question.answer("too")
            await h.quiet()
            assert "already" in await told(h, "/resume Rome")

    async def test_a_conversation_over_several_segments_is_one(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model)
            await told(h, "/title proj")
            first = await h.session()
            lease = await h.store.leases.take(first.conversation, owner="x", place="x", now=h.clock.now(), ttl=9)
            split = Split(child=SessionId("c2"), head=(), summary=None, tail=(), at=h.clock.now())
            tip = await h.store.split(lease, first.id, split)
            await h.store.leases.release(lease)
            assert tip.title == "proj #2"
            for name in ("proj", "proj #2", first.id, "c2"):
                await told(h, "/new")
                await told(h, f"/resume {name}")
                assert (await h.session()).id == "c2"

    async def test_what_is_not_theirs_is_not_there(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model, "my secret plan", chat="c1", user="u1")
            await told(h, "/title plan", chat="c1", user="u1")
            plan = await h.session("c1")
            await talked(h, model, "hi", chat="c2", user="u2")
            mine = await h.session("c2")
            assert "plan" not in await told(h, "/sessions", chat="c2", user="u2")
            for name in ("plan", plan.id, plan.id[:15]):
                said = await told(h, f"/resume {name}", chat="c2", user="u2")
                assert "No conversation of yours" in said or "already" in said
            assert "Nobody said" in await told(h, "/sessions search secret", chat="c2", user="u2")
            assert (await h.session("c2")).id == mine.id

    async def test_in_a_room_only_what_was_said_in_it_is_shown(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model, "my private doctor question", chat="c1", user="u1")
            await told(h, "/title doctor", chat="c1", user="u1")
            private = await h.session("c1")
            await talked(h, model, "in the group", chat="g1", user="u1", kind="group")
            listed = await told(h, "/sessions", chat="g1", user="u1", kind="group")
            assert "in the group" in listed
            assert "doctor" not in listed
            assert "Nobody said" in await told(h, "/sessions search doctor", chat="g1", user="u1", kind="group")
            for name in ("doctor", private.id):
                assert "No conversation" in await told(h, f"/resume {name}", chat="g1", user="u1", kind="group")
            assert "doctor" in await told(h, "/sessions", chat="c1", user="u1")

    async def test_a_guest_is_not_told_whose_a_title_is(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model, chat="c1", user="u1")
            await told(h, "/title Divorce lawyer", chat="c1", user="u1")
            theirs = await h.session("c1")
            said = await told(h, "/title Divorce lawyer", chat="c2", user="u2")
            assert "is taken" in said
            assert theirs.id not in said

    async def test_the_list_shows_where_one_is_and_search_shows_the_words(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            assert "no earlier conversations" in await told(h, "/sessions")
            await talked(h, model, "the capital of Italy")
            await later(h)
            await told(h, "/new Paris")
            await talked(h, model, "the capital of France")
            lines = (await told(h, "/resume")).splitlines()
            assert lines[0].startswith("1. Paris · ")
            assert lines[0].endswith(" ←")
            assert lines[1].startswith("2. the capital of Italy · ")
            found = await told(h, "/sessions search italy")
            assert "the capital of >>>Italy<<<" in found
            assert "France" not in found

    async def test_a_name_that_leads_nowhere_changes_nothing(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            await talked(h, model, chat="c1")
            await talked(h, model, chat="c2")
            here = await h.session("c1")
            assert "No conversation of yours answers to “nowhere”" in await told(h, "/resume nowhere", chat="c1")
            assert "Several conversations fit" in await told(h, f"/resume {here.id[:8]}", chat="c1")
            assert (await h.session("c1")).id == here.id
