"""Showing what is owed: order, patience, long answers, and what may have been shown already."""

from pathlib import Path

import pytest

from fakes import VirtualClock
from hermes.errors import AuthFailed, PlatformError, RateLimited, Refusal, Rejected, Unreachable
from hermes.gateway.delivery import GIVE_UP_AFTER
from hermes.sessions.model import Delivery, NewDelivery, Outcome, Sending
from worlds.hand import HandModel
from worlds.house import House, both_stores, house, until

ORIGIN = '{{"platform": "loopback", "chat_id": "{chat}", "kind": "dm"}}'
MARK = "↻ Sent again after an interruption"


async def owe(h: House, *texts: str, chat: str = "c1") -> None:
    """Duties, one after another."""
    now = h.clock.now()
    await h.store.outbox.add(
        [
            NewDelivery(
                key=f"{chat}:{text[:20]}",
                platform="loopback",
                chat_id=chat,
                origin=ORIGIN.format(chat=chat),
                markdown=text,
                at=now,
            )
            for text in texts
        ]
    )
    h.app.deliverer.wake()


async def answered(h: House, model: HandModel, answer: str) -> Delivery:
    """A question is asked and answered; gives the duty once nothing more can be done about it now."""
    packet = await h.say("question")
    (await model.question()).answer(answer)
    await h.quiet()
    return await duty_of(h, packet.id)


async def duty_of(h: House, message: str) -> Delivery:
    row = await h.store.inbox.find("loopback", "c1", f"m:{message}")
    assert row is not None
    assert row.turn is not None
    (duty,) = await h.store.outbox.of_turn(row.turn)
    return duty


class TestOrder:
    @both_stores
    async def test_a_chat_is_shown_its_messages_in_order(self, tmp_path: Path, kind: str) -> None:
        async with house(tmp_path, kind=kind) as h:
            await owe(h, *(f"message {n}" for n in range(20)))
            assert await h.room.shows(20) == [f"message {n}" for n in range(20)]
            await h.quiet()
            assert (await h.balanced()).outbound["sent"] == 20

    @both_stores
    async def test_a_chat_that_hangs_delays_no_other(self, tmp_path: Path, kind: str) -> None:
        async with house(tmp_path, kind=kind) as h:
            gate = h.room.hold("slow")
            await owe(h, "one", "two", chat="slow")
            await owe(h, "quick", chat="other")
            assert await h.room.shows(1) == ["quick"]
            gate.set()
            assert (await h.room.shows(3))[1:] == ["one", "two"]

    async def test_a_postponed_message_of_one_chat_does_not_wait_for_a_slow_send_to_another(
        self, tmp_path: Path
    ) -> None:
        clock = VirtualClock()
        async with house(tmp_path, kind="memory", clock=clock) as h:
            h.room.fail_sends(RateLimited("loopback", retry_after=5))
            await owe(h, "patient", chat="c1")
            await h.quiet()
            gate = h.room.hold("slow")
            await owe(h, "slow", chat="slow")
            await h.room.until(lambda: len(h.room.tries) == 2)
            for _ in range(6):
                await until(lambda: bool(clock.slept) and clock.slept[-1] == 1.0)
                await clock.advance(1)
            assert await h.room.shows(1) == ["patient"]
            gate.set()
            await h.room.shows(2)


