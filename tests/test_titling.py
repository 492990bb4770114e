"""Names of conversations: what of a model's answer is taken, and that nobody's own name is touched."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent import titling
from hermes.agent.models.base import Card
from hermes.errors import ModelUnavailable
from hermes.sessions import titles
from hermes.sessions.model import OWNER, Page
from worlds.hand import HandModel
from worlds.house import House, both_stores, house
from worlds.room import PATIENCE


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Fixing the auth module", "Fixing the auth module"),
        ('"Fixing the auth module."', "Fixing the auth module"),
        ("Title: Fixing the auth module\n", "Fixing the auth module"),
        ("**Title:** Fixing the auth module", "Fixing the auth module"),
        ("# Fixing the auth module", "Fixing the auth module"),
        ("Sure! Here's a title: Fixing the auth module", "Fixing the auth module"),
        ("<think>hm, a title\nfor this</think>\n\nFixing the auth module", "Fixing the auth module"),
        ('```json\n{"title": "Fixing the auth module"}\n```', "Fixing the auth module"),
        ('{"title": "Fixing the auth module", "broken', "Fixing the auth module"),
        ("Fixing the auth module\n\nThis title says what…", "Fixing the auth module"),
        ("标题：修复登录模块", "修复登录模块"),
        ("「修复登录模块」", "修复登录模块"),
        ("Fixing\u202e the\x07 auth", "Fixing the auth"),
        ("C++ build errors", "C++ build errors"),
        ("", None),
        ("...", None),
        ("🙂", None),
        ("<think>never ends", None),
        ("{}", None),
        ('{"title": 7}', None),
        ("I'm sorry, but I can't name this.", None),
        ("抱歉，我无法回答", None),
        ("the the the the the the", None),
        (
            "This conversation is about a person who would like to have the auth module of their project fixed soon",
            None,
        ),
        ("x" * 400, None),
    ],
)
def test_what_a_model_says_is_salvaged_or_refused(said: str, title: str | None) -> None:
    assert titling.salvage(said) == title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Help me refactor the auth module please, it is old", "Help me refactor the auth module please"),
        ("重跑gen-itgc后50条悬空引用", "重跑gen-itgc后50条悬空引用"),
        ("# Look at `this`\nhttps://example.com/very/long now", "Look at this now"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("字" * 200, "字" * 59),
        ("???", None),
        ("", None),
    ],
)
def test_without_a_model_the_first_words_do(question: str, title: str | None) -> None:
    assert titling.first_words(question) == title


@given(st.text() | st.text(alphabet='{"title": }\n`#<think>/', max_size=60))
def test_no_answer_raises_and_every_title_is_one(said: str) -> None:
    for title in (titling.salvage(said), titling.first_words(said)):
        assert title is None or (titles.clean(title) == title and 0 < len(title) <= titling.LONGEST)


async def exchange(world: House, model: HandModel, text: str = "Please fix the auth module", **facts: object) -> None:
    await world.say(text, **facts)  # type: ignore[arg-type]
    (await model.question()).answer("Done.")
    await world.quiet()


async def named(world: House) -> None:
    """Every conversation that was to get a name has been looked at."""
    assert world.app.titler is not None
    async with asyncio.timeout(PATIENCE):
        await world.app.titler.idle()


@both_stores
async def test_a_conversation_gets_its_name_after_the_first_answer(tmp_path: Path, kind: str) -> None:
    model, namer = HandModel(), HandModel()
    async with house(tmp_path, kind=kind, model=model, titles=namer) as world:
        await exchange(world, model)
        asked = await namer.question()
        assert world.room.texts("c1")[-1] == "Done.", "nobody waited for it"
        assert "Please fix the auth module" in asked.request.lines[0].text
        assert not asked.request.tools
        asked.answer("Auth module repair")
        await named(world)
        assert (await world.session()).title == "Auth module repair"
        assert not (await world.session()).title_by_person
        await exchange(world, model, "And the tests")
        assert namer.is_unasked, "it is asked once"


async def test_a_title_that_a_person_sets_meanwhile_stays(tmp_path: Path) -> None:
    model, namer = HandModel(), HandModel()
    async with house(tmp_path, model=model, titles=namer) as world:
        await exchange(world, model)
        asked = await namer.question()
        await world.say("/title mine")
        await world.quiet()
        asked.answer("Theirs")
        await named(world)
        assert (await world.session()).title == "mine"


async def test_twenty_that_are_called_the_same_are_numbered(tmp_path: Path) -> None:
    model, namer = HandModel(), HandModel()
    async with house(tmp_path, model=model, titles=namer) as world:
        for number in range(20):
            await exchange(world, model, chat=f"c{number}")
        for _ in range(20):
            (await namer.question()).answer("Hello")
        await named(world)
        found = {one.title for one in await world.store.list(Page(limit=50), OWNER)}
        assert found == {"Hello", *(f"Hello #{number}" for number in range(2, 21))}


@pytest.mark.parametrize("trouble", ["garbage", "error", "no model"])
async def test_without_a_usable_answer_the_first_words_are_the_name(tmp_path: Path, trouble: str) -> None:
    model = HandModel()
    namer = HandModel(Card(provider="h", name="h", context_length=9, writes_summaries=trouble != "no model"))
    async with house(tmp_path, model=model, titles=namer) as world:
        await exchange(world, model)
        if trouble == "garbage":
            (await namer.question()).answer("I'm sorry, but as an AI I cannot do that for you today.")
        elif trouble == "error":
            (await namer.question()).fail(ModelUnavailable("down"))
        await named(world)
        assert (await world.session()).title == "Please fix the auth module"


async def test_a_stop_names_what_waits_by_its_first_words(tmp_path: Path) -> None:
    model, namer = HandModel(), HandModel()
    async with house(tmp_path, model=model, titles=namer) as world:
        await exchange(world, model)
        asked = await namer.question()
        await world.app.stop(0.0)
        assert asked.left.is_set()
        assert (await world.session()).title == "Please fix the auth module"


async def test_a_conversation_that_is_deleted_meanwhile_is_no_trouble(tmp_path: Path) -> None:
    model, namer = HandModel(), HandModel()
    async with house(tmp_path, model=model, titles=namer) as world:
        await exchange(world, model)
        asked = await namer.question()
        session = await world.session()
        await world.store.delete(session.conversation, OWNER, now=world.clock.now() + 100)
        asked.answer("Auth module repair")
        await named(world)
        await exchange(world, model, chat="c2")
        (await namer.question()).answer("Another")
        await named(world)
        assert (await world.session("c2")).title == "Another"


async def test_a_secret_in_the_first_words_is_not_in_the_name(tmp_path: Path) -> None:
    model, namer = HandModel(), HandModel(Card(provider="h", name="h", context_length=9, writes_summaries=False))
    async with house(tmp_path, model=model, titles=namer) as world:
        await exchange(world, model, "use sk-proj-abcdefghijklmnopqrstuvwxyz123456 please")
        await named(world)
        assert "abcdefghij" not in ((await world.session()).title or "")
