"""Telegram keeps every promise of a platform: its real client library, and a server as strict as the real one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from telegram.request import HTTPXRequest

from contracts.adapter import RETRY_AFTER, AdapterContract, Ear, Rig, Trouble, listening
from fakes import VirtualClock
from hermes.adapters.base import (
    Bookmarks,
    ChatKind,
    LooseBookmarks,
    Menu,
    Moved,
    Origin,
    Outbound,
    Surroundings,
)
from hermes.adapters.telegram import PLATFORM
from hermes.adapters.telegram.adapter import FRESH_DAYS, Patience, Telegram
from hermes.adapters.telegram.config import TelegramConfig
from hermes.clock import Clock
from hermes.errors import ChatMoved, PlatformError, Refusal, Rejected, StoreLocked, Unreachable
from worlds.telegram import (
    BLOCKED,
    BOT,
    CHAT_NOT_FOUND,
    TOKEN,
    UNAUTHORIZED,
    UNPARSABLE,
    USERNAME,
    Broken,
    Dropped,
    Fault,
    Garbage,
    Lost,
    Refused,
    Silent,
    TelegramWorld,
    flood,
)

NAME = "telegram@test"
QUICK = Patience(poll=5.0, answer=5.0, connect=5.0)
SECRET = TOKEN.partition(":")[2]

PLAYED: Mapping[Trouble, Fault] = {
    Trouble.BUSY: flood(int(RETRY_AFTER)),
    Trouble.FORMAT: UNPARSABLE,
    Trouble.FORBIDDEN: BLOCKED,
    Trouble.GONE: CHAT_NOT_FOUND,
    Trouble.LOST: Lost(),
    Trouble.KEY: UNAUTHORIZED,
}
"""Each trouble in Telegram's own dialect. Trouble.AWAY is no answer at all."""


class Far:
    """The contract's world over the server."""

    def __init__(self, world: TelegramWorld) -> None:
        self._world = world

    async def speak(self, text: str, *, message: str, chat: str, user: str, kind: ChatKind = ChatKind.DIRECT) -> None:
        type_ = "private" if kind is ChatKind.DIRECT else "group"
        await self._world.say(text, message=int(message), chat=int(chat), user=int(user), kind=type_)

    def shown(self) -> list[str]:
        return self._world.shown()

    def acknowledged(self) -> list[str]:
        return [str(message) for message in self._world.acknowledged]

    def trouble_sends(self, trouble: Trouble) -> None:
        self._trouble("sendMessage", trouble)

    def trouble_link(self, trouble: Trouble) -> None:
        self._trouble("getMe", trouble)

    def _trouble(self, method: str, trouble: Trouble) -> None:
        if trouble is Trouble.AWAY:
            self._world.go_away()
        else:
            self._world.will(method, PLAYED[trouble])

    async def calm(self) -> None:
        await self._world.come_back()


@asynccontextmanager
async def bot(
    world: TelegramWorld,
    *,
    clock: Clock | None = None,
    bookmarks: Bookmarks | None = None,
    menu: Menu | None = None,
    patience: Patience = QUICK,
) -> AsyncIterator[Telegram]:
    """The adapter, open."""
    clock = clock or VirtualClock()
    around = Surroundings(
        instance=NAME,
        clock=clock,
        cache=Path("unused"),
        bookmarks=bookmarks or LooseBookmarks(clock),
        menu=menu or {},
    )
    config = TelegramConfig.model_validate({"token": world.token, "base_url": world.url})
    async with HTTPXRequest(read_timeout=patience.answer, connect_timeout=patience.connect) as sends:
        yield Telegram(config, around, sends, patience)


def rig_of(world: TelegramWorld, adapter: Telegram) -> Rig:
    return Rig(adapter=adapter, world=Far(world), instance=NAME, secrets=(SECRET,))


class TestTelegram(AdapterContract):
    @pytest.fixture
    async def rig(self) -> AsyncIterator[Rig]:
        async with TelegramWorld() as world, bot(world) as adapter:
            yield rig_of(world, adapter)


@pytest.fixture
async def world() -> AsyncIterator[TelegramWorld]:
    async with TelegramWorld() as one:
        yield one


@pytest.fixture
async def adapter(world: TelegramWorld) -> AsyncIterator[Telegram]:
    async with bot(world) as one:
        yield one


def origin(chat: int, **facts: Any) -> Origin:
    return Origin(platform=NAME, chat_id=str(chat), **facts)