class TestPatience:
    @both_stores
    async def test_what_a_platform_asks_for_is_waited_and_the_order_is_kept(self, tmp_path: Path, kind: str) -> None:
        clock = VirtualClock()
        start = clock.now()
        async with house(tmp_path, kind=kind, clock=clock) as h:
            h.room.fail_sends(RateLimited("loopback", retry_after=30))
            await owe(h, "one", "two")
            await h.pass_time(lambda: len(h.room.tries) >= 2)
            assert clock.now() >= start + 30
            assert await h.room.shows(2) == ["one", "two"]

    @pytest.mark.parametrize("error", [Unreachable("loopback", "away"), AuthFailed("loopback", "no")])
    async def test_an_unreachable_platform_is_tried_again_after_2_4_and_8_seconds(
        self, tmp_path: Path, error: PlatformError
    ) -> None:
        clock = VirtualClock()
        async with house(tmp_path, kind="memory", clock=clock) as h:
            h.room.fail_sends(error, error, error)
            await owe(h, "hello")
            start = clock.now()
            for tries, due in enumerate((2, 6, 14), 1):
                await h.quiet()
                await clock.advance(start + due - 0.5 - clock.now())
                assert len(h.room.tries) == tries
                await clock.advance(0.5)
            assert await h.room.shows(1) == ["hello"]
            await h.quiet()
            assert (await h.balanced()).outbound["sent"] == 1

    async def test_after_a_day_nobody_wants_it_any_more(self, tmp_path: Path) -> None:
        clock = VirtualClock()
        async with house(tmp_path, kind="memory", clock=clock) as h:
            h.room.fail_sends(RateLimited("loopback", retry_after=GIVE_UP_AFTER + 1), Unreachable("loopback", "away"))
            await owe(h, "old news", "new news")
            await h.quiet()
            await clock.advance(GIVE_UP_AFTER + 2)
            assert await h.room.shows(1) == ["new news"]
            await h.quiet()
            assert (await h.balanced()).outbound["dead"] == 1


