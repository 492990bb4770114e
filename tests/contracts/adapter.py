"""The promises every platform keeps. Subclass `AdapterContract`, give it a rig, add nothing else.

The far side is faked at the wire: a `World` plays each `Trouble` in the platform's own dialect, and the adapter has
to say it in the gateway's.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import pytest

from hermes.adapters.base import Accepted, ChatKind, Event, Inbound, Origin, Outbound, PlatformAdapter, Standing
from hermes.errors import (
    AuthFailed,
    HermesError,
    PlatformError,
    RateLimited,
    Refusal,
    Rejected,
    StoreLocked,
    Unreachable,
)

PATIENCE = 20.0
"""Seconds that a test waits for anything."""

RETRY_AFTER = 7.0
"""What the world asks for when it plays Trouble.BUSY."""


class Trouble(StrEnum):
    """What can go wrong on the far side."""

    BUSY = "asks for patience of RETRY_AFTER seconds"
    FORMAT = "does not understand the formatting"
    FORBIDDEN = "does not let us write there"
    GONE = "knows no such chat"
    AWAY = "cannot be reached; nothing has happened"
    LOST = "did it, and its answer was lost"
    KEY = "refuses our credentials"


MEANING: dict[Trouble, tuple[type[PlatformError], dict[str, object]]] = {
    Trouble.BUSY: (RateLimited, {"retry_after": RETRY_AFTER}),
    Trouble.FORMAT: (Rejected, {"refusal": Refusal.BAD_FORMAT}),
    Trouble.FORBIDDEN: (Rejected, {"refusal": Refusal.FORBIDDEN}),
    Trouble.GONE: (Rejected, {"refusal": Refusal.GONE}),
    Trouble.AWAY: (Unreachable, {"maybe_done": False}),
    Trouble.LOST: (Unreachable, {"maybe_done": True}),
    Trouble.KEY: (AuthFailed, {}),
}
"""What an adapter raises for each."""


class World(Protocol):
    """The platform's far side."""

    async def speak(self, text: str, *, message: str, chat: str, user: str, kind: ChatKind = ChatKind.DIRECT) -> None:
        """A person says something. The same `message` id again is a redelivery."""
        ...

    def shown(self) -> Sequence[str]:
        """What people see, in order."""
        ...

    def acknowledged(self) -> Sequence[str]:
        """The ids that the platform will not deliver again, in order."""
        ...

    def trouble_sends(self, trouble: Trouble) -> None:
        """The next send meets this."""
        ...

    def trouble_link(self, trouble: Trouble) -> None:
        """Whoever listens meets this, now."""
        ...

    async def calm(self) -> None:
        """The trouble is over: whoever was away is back."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rig:
    """An adapter and its world. `instance` is the adapter's name in the configuration."""

    adapter: PlatformAdapter
    world: World
    instance: str
    secrets: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Ear:
    """Stands where the gateway's intake would: it keeps what it hears."""

    heard: asyncio.Queue[Inbound] = field(default_factory=asyncio.Queue)
    deaf: HermesError | None = None
    """Raised instead of keeping an event."""
    called: asyncio.Event = field(default_factory=asyncio.Event)
    """An event has come."""
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, no event is safe."""

    async def emit(self, event: Event, /) -> Accepted:
        self.called.set()
        await self.open.wait()
        if self.deaf is not None:
            raise self.deaf
        assert isinstance(event, Inbound)
        self.heard.put_nowait(event)
        return Accepted(standing=Standing.FRESH)

    async def hear(self, count: int = 1) -> list[Inbound]:
        """The next `count` events."""
        self.open.set()
        return [await asyncio.wait_for(self.heard.get(), PATIENCE) for _ in range(count)]


@asynccontextmanager
async def listening(rig: Rig) -> AsyncIterator[Ear]:
    """The adapter listens while the block runs, and leaves when it is cancelled."""
    ear = Ear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.adapter.listen(ear.emit))
        yield ear
        task.cancel()
    assert task.cancelled()


async def heard(
    rig: Rig, *texts: str, chat: str = "1", user: str = "2", kind: ChatKind = ChatKind.DIRECT
) -> list[Inbound]:
    """What the adapter makes of these messages."""
    async with listening(rig) as ear:
        for number, text in enumerate(texts, 1):
            await rig.world.speak(text, message=str(number), chat=chat, user=user, kind=kind)
        return await ear.hear(len(texts))


def out(rig: Rig, markdown: str = "hello", key: str = "k") -> Outbound:
    """A message to the chat that worlds know."""
    return Outbound(key=key, origin=Origin(platform=rig.instance, chat_id="1", user_id="2"), markdown=markdown)


class AdapterContract:
    """For every platform. Worlds know the chat 1 and the user 2; ids are decimal digits, as most platforms want."""

    @pytest.fixture
    def rig(self) -> Rig:
        raise NotImplementedError

    async def test_messages_are_heard_in_their_order(self, rig: Rig) -> None:
        assert [event.text for event in await heard(rig, "one", "two", "three")] == ["one", "two", "three"]

    async def test_events_carry_the_instances_name_and_the_platforms_stable_ids(self, rig: Rig) -> None:
        (event,) = await heard(rig, "hi")
        assert (event.origin.platform, event.origin.chat_id, event.origin.user_id) == (rig.instance, "1", "2")
        assert event.at > 0

    @pytest.mark.parametrize("kind", [ChatKind.DIRECT, ChatKind.GROUP])
    async def test_who_reads_along_is_told(self, rig: Rig, kind: ChatKind) -> None:
        (event,) = await heard(rig, "hi", kind=kind)
        assert event.origin.kind is kind

    async def test_a_redelivery_has_the_id_of_the_first_delivery_and_other_messages_have_others(self, rig: Rig) -> None:
        async with listening(rig) as ear:
            for id_ in ("1", "2", "1"):
                await rig.world.speak("hi", message=id_, chat="1", user="2")
            one, two, again = await ear.hear(3)
        assert one.event_id == again.event_id
        assert one.event_id != two.event_id

    @pytest.mark.parametrize(
        "text", ["👩‍👩‍👧‍👦 and 🏳️‍🌈", "你好，世界", "a  b\n\n\tc", "𠮷野家", "/new name", "*a* _b_ `c` <d>"]
    )
    async def test_words_arrive_as_they_were_typed(self, rig: Rig, text: str) -> None:
        assert [event.text for event in await heard(rig, text)] == [text]

    async def test_text_that_cannot_be_stored_is_repaired(self, rig: Rig) -> None:
        (event,) = await heard(rig, "a\ud800b\x00c")
        assert event.text == "a\ufffdb\ufffdc"

    async def test_a_message_is_not_acknowledged_before_it_is_safe(self, rig: Rig) -> None:
        async with listening(rig) as ear:
            await rig.world.speak("one", message="1", chat="1", user="2")
            await asyncio.wait_for(ear.called.wait(), PATIENCE)
            assert "1" not in rig.world.acknowledged()
            await ear.hear()

    async def test_a_message_that_could_not_be_kept_comes_again(self, rig: Rig) -> None:
        ear = Ear(deaf=StoreLocked("busy"))
        ear.open.set()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_until_refused(rig, ear))
            await rig.world.speak("keep me", message="1", chat="1", user="2")
            await asyncio.wait_for(ear.called.wait(), PATIENCE)
            task.cancel()
        assert "1" not in rig.world.acknowledged()
        async with listening(rig) as later:
            assert [event.text for event in await later.hear()] == ["keep me"]

    async def test_after_leaving_it_can_come_back(self, rig: Rig) -> None:
        await heard(rig, "before")
        async with listening(rig) as ear:
            await rig.world.speak("after", message="9", chat="1", user="2")
            assert [event.text for event in await ear.hear()] == ["after"]

    @pytest.mark.parametrize("trouble", [Trouble.AWAY, Trouble.KEY])
    async def test_a_link_that_is_lost_ends_listening_with_its_reason(self, rig: Rig, trouble: Trouble) -> None:
        ear = Ear()
        rig.world.trouble_link(trouble)
        with pytest.raises(MEANING[trouble][0]) as raised:
            await asyncio.wait_for(rig.adapter.listen(ear.emit), PATIENCE)
        assert raised.value.platform == rig.instance
        assert not [secret for secret in rig.secrets if secret in str(raised.value)]

    async def test_an_answer_goes_where_the_question_came_from(self, rig: Rig) -> None:
        (event,) = await heard(rig, "hi")
        receipt = await rig.adapter.send(Outbound(key="k", origin=event.origin, markdown="hello"))
        assert list(rig.world.shown()) == ["hello"]
        assert len(receipt.message_ids) == 1

    async def test_each_message_has_an_id_of_its_own(self, rig: Rig) -> None:
        receipts = [await rig.adapter.send(out(rig, key=key)) for key in ("a", "b")]
        assert len({id_ for receipt in receipts for id_ in receipt.message_ids}) == 2

    async def test_a_repeated_key_shows_nothing_twice_where_that_is_promised(self, rig: Rig) -> None:
        receipts = [await rig.adapter.send(out(rig)) for _ in range(2)]
        assert len(rig.world.shown()) == (1 if rig.adapter.limits.idempotent_sends else 2)
        assert (receipts[0] == receipts[1]) is rig.adapter.limits.idempotent_sends

    async def test_the_longest_message_is_taken_and_one_longer_is_refused(self, rig: Rig) -> None:
        limits = rig.adapter.limits
        longest = "x" * (limits.text - limits.measure("x") + 1)
        await rig.adapter.send(out(rig, longest, key="a"))
        with pytest.raises(Rejected) as refused:
            await rig.adapter.send(out(rig, longest + "x", key="b"))
        assert refused.value.refusal is Refusal.TOO_LONG
        assert list(rig.world.shown()) == [longest]

    @pytest.mark.parametrize("trouble", Trouble)
    async def test_what_goes_wrong_is_said_in_the_gateways_words(self, rig: Rig, trouble: Trouble) -> None:
        rig.world.trouble_sends(trouble)
        kind, facts = MEANING[trouble]
        with pytest.raises(PlatformError) as raised:
            await rig.adapter.send(out(rig))
        assert type(raised.value) is kind
        assert {name: getattr(raised.value, name) for name in facts} == facts
        assert raised.value.platform == rig.instance
        assert not [secret for secret in rig.secrets if secret in str(raised.value)]
        assert len(rig.world.shown()) == (1 if trouble is Trouble.LOST else 0)

    async def test_after_trouble_the_next_message_is_shown(self, rig: Rig) -> None:
        rig.world.trouble_sends(Trouble.AWAY)
        with pytest.raises(Unreachable):
            await rig.adapter.send(out(rig))
        await rig.world.calm()
        await rig.adapter.send(out(rig))
        assert list(rig.world.shown()) == ["hello"]

    async def test_chats_are_sent_to_side_by_side(self, rig: Rig) -> None:
        async with asyncio.TaskGroup() as group:
            for key in "abc":
                group.create_task(rig.adapter.send(out(rig, key, key=key)))
        assert sorted(rig.world.shown()) == ["a", "b", "c"]


async def _until_refused(rig: Rig, ear: Ear) -> None:
    """Listen to an ear that is deaf. An adapter may end with its error, or wait and try again by itself."""
    with pytest.raises((StoreLocked, asyncio.CancelledError)):
        await rig.adapter.listen(ear.emit)
