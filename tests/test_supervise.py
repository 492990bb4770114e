"""Keeping adapters alive: patience, parking, and no harm to the others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes import VirtualClock, settle
from hermes.adapters.base import Pulse
from hermes.errors import AuthFailed, RateLimited, StoreLocked, Unreachable
from hermes.gateway.supervise import LONGEST_WAIT, STEADY, Link, LinkState, delay, supervise
from worlds.hand import HandModel
from worlds.house import house

AWAY = Unreachable("room", "away")


class Listener:
    """An adapter's `listen` that ends with one error after another, then holds."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = list(ends)
        self.starts = 0
        self.left = asyncio.Event()

    async def __call__(self) -> None:
        self.starts += 1
        if self._ends:
            if (end := self._ends.pop(0)) is not None:
                raise end
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


@asynccontextmanager
async def supervised(listen: Listener, clock: VirtualClock, pulse: Pulse | None = None) -> AsyncIterator[Link]:
    link = Link("room", clock, pulse)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervise(link, listen, clock=clock))
        await settle()
        yield link
        task.cancel()


async def test_waits_double_from_two_seconds_to_five_minutes() -> None:
    clock, listen = VirtualClock(), Listener(*[AWAY] * 12)
    async with supervised(listen, clock) as link:
        await clock.advance(3600)
        assert clock.slept == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]
        assert (link.facts.state, link.facts.streak) == (LinkState.UP, 12)


def test_a_link_that_is_down_for_weeks_is_still_tried_every_five_minutes() -> None:
    assert delay(AWAY, 100_000) == LONGEST_WAIT


async def test_a_link_that_held_starts_its_patience_anew() -> None:
    clock = VirtualClock()

    async def holds_a_while() -> None:
        await clock.sleep(STEADY + 1)
        raise AWAY

    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervise(Link("room", clock), holds_a_while, clock=clock))
        await settle()
        await clock.advance(3 * (STEADY + 3))
        task.cancel()
    assert [seconds for seconds in clock.slept if seconds < STEADY] == [2, 2, 2]


async def test_what_the_platform_asks_for_is_waited() -> None:
    clock, listen = VirtualClock(), Listener(RateLimited("room", retry_after=77))
    async with supervised(listen, clock) as link:
        assert clock.slept == [77]
        assert (link.facts.state, link.facts.reason) == (LinkState.DOWN, "rate limited for 77 s")


async def test_refused_credentials_park_it() -> None:
    clock, listen = VirtualClock(), Listener(AuthFailed("room", "the token is revoked"))
    async with supervised(listen, clock) as link:
        await clock.advance(3600)
        assert listen.starts == 1
        assert (link.facts.state, link.facts.reason) == (LinkState.PARKED, "the token is revoked")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (ZeroDivisionError("secret-token"), "internal: ZeroDivisionError"),
        (StoreLocked("busy"), "busy"),
        (None, "the link ended without a reason"),
    ],
)
async def test_a_bug_or_a_silent_end_is_a_lost_link_that_is_tried_again(end: Exception | None, reason: str) -> None:
    clock, listen = VirtualClock(), Listener(end)
    async with supervised(listen, clock) as link:
        assert (link.facts.state, link.facts.reason, link.facts.streak) == (LinkState.DOWN, reason, 1)
        await clock.advance(2)
        assert (listen.starts, link.facts.state) == (2, LinkState.UP)


async def test_cancelling_ends_it_at_once() -> None:
    listen = Listener()
    async with supervised(listen, VirtualClock()):
        assert not listen.left.is_set()
    assert listen.left.is_set()


async def test_facts_tell_when_something_was_last_heard_and_sent() -> None:
    clock = VirtualClock(100)
    link = Link("room", clock)
    assert (link.facts.last_inbound, link.facts.last_send) == (None, None)
    link.heard()
    await clock.advance(5)
    link.sent()
    assert (link.facts.last_inbound, link.facts.last_send) == (100, 105)


