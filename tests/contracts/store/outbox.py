"""Words that are owed are shown once, in the order of their chat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import (
    HOUR,
    MINUTE,
    NODE,
    T0,
    assistant,
    begin,
    duty,
    random_histories,
    same_facts,
    tool,
    user,
    write,
)
from hermes.ids import fresh
from hermes.sessions.model import Delivery, Sending, SessionId, ToolCall, TurnId
from hermes.sessions.ports import Store

CALL = ToolCall(id="c1", name="terminal", arguments="{}")


class OutboxContract:
    """The `Outbox` port."""

    async def test_a_duty_is_kept_whole_and_due_at_once(self, store: Store) -> None:
        new = duty(
            "d1",
            reply_to="m:1",
            answers="m:1",
            session=SessionId("s"),
            turn=TurnId("t"),
            node=NODE,
            input_tokens=5,
            output_tokens=7,
        )
        await store.outbox.add([new])
        (owed,) = await _due(store)
        assert same_facts(new, owed)
        assert (owed.state, owed.attempts, owed.message_ids, owed.why) == (Sending.DUE, 0, (), "")

    async def test_a_key_that_is_there_is_left_as_it_is(self, store: Store) -> None:
        await store.outbox.add([duty("d1", chat="7")])
        await store.outbox.add([duty("d1", chat="8"), duty("d2", chat="8"), duty("d2", chat="9")])
        assert [(owed.key, owed.chat_id) for owed in await _due(store)] == [("d1", "7"), ("d2", "8")]

    async def test_a_key_that_was_served_is_not_owed_again(self, store: Store) -> None:
        await store.outbox.add([duty("d1")])
        await _settle_first(store, Sending.SENT)
        await store.outbox.add([duty("d1")])
        assert await _due(store) == ()

    async def test_duties_come_oldest_first_up_to_a_limit(self, store: Store) -> None:
        await store.outbox.add([duty("d1", chat="7"), duty("d2", chat="8"), duty("d3", chat="7")])
        assert await _keys_due(store) == ["d1", "d2", "d3"]
        assert [owed.key for owed in await store.outbox.due(["telegram"], node=NODE, now=T0, limit=2)] == ["d1", "d2"]

    async def test_only_own_platforms_and_connections_are_served(self, store: Store) -> None:
        await store.outbox.add(
            [
                duty("d1", chat="1", platform="slack"),
                duty("d2", chat="2", node="node-2"),
                duty("d3", chat="3", node=NODE),
                duty("d4", chat="4"),
            ]
        )
        assert await _keys_due(store) == ["d3", "d4"]
        assert await store.outbox.due([], node=NODE, now=T0) == ()

    async def test_a_postponed_duty_holds_up_its_chat_and_no_other(self, store: Store) -> None:
        await store.outbox.add([duty("d1", chat="7"), duty("d2", chat="7"), duty("d3", chat="8")])
        await store.outbox.postpone((await _due(store))[0].id, until=T0 + MINUTE, why="rate limited")
        assert await _keys_due(store) == ["d3"]
        assert await _keys_due(store, now=T0 + MINUTE) == ["d1", "d2", "d3"]

    async def test_what_is_older_than_a_postponed_duty_is_not_held_up(self, store: Store) -> None:
        await store.outbox.add([duty("d1"), duty("d2"), duty("d3")])
        await store.outbox.postpone((await _due(store))[1].id, until=T0 + MINUTE, why="rate limited")
        assert await _keys_due(store) == ["d1"]

    async def test_the_same_chat_on_another_platform_is_another_chat(self, store: Store) -> None:
        await store.outbox.add([duty("d1", platform="slack"), duty("d2")])
        (first, _) = await store.outbox.due(["slack", "telegram"], node=NODE, now=T0)
        await store.outbox.postpone(first.id, until=T0 + MINUTE, why="down")
        assert await _keys_due(store) == ["d2"]

    async def test_a_duty_in_flight_holds_up_its_chat(self, store: Store) -> None:
        await store.outbox.add([duty("d1"), duty("d2"), duty("d3", chat="8")])
        await store.outbox.take_off((await _due(store))[0].id)
        assert await _keys_due(store) == ["d3"]

    async def test_postponing_counts_an_attempt_and_says_why(self, store: Store) -> None:
        await store.outbox.add([duty("d1")])
        for attempt in (1, 2):
            (owed,) = await _due(store, now=T0 + HOUR)
            await store.outbox.take_off(owed.id)
            await store.outbox.postpone(owed.id, until=T0 + attempt, why=f"try {attempt}")
            (owed,) = await _due(store, now=T0 + HOUR)
            assert (owed.state, owed.attempts, owed.why) == (Sending.DUE, attempt, f"try {attempt}")
            assert owed.not_before == T0 + attempt

    async def test_the_next_time_is_that_of_the_earliest_postponed_duty(self, store: Store) -> None:
        assert await store.outbox.next_due(["telegram"], node=NODE) is None
        await store.outbox.add([duty("d1", chat="7"), duty("d2", chat="8"), duty("d3", chat="9", platform="slack")])
        owed = await store.outbox.due(["telegram", "slack"], node=NODE, now=T0)
        for delivery, until in zip(owed, (T0 + HOUR, T0 + MINUTE, T0 + 1), strict=True):
            await store.outbox.postpone(delivery.id, until=until, why="rate limited")
        assert await store.outbox.next_due(["telegram"], node=NODE) == T0 + MINUTE
        await store.outbox.settle(owed[1].id, Sending.DEAD, at=T0, why="gone")
        assert await store.outbox.next_due(["telegram"], node=NODE) == T0 + HOUR

    async def test_what_waits_behind_a_postponed_duty_has_no_time_of_its_own(self, store: Store) -> None:
        await store.outbox.add([duty("d1"), duty("d2"), duty("d3", chat="8")])
        first, _, other = await _due(store)
        await store.outbox.postpone(first.id, until=T0 + MINUTE, why="rate limited")
        await store.outbox.take_off(other.id)
        assert await store.outbox.next_due(["telegram"], node=NODE) == T0 + MINUTE

    async def test_a_process_finds_what_it_died_over(self, store: Store) -> None:
        await store.outbox.add([duty("d1"), duty("d2", chat="8"), duty("d3", chat="9", node="node-2")])
        for owed in await _due(store):
            await store.outbox.take_off(owed.id)
        flying = await store.outbox.in_flight(["telegram"], node=NODE)
        assert [(owed.key, owed.state) for owed in flying] == [("d1", Sending.IN_FLIGHT), ("d2", Sending.IN_FLIGHT)]
        assert await store.outbox.in_flight(["slack"], node=NODE) == ()

    async def test_visible_pieces_are_known_after_a_crash(self, store: Store) -> None:
        await store.outbox.add([duty("d1")])
        (owed,) = await _due(store)
        await store.outbox.take_off(owed.id)
        await store.outbox.shown(owed.id, ["m:1"])
        await store.outbox.shown(owed.id, ["m:1", "m:2"])
        (flying,) = await store.outbox.in_flight(["telegram"], node=NODE)
        assert flying.message_ids == ("m:1", "m:2")

    async def test_visible_pieces_are_known_at_the_next_try(self, store: Store) -> None:
        await store.outbox.add([duty("d1")])
        (owed,) = await _due(store)
        await store.outbox.take_off(owed.id)
        await store.outbox.shown(owed.id, ["m:1"])
        await store.outbox.postpone(owed.id, until=T0, why="down")
        assert [again.message_ids for again in await _due(store)] == [("m:1",)]

    @pytest.mark.parametrize("end", [Sending.SENT, Sending.UNKNOWN, Sending.DEAD])
    async def test_an_end_frees_the_chat_and_is_final(self, store: Store, end: Sending) -> None:
        await store.outbox.add([duty("d1"), duty("d2")])
        owed = await _settle_first(store, end)
        await store.outbox.postpone(owed.id, until=T0, why="late")
        await store.outbox.take_off(owed.id)
        assert await _keys_due(store) == ["d2"]
        assert await store.outbox.in_flight(["telegram"], node=NODE) == ()
        others = {Sending.SENT, Sending.UNKNOWN, Sending.DEAD} - {end}
        for other in others:
            await store.outbox.settle(owed.id, other, at=T0)
        assert (await store.counts()).outbound.get(end) == 1

    async def test_the_platforms_ids_join_the_answer_that_was_shown(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("hi"), assistant("looking", calls=(CALL,)), tool("out"), turn="t1")
        await write(store, lease, session, assistant("found"), turn="t1", deliveries=(duty("d1", turn=TurnId("t1")),))
        await write(store, lease, session, assistant("other"), turn="t2")
        await _settle_first(store, Sending.SENT, message_ids=("m:1", "m:2"))
        assert [row.platform_message_ids for row in await store.history(session.id)] == [
            (),
            (),
            (),
            ("m:1", "m:2"),
            (),
        ]

    async def test_what_a_turn_gave_to_be_shown_is_found_whatever_became_of_it(self, store: Store) -> None:
        await store.outbox.add([duty(f"d{n}", turn=TurnId("t1")) for n in range(3)])
        await store.outbox.add([duty("e", turn=TurnId("t2")), duty("f")])
        await _settle_first(store, Sending.SENT, message_ids=("m:1",), why="")
        await _settle_first(store, Sending.DEAD, why="forbidden")
        given_out = await store.outbox.of_turn(TurnId("t1"))
        assert [(owed.key, owed.state, owed.message_ids, owed.why) for owed in given_out] == [
            ("d0", Sending.SENT, ("m:1",), ""),
            ("d1", Sending.DEAD, (), "forbidden"),
            ("d2", Sending.DUE, (), ""),
        ]

    @random_histories
    @given(
        chats=st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=6),
        trouble=st.lists(st.sampled_from(["sent", "postponed", "dead"]), max_size=12),
    )
    async def test_whatever_happens_each_chat_is_served_in_order_and_once(
        self, store: Store, chats: list[str], trouble: list[str]
    ) -> None:
        platform = fresh("platform")
        duties = [duty(f"{platform}:{n:02}", chat=chat, platform=platform) for n, chat in enumerate(chats)]
        await store.outbox.add(duties)
        ended: dict[str, list[str]] = {"x": [], "y": []}
        now = T0
        for event in [*trouble, *["sent"] * len(duties)]:
            now += MINUTE
            owed = await store.outbox.due([platform], node=NODE, now=now)
            if not owed:
                break
            await store.outbox.take_off(owed[0].id)
            if event == "postponed":
                await store.outbox.postpone(owed[0].id, until=now + MINUTE / 2, why="down")
            else:
                await store.outbox.settle(owed[0].id, Sending(event), at=now)
                ended[owed[0].chat_id].append(owed[0].key)
        assert ended == {chat: [new.key for new in duties if new.chat_id == chat] for chat in ("x", "y")}


async def _due(store: Store, *, now: float = T0) -> tuple[Delivery, ...]:
    return await store.outbox.due(["telegram"], node=NODE, now=now)


async def _keys_due(store: Store, *, now: float = T0) -> list[str]:
    return [owed.key for owed in await _due(store, now=now)]


async def _settle_first(store: Store, end: Sending, *, message_ids: tuple[str, ...] = (), why: str = "") -> Delivery:
    owed = (await _due(store))[0]
    await store.outbox.take_off(owed.id)
    await store.outbox.settle(owed.id, end, at=T0, message_ids=message_ids, why=why)
    return owed