class TestEnds:
    @both_stores
    @pytest.mark.parametrize("refusal", [refusal for refusal in Refusal if refusal is not Refusal.BAD_FORMAT])
    async def test_a_refused_message_is_dead_with_its_reason_and_the_next_goes_on(
        self, tmp_path: Path, kind: str, refusal: Refusal
    ) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model) as h:
            h.room.fail_sends(Rejected("loopback", refusal))
            duty = await answered(h, model, "refused")
            assert (duty.state, duty.why) == (Sending.DEAD, refusal.value)
            assert (await answered(h, model, "taken")).state is Sending.SENT
            assert h.room.texts() == ["taken"]
            await h.balanced()

    @both_stores
    async def test_what_is_refused_for_its_format_is_shown_as_it_stands(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, longest=10) as h:
            h.room.fail_sends(None, Rejected("loopback", Refusal.BAD_FORMAT))
            assert (await answered(h, model, "one two three four")).state is Sending.SENT
            assert h.room.texts() == ["one two", "three four"]
            assert [out.plain for out in h.room.tries] == [False, False, True]

    async def test_what_is_refused_even_as_it_stands_is_dead(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            h.room.fail_sends(*[Rejected("loopback", Refusal.BAD_FORMAT)] * 2)
            duty = await answered(h, model, "refused")
            assert (duty.state, duty.why) == (Sending.DEAD, "bad_format")
            await h.balanced()

    @both_stores
    async def test_the_platforms_ids_join_the_answer_in_the_transcript(self, tmp_path: Path, kind: str) -> None:
        model = HandModel()
        async with house(tmp_path, kind=kind, model=model, longest=10) as h:
            duty = await answered(h, model, "one two three four")
            shown = tuple(note.id for note in h.room.shown)
            assert duty.message_ids == shown
            assert (await h.rows(await h.session()))[-1].platform_message_ids == shown

    async def test_a_bug_in_an_adapter_ends_one_message(self, tmp_path: Path) -> None:
        model = HandModel()
        async with house(tmp_path, model=model) as h:
            h.room.fail_sends(ZeroDivisionError())  # type: ignore[arg-type]
            duty = await answered(h, model, "unlucky")
            assert (duty.state, duty.why) == (Sending.DEAD, "internal: ZeroDivisionError")
            await answered(h, model, "lucky")
            assert h.room.texts() == ["lucky"]


class TestLongAnswers:
    @both_stores
    async def test_they_come_in_pieces_that_fit(self, tmp_path: Path, kind: str) -> None:
        words = " ".join(f"word{n}" for n in range(100))
        async with house(tmp_path, kind=kind, longest=50) as h:
            await owe(h, words, "after")
            await h.quiet()
            *pieces, after = h.room.texts()
            assert after == "after"
            assert all(len(piece) <= 50 for piece in pieces)
            assert " ".join(pieces) == words

    @both_stores
    @pytest.mark.parametrize("forgets", [False, True])
    async def test_they_are_resumed_at_the_first_piece_that_was_not_shown(
        self, tmp_path: Path, kind: str, forgets: bool
    ) -> None:
        clock = VirtualClock()
        async with house(tmp_path, kind=kind, clock=clock, longest=10, forgets=forgets) as h:
            h.room.fail_sends(None, Unreachable("loopback", "away"))
            await owe(h, "one two three four five")
            await h.quiet()
            assert h.room.texts() == ["one two"]
            await h.pass_time(lambda: len(h.room.texts()) >= 3)
            assert h.room.texts() == ["one two", "three four", "five"]


class TestUncertainty:
    @both_stores
    async def test_what_may_have_been_shown_is_shown_once_more_with_a_mark(self, tmp_path: Path, kind: str) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, kind=kind, model=model, clock=clock, forgets=True) as h:
            h.room.fail_sends(Unreachable("loopback", "no answer", maybe_done=True))
            duty = await answered(h, model, "hello")
            assert duty.state is Sending.DUE
            await h.pass_time(lambda: len(h.room.texts()) >= 2)
            first, again = h.room.texts()
            assert first == "hello"
            assert again.startswith(MARK)
            assert again.endswith("\n\nhello")
            await h.quiet()
            assert (await h.balanced()).outbound["unknown"] == 1

    async def test_what_stays_uncertain_is_not_sent_a_third_time(self, tmp_path: Path) -> None:
        model, clock = HandModel(), VirtualClock()
        lost = Unreachable("loopback", "no answer", maybe_done=True)
        async with house(tmp_path, kind="memory", model=model, clock=clock, forgets=True) as h:
            h.room.fail_sends(lost, lost)
            await answered(h, model, "hello")
            await h.pass_time(lambda: len(h.room.texts()) >= 2)
            await h.quiet()
            await clock.advance(3600)
            await h.quiet()
            assert len(h.room.texts()) == 2
            assert (await h.balanced()).outbound["unknown"] == 1

    @both_stores
    async def test_a_platform_that_knows_keys_shows_nothing_twice(self, tmp_path: Path, kind: str) -> None:
        model, clock = HandModel(), VirtualClock()
        async with house(tmp_path, kind=kind, model=model, clock=clock) as h:
            h.room.fail_sends(Unreachable("loopback", "no answer", maybe_done=True))
            await answered(h, model, "hello")
            await h.pass_time(lambda: len(h.room.tries) >= 2)
            await h.quiet()
            assert h.room.texts() == ["hello"]
            assert (await h.balanced()).outbound["sent"] == 1

    @pytest.mark.parametrize("longest", [100, 200])
    async def test_the_mark_costs_a_long_answer_no_words(self, tmp_path: Path, longest: int) -> None:
        words = " ".join(f"word{n}" for n in range(100))
        lost = Unreachable("loopback", "no answer", maybe_done=True)
        clock = VirtualClock()
        async with house(tmp_path, kind="memory", clock=clock, longest=longest, forgets=True) as h:
            h.room.fail_sends(lost)
            await owe(h, words)
            await h.quiet()
            h.room.fail_sends(None, None, Unreachable("loopback", "away"))
            await clock.advance(3)
            await h.quiet()
            await clock.advance(10)
            await h.quiet()
            text = " ".join(h.room.texts())
            assert [word for word in words.split() if word not in text] == []
            assert MARK in text
            assert (await h.balanced()).outbound["unknown"] == 1


@both_stores
async def test_the_books_add_up_whatever_happened(tmp_path: Path, kind: str) -> None:
    model, clock = HandModel(), VirtualClock()
    async with house(tmp_path, kind=kind, model=model, clock=clock, forgets=True) as h:
        h.room.fail_sends(
            Rejected("loopback", Refusal.GONE), None, Unreachable("loopback", "lost", maybe_done=True), None
        )
        for text in ("dead", "sent", "unknown"):
            await answered(h, model, text)
        await h.say("/start")
        await h.say("hello", chat="g", kind="group", user=None)
        await h.pass_time(lambda: len(h.room.texts()) >= 3)
        (await model.question()).answer("hi all")
        await h.room.shows(4)
        await h.quiet()
        books = await h.balanced()
        assert (books.outbound["sent"], books.outbound["dead"], books.outbound["unknown"]) == (2, 1, 1)
        assert (books.inbound["answered"], books.inbound["command"]) == (4, 1)
        assert Outcome.DEAD.value not in books.inbound
