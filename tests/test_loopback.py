"""The loopback keeps every promise of a platform, and is never on by itself."""

from pathlib import Path

import pytest

from contracts.adapter import RETRY_AFTER, AdapterContract, Rig, Trouble
from fakes import VirtualClock
from hermes.adapters import registry
from hermes.adapters.base import ChatKind, LooseBookmarks, Origin, Outbound, Surroundings
from hermes.adapters.loopback import PLATFORM, Loopback, LoopbackConfig, Packet, Room, decode
from hermes.errors import AuthFailed, PlatformError, RateLimited, Refusal, Rejected, Unreachable
from hermes.gateway.choices import enabled_platforms
from hermes.gateway.config import Config
from worlds.room import TroubledRoom

NAME = "loopback@test"
CLOCK = VirtualClock()
AROUND = Surroundings(instance=NAME, clock=CLOCK, cache=Path("unused"), bookmarks=LooseBookmarks(CLOCK))

PLAYED: dict[Trouble, PlatformError] = {
    Trouble.BUSY: RateLimited(NAME, retry_after=RETRY_AFTER),
    Trouble.FORMAT: Rejected(NAME, Refusal.BAD_FORMAT),
    Trouble.FORBIDDEN: Rejected(NAME, Refusal.FORBIDDEN),
    Trouble.GONE: Rejected(NAME, Refusal.GONE),
    Trouble.AWAY: Unreachable(NAME, "away"),
    Trouble.LOST: Unreachable(NAME, "lost", maybe_done=True),
    Trouble.KEY: AuthFailed(NAME, "refused"),
}
"""The room is inside the process, so its dialect is the gateway's own."""


def packet(text: str = "hi", *, kind: str = "dm") -> Packet:
    return Packet(id="1", chat="1", user="2", kind=kind, text=text, at=1.0)


class RoomWorld:
    """The contract's world over a room."""

    def __init__(self, room: TroubledRoom) -> None:
        self._room = room

    async def speak(self, text: str, *, message: str, chat: str, user: str, kind: ChatKind = ChatKind.DIRECT) -> None:
        self._room.speak(Packet(id=message, chat=chat, user=user, kind=kind, text=text, at=1.0))

    def shown(self) -> list[str]:
        return self._room.texts()

    def acknowledged(self) -> list[str]:
        return self._room.acknowledged

    def trouble_sends(self, trouble: Trouble) -> None:
        self._room.fail_sends(PLAYED[trouble])

    def trouble_link(self, trouble: Trouble) -> None:
        self._room.break_link(PLAYED[trouble])

    async def calm(self) -> None:
        pass


class LoopbackContract(AdapterContract):
    forgets: bool

    @pytest.fixture
    def rig(self) -> Rig:
        room = TroubledRoom(forgets=self.forgets)
        return Rig(adapter=Loopback(LoopbackConfig(longest=200), AROUND, room), world=RoomWorld(room), instance=NAME)


class TestLoopback(LoopbackContract):
    forgets = False


class TestLoopbackThatForgetsKeys(LoopbackContract):
    forgets = True


async def test_it_opens_with_a_room_of_its_own() -> None:
    async with PLATFORM.open(LoopbackConfig(), AROUND) as one, PLATFORM.open(LoopbackConfig(), AROUND) as other:
        assert isinstance(one, Loopback)
        assert isinstance(other, Loopback)
        await one.send(Outbound(key="k", origin=Origin(platform=NAME, chat_id="1"), markdown="hello"))
        assert [note.text for note in one.room.shown] == ["hello"]
        assert other.room.shown == []


def test_it_is_installed_but_only_on_when_it_is_named() -> None:
    assert registry.find("loopback") is PLATFORM
    assert "loopback" not in enabled_platforms(Config(), {})
    named = Config.model_validate({"platforms": {"loopback@b": {}}})
    assert "loopback@b" in enabled_platforms(named, {})


@pytest.mark.parametrize("noise", [packet("  \n "), packet(kind="typing"), packet("")])
def test_noise_on_the_wire_is_no_event(noise: Packet) -> None:
    assert decode(noise, NAME) is None


async def test_what_is_shown_says_which_message_it_answers() -> None:
    room = Room()
    out = Outbound(key="k", origin=Origin(platform=NAME, chat_id="1"), markdown="hello", reply_to="7")
    await Loopback(LoopbackConfig(), AROUND, room).send(out)
    assert [(note.chat, note.reply_to) for note in room.shown] == [("1", "7")]
