"""Nothing lost, nothing twice: a real gateway is killed at every moment of a turn, and the far sides are asked."""

import asyncio
import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.sessions.model import ToolCall
from worlds.books import weather_a_storm
from worlds.llm import Asked, End, LlmWorld, Say
from worlds.person import program
from worlds.scene import Slow, query, scene, within

pytestmark = pytest.mark.crash

KILLS = 15
SEED = 20270115


# -- a storm of kills ---------------------------------------------------------------------------------------------


async def test_nothing_is_lost_and_nothing_happens_twice_however_often_the_gateway_is_killed(tmp_path: Path) -> None:
    await weather_a_storm(tmp_path, kills=KILLS, seed=SEED)


# -- one kill at one moment -----------------------------------------------------------------------------------------


async def test_what_was_acknowledged_is_answered_after_a_kill_though_nobody_asks_again(tmp_path: Path) -> None:
    world = Slow()
    async with scene(tmp_path, world, max_concurrent_turns=1) as (daemon, talk):
        busy = await talk.say("busy", "First")
        await within(world.asked.acquire())
        waiting = await talk.say("waiting", "Second")  # the only turn that may run is the other one
        await talk.acknowledgement(waiting)
        daemon.kill()
        assert [asked.last_user_text[-5:] for asked in world.journal] == ["First"]
        world.go_on.set()
        await daemon.restart()
        assert (await talk.answer(busy)).endswith("First")
        assert (await talk.answer(waiting)).endswith("Second")
        assert [row["role"] for row in talk.rows["waiting"]] == ["user", "assistant"]


async def test_a_tool_that_has_run_is_not_run_again_when_its_result_was_kept(tmp_path: Path) -> None:
    world = LlmWorld()
    world.will(Say(calls=(remember("once"),)), Say(text="Kept."))
    async with scene(tmp_path, world) as (daemon, talk):
        memory = daemon.home.memory / "MEMORY.md"

        async def kill_at_the_second(_: Asked) -> None:
            if len(world.journal) == 2:
                assert memory.read_text(encoding="utf-8") == "- once\n"
                memory.unlink()  # a second run would write it again
                daemon.kill()
                await asyncio.Event().wait()

        world.before = kill_at_the_second
        question = await talk.say("chat", "Remember this")
        await daemon.restart()
        assert await talk.answer(question)
        assert not memory.exists()
        assert [row["role"] for row in talk.rows["chat"]] == ["user", "assistant", "tool", "assistant"]
        assert "once" in talk.rows["chat"][2]["content"]


async def test_a_tool_that_was_at_work_is_not_run_again_and_the_model_is_told_so(tmp_path: Path) -> None:
    world = LlmWorld()
    world.will(Say(calls=(remember("never"),)), Say(text="I cannot tell whether it was kept."))
    async with scene(tmp_path, world) as (daemon, talk):
        with locked(daemon.home.memory):
            question = await talk.say("chat", "Remember this")
            await talk.until(lambda: any(glimpse["t"] == "tool" for glimpse in talk.glimpsed))
            daemon.kill()
            await daemon.ended()
        await daemon.start()
        assert await talk.answer(question) == "I cannot tell whether it was kept."
        assert not (daemon.home.memory / "MEMORY.md").exists()
        assert world.journal[-1].body["messages"][-1]["content"] == "interrupted, outcome unknown"


async def test_words_that_were_half_said_are_said_once_in_the_end(tmp_path: Path) -> None:
    world = LlmWorld()
    world.will(Say(text="One two three", end=End.SILENCE), Say(text="One two three"))
    async with scene(tmp_path, world) as (daemon, talk):
        question = await talk.say("chat", "Count")
        await talk.until(lambda: "".join(glimpse["text"] for glimpse in talk.glimpsed) == "One two three")
        daemon.kill()
        await daemon.restart()
        assert await talk.answer(question) == "One two three"
        assert [row["content"] for row in talk.rows["chat"]] == ["Count", "One two three"]


async def test_a_turn_that_kills_the_gateway_twice_is_put_aside_and_the_chat_is_told(tmp_path: Path) -> None:
    world = LlmWorld()
    async with scene(tmp_path, world) as (daemon, talk):

        async def kill_at_the_bad_one(asked: Asked) -> None:
            if asked.last_user_text.endswith("bad"):
                daemon.kill()
                await asyncio.Event().wait()

        world.before = kill_at_the_bad_one
        bad = await talk.say("chat", "bad")
        await daemon.restart()
        await daemon.restart()
        assert "made no progress" in await talk.answer(bad)
        assert len(world.journal) == 2
        assert query(daemon, "SELECT outcome, why FROM inbox") == [("dead", "parked")]
        world.before = LlmWorld().before
        good = await talk.say("chat", "good")
        assert (await talk.answer(good)).endswith("good")


# -- being told to stop ---------------------------------------------------------------------------------------------


async def test_told_to_stop_it_lets_turns_end_first(tmp_path: Path) -> None:
    world = Slow()
    async with scene(tmp_path, world) as (daemon, talk), program(daemon, "the program") as api:
        asked = await talk.say("chat", "Slow one")
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(api.ask("Slow two"))
            await within(world.asked.acquire())
            await within(world.asked.acquire())
            daemon.terminate()
            await daemon.stopping()
            world.go_on.set()
            assert await daemon.ended() == 0
        assert answer.result().endswith("Slow two")
        assert query(daemon, "SELECT outcome FROM inbox") == [("answered",), ("answered",)]
        assert query(daemon, "SELECT state FROM outbox") == [("sent",), ("sent",)]
        await daemon.start()
        await talk.until(lambda: len(talk.rows["chat"]) == 2)  # the page has left with the adapter, and reads the store
        assert asked in talk.acknowledged
        assert len(world.journal) == 2


async def test_a_turn_that_a_stop_cut_short_goes_on_at_the_next_start_however_often(tmp_path: Path) -> None:
    world = Slow()
    async with scene(tmp_path, world, drain_seconds=0) as (daemon, talk):
        question = await talk.say("chat", "Slow one")
        for _ in range(3):
            await within(world.asked.acquire())
            daemon.terminate()
            assert await daemon.ended() == 0
            await daemon.start()
        await within(world.asked.acquire())
        world.go_on.set()
        assert (await talk.answer(question)).endswith("Slow one")
        assert [row["role"] for row in talk.rows["chat"]] == ["user", "assistant"]


async def test_told_to_stop_with_nothing_to_do_it_ends_well_and_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, LlmWorld()) as (daemon, _):
        started = time.monotonic()
        daemon.terminate()
        assert await daemon.ended() == 0
        assert time.monotonic() - started < 3
        assert "Traceback" not in daemon.log


async def test_a_second_gateway_on_one_home_is_refused_with_a_sentence_and_the_first_goes_on(tmp_path: Path) -> None:
    async with scene(tmp_path, LlmWorld()) as (daemon, talk):
        refused = await daemon.run("gateway", "run")
        assert refused.code == 78
        assert refused.err.startswith("hermes: Another gateway (process ")
        assert "HERMES_HOME" in refused.err
        assert refused.err.count("\n") == 1
        question = await talk.say("chat", "Still there?")
        assert (await talk.answer(question)).endswith("Still there?")


def remember(text: str) -> ToolCall:
    return ToolCall(id="call_1", name="memory", arguments=json.dumps({"action": "add", "content": text}))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another process changes the memory files, and takes its time: whoever wants them waits."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
