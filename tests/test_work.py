"""A turn while it lives: it can be cut short as long as it thinks, and not a moment longer."""

import asyncio

import pytest

from hermes.adapters.base import Inbound, Origin
from hermes.gateway.access import Role
from hermes.gateway.work import Running, RunningTurns, Work
from hermes.sessions.model import ConversationId, Lease, SessionKey, TurnId

KEY = SessionKey("k")
WORK = Work(
    turn=TurnId("t"),
    lease=Lease(conversation=ConversationId("c"), owner="me", generation=1, expires_at=9.0),
    inbound=Inbound(event_id="m:1", origin=Origin(platform="loopback", chat_id="c1"), text="hi", at=1.0),
    role=Role.OWNER,
    shared=False,
)


async def think(running: Running) -> None:
    """As a turn does: until somebody or the clock ends it."""
    try:
        async with running.limit:
            running.begin()
            await asyncio.Event().wait()
    finally:
        running.thought = True


async def test_the_first_reason_stays() -> None:
    running = Running(work=WORK, limit=asyncio.timeout(None))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ends_by_time(running))
        await asyncio.sleep(0)
        running.cut_short("stopped")
        running.cut_short("interrupted")
        await task
    assert running.why == "stopped"


async def test_who_is_cut_short_before_the_first_thought_does_not_think() -> None:
    running = Running(work=WORK, limit=asyncio.timeout(None))
    running.cut_short("stopped")
    await ends_by_time(running)
    assert running.why == "stopped"


async def ends_by_time(running: Running) -> None:
    with pytest.raises(TimeoutError):
        await think(running)


async def test_when_its_time_is_up_it_is_too_late_to_cut_it_short() -> None:
    running = Running(work=WORK, limit=asyncio.timeout(0))
    async with asyncio.TaskGroup() as group:
        group.create_task(ends_by_time(running))
        while not running.limit.expired():
            await asyncio.sleep(0)
        running.cut_short("stopped")
    running.cut_short("stopped")
    assert running.why is None


async def test_when_it_has_its_ending_it_is_too_late_to_cut_it_short() -> None:
    running = Running(work=WORK, limit=asyncio.timeout(None))
    async with running.limit:
        pass
    running.thought = True
    running.cut_short("stopped")
    assert running.why is None


async def test_whoever_cuts_it_short_waits_until_it_has_ended() -> None:
    running, turns = Running(work=WORK, limit=asyncio.timeout(None)), RunningTurns()
    assert not await turns.cut_short(KEY, "stopped")
    turns[KEY] = running
    async with asyncio.TaskGroup() as group:
        group.create_task(ends_by_time(running))
        await asyncio.sleep(0)
        waiting = group.create_task(turns.cut_short(KEY, "stopped"))
        await asyncio.sleep(0)
        assert not waiting.done()
        running.ended.set()
    assert waiting.result()
