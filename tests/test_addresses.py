"""A chat that goes on under another id takes everything along, whoever notices first."""

import asyncio
from pathlib import Path

from fakes import settle
from hermes.adapters.base import ChatKind, Moved, Origin
from hermes.agent.tools.memory import Memory
from hermes.errors import ChatMoved
from hermes.gateway.routing import KeyPolicy, session_key
from worlds.hand import HandModel
from worlds.house import House, both_stores, house
from worlds.scripts import echo

OLD, NEW = "-7", "-1007"
MOVED = Moved(platform="loopback", chat_id=OLD, to=NEW)


async def ask(h: House, text: str, chat: str) -> None:
    await h.say(text, chat=chat, kind="group")


async def said(h: House, chat: str) -> list[str]:
    """What people said in the owner's conversation in a group."""
    origin = Origin(platform="loopback", chat_id=chat, kind=ChatKind.GROUP, user_id="owner")
    found = await h.store.find(session_key(origin, KeyPolicy()))
    return [] if found is None else [row.content for row in await h.rows(found) if row.role.value == "user"]


@both_stores
async def test_the_conversation_goes_on_under_the_new_id(tmp_path: Path, kind: str) -> None:
    async with house(tmp_path, kind=kind, model=echo()) as h:
        await ask(h, "before", OLD)
        await h.room.shows(1)
        await h.hand(MOVED)
        await ask(h, "after", NEW)
        await h.room.shows(2)
        await h.quiet()
        assert await said(h, NEW) == ["before", "after"]
        assert await said(h, OLD) == []
        assert [note.chat for note in h.room.shown] == [OLD, NEW]
        await h.balanced()


async def test_a_late_message_under_the_old_id_joins_it_and_is_answered_where_people_are(tmp_path: Path) -> None:
    async with house(tmp_path, model=echo()) as h:
        await ask(h, "before", OLD)
        await h.room.shows(1)
        await h.hand(MOVED)
        await ask(h, "late", OLD)
        await h.room.shows(2)
        assert await said(h, NEW) == ["before", "late"]
        assert h.room.last().chat == NEW


async def test_the_move_is_remembered_by_the_next_process(tmp_path: Path) -> None:
    async with house(tmp_path, model=echo()) as h:
        await ask(h, "before", OLD)
        await h.room.shows(1)
        await h.hand(MOVED)
    async with house(tmp_path, model=echo()) as h:
        await ask(h, "late", OLD)
        await h.room.shows(1)
        assert await said(h, NEW) == ["before", "late"]


async def test_ids_of_messages_start_anew_and_none_is_taken_for_a_repeat(tmp_path: Path) -> None:
    async with house(tmp_path, model=echo()) as h:
        await h.say("first", id="1", chat=OLD, kind="group")
        await h.room.shows(1)
        await h.hand(MOVED)
        await h.say("second", id="1", chat=NEW, kind="group")
        await h.say("first", id="1", chat=OLD, kind="group")
        await h.room.shows(2)
        await h.quiet()
        assert await said(h, NEW) == ["first", "second"]


@both_stores
async def test_an_answer_finds_its_chat_though_nobody_told_us(tmp_path: Path, kind: str) -> None:
    model = HandModel()
    async with house(tmp_path, kind=kind, model=model) as h:
        await ask(h, "question", OLD)
        h.room.fail_sends(ChatMoved("loopback", NEW))
        (await model.question()).answer("answer")
        await h.room.shows(1)
        await h.quiet()
        assert (h.room.last().chat, h.room.last().text, h.room.last().reply_to) == (NEW, "answer", None)
        await h.balanced()
        await ask(h, "more", NEW)
        assert (await model.question()).heard == ["question", "more"]


async def test_a_turn_that_runs_while_the_chat_moves_answers_in_the_new_one(tmp_path: Path) -> None:
    model = HandModel()
    async with house(tmp_path, model=model) as h:
        await ask(h, "question", OLD)
        question = await model.question()
        await h.hand(MOVED)
        h.room.fail_sends(ChatMoved("loopback", NEW))  # the platform refuses the old id
        question.answer("answer")
        await h.room.shows(1)
        assert (h.room.last().chat, h.room.last().text) == (NEW, "answer")
        await h.quiet()
        await h.balanced()


async def test_what_waited_is_answered_under_the_new_id(tmp_path: Path) -> None:
    model = HandModel()
    async with house(tmp_path, model=model, gateway={"busy_input_mode": "queue"}) as h:
        await ask(h, "one", OLD)
        question = await model.question()
        await ask(h, "two", OLD)
        await h.hand(MOVED)
        question.answer("1")
        (await asyncio.wait_for(model.question(), 20)).answer("2")
        await h.room.shows(2)
        assert [note.chat for note in h.room.shown][-1] == NEW
        assert await said(h, NEW) == ["one", "two"]


async def test_a_rooms_memory_goes_with_it(tmp_path: Path) -> None:
    model = HandModel()
    async with house(tmp_path, model=model, group_sessions_per_user=False) as h:
        await ask(h, "remember", OLD)
        (await model.question()).call("memory", action="add", content="we meet on Fridays")
        (await model.question()).answer("Noted.")
        await h.room.shows(1)
        await h.hand(MOVED)
        await ask(h, "/new", NEW)
        await ask(h, "when?", NEW)
        question = await model.question()
        assert "we meet on Fridays" in question.request.system
        question.answer("Fridays.")
        await h.quiet()


async def test_notes_that_cannot_be_moved_do_not_stop_the_conversation(tmp_path: Path) -> None:
    async with house(tmp_path, model=echo(), group_sessions_per_user=False) as h:
        await ask(h, "before", OLD)
        await h.room.shows(1)
        memory = Memory(tmp_path / "memory")
        memory._home(f"loopback:room:{OLD}").mkdir(parents=True)
        memory._home(f"loopback:room:{NEW}").symlink_to("nowhere")  # no folder can take its place
        h.room.fail_sends(ChatMoved("loopback", NEW))
        await ask(h, "after", OLD)
        await h.room.shows(2)
        assert h.room.last().chat == NEW
        await h.quiet()


async def test_a_refusal_takes_its_turn_where_people_are_now(tmp_path: Path) -> None:
    async with house(tmp_path, kind="memory", model=echo(), gateway={"user_rate_per_minute": 1}) as h:
        await h.hand(MOVED)
        gate = h.room.hold(NEW)
        await h.say("hi", chat=OLD, kind="group", user="ann")
        await h.room.until(lambda: len(h.room.tries) == 1)
        await h.say("hi", chat=OLD, kind="group", user="ann")
        await settle(200)
        assert len(h.room.tries) == 1  # the answer is still on its way, and a chat is written to in order
        gate.set()
        await h.room.shows(2)
        assert [note.chat for note in h.room.shown] == [NEW, NEW]
        await h.quiet()