@pytest.mark.parametrize(
    "trouble",
    [lambda: Unreachable("a", "away"), lambda: AuthFailed("a", "no"), ZeroDivisionError],
    ids=["lost", "refused", "bug"],
)
async def test_one_adapters_crash_does_not_touch_another(tmp_path: Path, trouble: Callable[[], Exception]) -> None:
    model, rooms = HandModel(), ("loopback@a", "loopback@b")
    async with house(tmp_path, model=model, rooms=rooms, access={"allow_all": True}) as h:
        h.rooms["loopback@a"].break_link(trouble())
        for _ in range(3):
            await h.say("hello", room="loopback@b")
            (await model.question()).answer("hi")
            await h.quiet()
        assert h.rooms["loopback@b"].texts() == ["hi"] * 3
        assert h.app.links["loopback@a"].facts.state in {LinkState.DOWN, LinkState.PARKED}
        assert h.app.links["loopback@b"].facts.state is LinkState.UP


async def test_after_a_lost_link_what_was_not_acknowledged_is_heard(tmp_path: Path) -> None:
    model, clock = HandModel(), VirtualClock()
    async with house(tmp_path, model=model, clock=clock) as h:
        h.room.break_link(Unreachable("loopback", "away"))
        await settle()
        h.room.speak(h.packet("are you there?"))
        await settle()
        assert model.is_unasked
        await clock.advance(3)
        (await model.question()).answer("yes")
        assert await h.room.shows(1) == ["yes"]


class TestPulse:
    async def test_a_link_with_a_pulse_is_up_from_its_first_beat_on(self) -> None:
        clock = VirtualClock()
        pulse = Pulse(clock, silence=60.0)
        async with supervised(Listener(), clock, pulse) as link:
            assert (link.facts.state, link.facts.last_sign) == (LinkState.CONNECTING, None)
            await clock.advance(10)
            pulse.beat()
            assert (link.facts.state, link.facts.last_sign) == (LinkState.UP, clock.now())

    async def test_a_silent_line_is_opened_anew_though_it_gives_no_error(self) -> None:
        clock, listen = VirtualClock(), Listener()
        pulse = Pulse(clock, silence=60.0)
        async with supervised(listen, clock, pulse) as link:
            pulse.beat()
            await clock.advance(60)
            assert (link.facts.state, listen.starts) == (LinkState.UP, 1)
            await clock.advance(16)
            assert (link.facts.state, link.facts.reason) == (LinkState.DOWN, "no sign of life for 60 s")
            assert link.facts.streak == 1
            await clock.advance(2)
            assert (link.facts.state, listen.starts) == (LinkState.CONNECTING, 2)
            pulse.beat()
            assert (link.facts.state, link.facts.streak, link.facts.reason) == (LinkState.UP, 0, "")

    async def test_beats_keep_it_open(self) -> None:
        clock, listen = VirtualClock(), Listener()
        pulse = Pulse(clock, silence=60.0)
        async with supervised(listen, clock, pulse):
            for _ in range(10):
                await clock.advance(50)
                pulse.beat()
            assert listen.starts == 1

    async def test_the_same_line_that_is_silent_at_every_start_is_tried_ever_more_rarely(self) -> None:
        clock, listen = VirtualClock(), Listener()
        async with supervised(listen, clock, Pulse(clock, silence=20.0)) as link:
            await clock.advance(3600)
            assert link.facts.streak > 5
            assert listen.starts == link.facts.streak + (link.facts.state is LinkState.CONNECTING)

    async def test_a_supervisor_that_makes_progress_is_never_late(self) -> None:
        clock, listen = VirtualClock(), Listener(*[AWAY] * 5)
        async with supervised(listen, clock, Pulse(clock, silence=60.0)) as link:
            for _ in range(200):
                await clock.advance(7)
                assert link.vital.late() == 0.0

    async def test_an_adapter_that_will_not_let_go_is_late(self) -> None:
        clock, let_go = VirtualClock(), asyncio.Event()

        async def listen() -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

        link = Link("room", clock, Pulse(clock, silence=60.0))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(supervise(link, listen, clock=clock))
            await settle()
            await clock.advance(600)
            assert link.vital.late() > 300
            let_go.set()
            await settle()
            assert link.vital.late() == 0.0
            task.cancel()