def message(markdown: str, where: Origin, **facts: Any) -> Outbound:
    return Outbound(key="k", origin=where, markdown=markdown, **facts)


# -- polls ----------------------------------------------------------------------------------------------------------


class TestPolls:
    async def test_a_webhook_that_somebody_left_behind_is_taken_away_and_nothing_is_lost(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        world.webhook = "https://example.org/hook"
        await world.say("waiting")
        async with listening(rig_of(world, adapter)) as ear:
            assert [event.text for event in await ear.hear()] == ["waiting"]

    async def test_commands_are_offered_in_each_language_the_first_for_everybody(self, world: TelegramWorld) -> None:
        menu = {"en": {"new": "start over", "help": "this list"}, "zh": {"new": "新会话"}}
        async with bot(world, menu=menu) as adapter, listening(rig_of(world, adapter)):
            await world.until(lambda: "zh" in world.commands)
        assert [each["command"] for each in world.commands[""]] == ["new", "help"]
        assert world.commands["en"] == world.commands[""]
        assert world.commands["zh"] == [{"command": "new", "description": "新会话"}]

    async def test_a_menu_that_is_refused_does_not_make_the_bot_deaf(self, world: TelegramWorld) -> None:
        await world.say("hi")
        async with bot(world, menu={"en": {"Not A Command": "x"}}) as adapter, listening(rig_of(world, adapter)) as ear:
            assert [event.text for event in await ear.hear()] == ["hi"]

    async def test_the_link_lives_from_the_first_answer_on(self, world: TelegramWorld, adapter: Telegram) -> None:
        assert adapter.pulse.last is None
        async with listening(rig_of(world, adapter)):
            await world.until(lambda: any(call.method == "getUpdates" for call in world.journal))
            assert adapter.pulse.last is not None

    async def test_an_update_that_cannot_be_read_is_passed_over(self, world: TelegramWorld, adapter: Telegram) -> None:
        await world.push({"message": {"message_id": 1, "no": "chat"}})
        await world.push({"message": "nonsense"})
        await world.say("after")
        async with listening(rig_of(world, adapter)) as ear:
            assert [event.text for event in await ear.hear()] == ["after"]
            await world.until(lambda: not world._updates)

    async def test_kinds_of_updates_that_nobody_knows_yet_move_the_offset_on(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        await world.push({"message": None, "invented_tomorrow": {"id": 1}})
        await world.say("after")
        async with listening(rig_of(world, adapter)) as ear:
            assert [event.text for event in await ear.hear()] == ["after"]

    @pytest.mark.parametrize("fault", [Broken(), Broken(504), Garbage("[1]"), Garbage("{"), Garbage('{"ok":true}')])
    async def test_a_poll_that_brings_something_else_loses_the_link_and_nothing_more(
        self, world: TelegramWorld, adapter: Telegram, fault: Fault
    ) -> None:
        await world.say("keep me")
        world.will("getUpdates", fault)
        with pytest.raises(Unreachable):
            await asyncio.wait_for(adapter.listen(Ear().emit), 10)
        async with listening(rig_of(world, adapter)) as ear:
            assert [event.text for event in await ear.hear()] == ["keep me"]

    @pytest.mark.parametrize("body", ["[]", "{", '{"ok":true,"result":{"username":"x"}}'])
    async def test_a_server_of_something_else_is_told_from_a_bug(
        self, world: TelegramWorld, adapter: Telegram, body: str
    ) -> None:
        world.will("getMe", Garbage(body))
        with pytest.raises(Unreachable):
            await asyncio.wait_for(adapter.listen(Ear().emit), 10)

    async def test_another_receiver_of_the_same_bot_is_named_with_what_to_do(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        async with asyncio.TaskGroup() as group:
            ours = group.create_task(_lost(adapter))
            await world.until(lambda: any(call.method == "getUpdates" for call in world.journal))
            async with bot(world) as other:
                theirs = group.create_task(other.listen(Ear().emit))
                error = await ours
                theirs.cancel()
        assert "another program receives this bot's messages" in error.detail
        assert "Stop it" in error.detail

    @pytest.mark.parametrize("method", ["getMe", "getUpdates"])
    async def test_a_server_that_never_answers_is_given_up_in_time(self, world: TelegramWorld, method: str) -> None:
        world.will(method, Silent())
        async with bot(world, patience=Patience(poll=0.0, answer=0.2, connect=1.0)) as adapter:
            error = await asyncio.wait_for(_lost(adapter), 10)
            assert error.detail == "no answer in time"

    async def test_polls_come_back_on_a_connection_of_their_own(self, world: TelegramWorld) -> None:
        world.will("getUpdates", Silent())
        async with bot(world, patience=Patience(poll=0.0, answer=0.2, connect=1.0)) as adapter:
            await asyncio.wait_for(_lost(adapter), 10)
            await world.say("after")
            async with listening(rig_of(world, adapter)) as ear:
                assert [event.text for event in await ear.hear()] == ["after"]


async def _lost(adapter: Telegram) -> Unreachable:
    ear = Ear()
    ear.open.set()
    with pytest.raises(Unreachable) as raised:
        await adapter.listen(ear.emit)
    return raised.value


class TestOffset:
    async def test_it_is_kept_and_asked_for_by_the_next_process(self, world: TelegramWorld) -> None:
        bookmarks = LooseBookmarks(VirtualClock())
        await world.say("one")
        async with bot(world, bookmarks=bookmarks) as adapter, listening(rig_of(world, adapter)) as ear:
            await ear.hear()
            await world.until(lambda: not world._updates)
        kept = await bookmarks.find(f"offset:{BOT['id']}")
        assert kept is not None
        world.journal.clear()
        async with bot(world, bookmarks=bookmarks) as adapter, listening(rig_of(world, adapter)):
            await world.until(lambda: bool(_polls(world)))
        assert _polls(world)[0] == kept.value

    async def test_it_belongs_to_the_bot_and_another_one_begins_at_the_beginning(self) -> None:
        bookmarks = LooseBookmarks(VirtualClock())
        await bookmarks.keep("offset:1", "2000000")
        async with TelegramWorld() as world, bot(world, bookmarks=bookmarks) as adapter:
            await world.say("hi")
            async with listening(rig_of(world, adapter)) as ear:
                assert [event.text for event in await ear.hear()] == ["hi"]
            assert _polls(world)[0] is None

    async def test_an_old_one_is_not_used_because_numbers_may_start_anew(self, world: TelegramWorld) -> None:
        clock = VirtualClock()
        bookmarks = LooseBookmarks(clock)
        await bookmarks.keep(f"offset:{BOT['id']}", "2000000")
        await clock.advance(FRESH_DAYS * 86400 + 1)
        await world.say("with a lower number")
        async with (
            bot(world, clock=clock, bookmarks=bookmarks) as adapter,
            listening(rig_of(world, adapter)) as ear,
        ):
            assert [event.text for event in await ear.hear()] == ["with a lower number"]

    async def test_nor_is_one_that_nothing_came_for_in_a_process_that_runs(self, world: TelegramWorld) -> None:
        clock = VirtualClock()
        patience = Patience(poll=0.0, answer=5.0, connect=5.0)
        async with bot(world, clock=clock, patience=patience) as adapter, listening(rig_of(world, adapter)) as ear:
            await world.say("one")
            await ear.hear()
            await world.until(lambda: _polls(world)[-1] is not None)
            await clock.advance(FRESH_DAYS * 86400 + 1)
            await world.until(lambda: _polls(world)[-1] is None)

    async def test_it_never_passes_what_is_not_safe(self, world: TelegramWorld) -> None:
        bookmarks = LooseBookmarks(VirtualClock())
        await world.say("one", message=1)
        await world.say("two", message=2)
        async with bot(world, bookmarks=bookmarks) as adapter:
            ear = Ear(deaf=StoreLocked("busy"))
            ear.open.set()
            with pytest.raises(StoreLocked):
                await adapter.listen(ear.emit)
            assert world.acknowledged == []
            assert await bookmarks.find(f"offset:{BOT['id']}") is None
            async with listening(rig_of(world, adapter)) as later:
                assert [event.text for event in await later.hear(2)] == ["one", "two"]

    async def test_repeats_and_disorder_keep_one_id_a_message(self, world: TelegramWorld, adapter: Telegram) -> None:
        chat = {"id": 1, "type": "private", "first_name": "Ann"}
        said = {
            number: {"message_id": number, "date": 1_800_000_000, "chat": chat, "from": {"id": 2, **ANN}, "text": "x"}
            for number in (1, 2)
        }
        await world.push_again(2_000_002, {"message": said[2]})
        await world.push_again(2_000_001, {"message": said[1]})
        async with listening(rig_of(world, adapter)) as ear:
            assert [event.event_id for event in await ear.hear(2)] == ["m:1", "m:2"]
            await world.push_again(2_000_003, {"message": said[1]})
            assert [event.event_id for event in await ear.hear()] == ["m:1"]


ANN = {"is_bot": False, "first_name": "Ann"}


def _polls(world: TelegramWorld) -> list[str | None]:
    """The offsets that were asked for."""
    return [call.facts.get("offset") for call in world.journal if call.method == "getUpdates"]


# -- what is heard --------------------------------------------------------------------------------------------------


class TestUpgrades:
    async def test_both_chats_of_an_upgrade_say_the_same(self, world: TelegramWorld, adapter: Telegram) -> None:
        heard: asyncio.Queue[Any] = asyncio.Queue()

        async def emit(event: Any, /) -> Any:
            heard.put_nowait(event)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(adapter.listen(emit))
            await world.upgrade(-7, -1_007)
            events = [await asyncio.wait_for(heard.get(), 10) for _ in range(2)]
            task.cancel()
        assert events == [Moved(platform=NAME, chat_id="-7", to="-1007")] * 2

    async def test_sending_to_the_old_group_tells_where_it_is_now(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        await world.upgrade(-7, -1_007)
        with pytest.raises(ChatMoved) as moved:
            await adapter.send(message("hello", origin(-7, kind=ChatKind.GROUP)))
        assert moved.value.to == "-1007"
        assert world.shown() == []


# -- what is shown --------------------------------------------------------------------------------------------------


class TestSends:
    async def test_answers_are_formatted_without_previews(self, world: TelegramWorld, adapter: Telegram) -> None:
        await adapter.send(message("**bold** and [a link](https://example.org)", origin(1)))
        (shown,) = world.messages.values()
        assert shown.text == "bold and a link"
        assert [(each["type"], each["offset"], each["length"]) for each in shown.entities] == [
            ("bold", 0, 4),
            ("text_link", 9, 6),
        ]
        assert '"is_disabled": true' in world.journal[-1].facts["link_preview_options"]

    async def test_plain_words_stay_as_they_are(self, world: TelegramWorld, adapter: Telegram) -> None:
        await adapter.send(message("**not bold** <b>", origin(1), plain=True))
        (shown,) = world.messages.values()
        assert (shown.text, shown.entities) == ("**not bold** <b>", ())

    async def test_an_answer_refers_to_its_question_and_comes_though_that_was_deleted(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        world.chat(-7)
        await adapter.send(message("yes", origin(-7, kind=ChatKind.GROUP), reply_to="12"))
        (shown,) = world.messages.values()
        assert shown.reply_to == 12
        assert '"allow_sending_without_reply": true' in world.journal[-1].facts["reply_parameters"]

    async def test_topics_are_written_into_and_the_general_one_by_naming_none(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        world.chat(-1_000_000_000_009, forum=True, topics=[42])
        for thread in ("42", "1"):
            where = origin(-1_000_000_000_009, kind=ChatKind.GROUP, thread_id=thread)
            receipt = await adapter.send(message("hello", where))
            await adapter.edit(receipt.message_ids[0], message("hello again", where))
            await adapter.typing(where)
        assert [shown.thread for shown in world.messages.values()] == [42, None]

    async def test_a_topic_of_a_direct_chat_may_have_the_number_one(
        self, world: TelegramWorld, adapter: Telegram
    ) -> None:
        world.chat(1, topics=[1])
        await adapter.send(message("hello", origin(1, thread_id="1")))
        assert [shown.thread for shown in world.messages.values()] == [1]

    async def test_a_message_is_changed_in_place(self, world: TelegramWorld, adapter: Telegram) -> None:
        receipt = await adapter.send(message("one", origin(1)))
        await adapter.edit(receipt.message_ids[0], message("one **two**", origin(1)))
        await adapter.edit(receipt.message_ids[0], message("one **two**", origin(1)))
        (shown,) = world.messages.values()
        assert (shown.text, shown.drafts, shown.entities[0]["type"]) == ("one two", ("one",), "bold")

    async def test_a_message_that_is_gone_cannot_be_changed(self, world: TelegramWorld, adapter: Telegram) -> None:
        receipt = await adapter.send(message("one", origin(1)))
        world.delete(1, int(receipt.message_ids[0]))
        with pytest.raises(Rejected) as refused:
            await adapter.edit(receipt.message_ids[0], message("two", origin(1)))
        assert refused.value.refusal is Refusal.GONE

    async def test_a_change_that_is_too_long_never_leaves(self, world: TelegramWorld, adapter: Telegram) -> None:
        with pytest.raises(Rejected) as refused:
            await adapter.edit("1", message("x" * 4097, origin(1)))
        assert refused.value.refusal is Refusal.TOO_LONG
        assert world.journal == []

    async def test_length_is_counted_in_utf16_units(self, world: TelegramWorld, adapter: Telegram) -> None:
        await adapter.send(message("😀" * 2048, origin(1)))
        with pytest.raises(Rejected):
            await adapter.send(message("😀" * 2049, origin(1)))
        assert world.shown() == ["😀" * 2048]

    @pytest.mark.parametrize(
        ("description", "refusal"),
        [
            ("Bad Request: message is too long", Refusal.TOO_LONG),
            ("Bad Request: message thread not found", Refusal.GONE),
            ("Bad Request: TOPIC_CLOSED", Refusal.FORBIDDEN),
            ("Bad Request: not enough rights to send text messages to the chat", Refusal.FORBIDDEN),
            ("Bad Request: ENTITY_BOUNDS_INVALID", Refusal.BAD_FORMAT),
        ],
    )
    async def test_refusals_are_sorted_by_what_they_mean(
        self, world: TelegramWorld, adapter: Telegram, description: str, refusal: Refusal
    ) -> None:
        world.will("sendMessage", Refused(400, description))
        with pytest.raises(Rejected) as refused:
            await adapter.send(message("hello", origin(1)))
        assert refused.value.refusal is refusal
        assert refused.value.detail.lower() == description.removeprefix("Bad Request: ").lower()

    @pytest.mark.parametrize(
        ("fault", "maybe_done"), [(Broken(), True), (Broken(500), True), (Dropped(), True), (Lost(), True)]
    )
    async def test_what_may_have_been_done_is_said_to_be_open(
        self, world: TelegramWorld, adapter: Telegram, fault: Fault, maybe_done: bool
    ) -> None:
        world.will("sendMessage", fault)
        with pytest.raises(Unreachable) as raised:
            await adapter.send(message("hello", origin(1)))
        assert raised.value.maybe_done is maybe_done

    async def test_a_send_that_is_never_answered_ends_in_time_with_its_fate_open(self, world: TelegramWorld) -> None:
        world.will("sendMessage", Silent())
        async with bot(world, patience=Patience(answer=0.2)) as adapter:
            with pytest.raises(Unreachable) as raised:
                await asyncio.wait_for(adapter.send(message("hello", origin(1))), 10)
        assert (raised.value.maybe_done, raised.value.detail) == (True, "no answer in time")


# -- secrets --------------------------------------------------------------------------------------------------------


async def test_the_token_is_in_no_log_and_no_error(
    world: TelegramWorld, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = [*PLAYED.values(), Broken(), Garbage("{"), Dropped(), Refused(404, "Not Found")]
    config = TelegramConfig.model_validate({"token": world.token, "base_url": world.url})
    clock = VirtualClock()
    around = Surroundings(instance=NAME, clock=clock, cache=Path("unused"), bookmarks=LooseBookmarks(clock))
    said: list[str] = []
    with caplog.at_level(logging.INFO):
        async with PLATFORM.open(config, around) as adapter:
            await world.say("hi")
            async with listening(Rig(adapter=adapter, world=Far(world), instance=NAME)) as ear:
                await ear.hear()
            for fault in faults:
                world.will("sendMessage", fault)
                world.will("getMe", fault)
                with pytest.raises(PlatformError) as refused:
                    await adapter.send(message("hello", origin(1)))
                with pytest.raises(PlatformError) as lost:
                    await adapter.listen(Ear().emit)
                said += [str(refused.value), refused.value.detail, str(lost.value), lost.value.detail]
    printed = capfd.readouterr()
    assert SECRET not in caplog.text + printed.out + printed.err + "".join(said)
    assert SECRET not in repr(config)


def test_a_token_that_is_none_is_refused_without_being_printed() -> None:
    with pytest.raises(ValueError, match="@BotFather") as raised:
        TelegramConfig.model_validate({"token": "my-secret-words"})
    assert "my-secret-words" not in str(raised.value)


async def test_everything_is_closed_behind_us() -> None:
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(TelegramWorld())
        async with bot(world) as adapter, listening(rig_of(world, adapter)) as ear:
            await world.say(f"@{USERNAME} hi", chat=-7)
            assert (await ear.hear())[0].mentions_me
