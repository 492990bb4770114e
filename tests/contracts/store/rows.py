"""What a turn writes, and what people read of it."""

import pytest

from contracts.store.facts import (
    HOUR,
    T0,
    arrival,
    assistant,
    begin,
    birth,
    duty,
    key_of,
    same_facts,
    summary,
    take,
    tell,
    texts,
    tool,
    user,
    write,
)
from hermes.errors import LeaseBusy, LeaseLost, SessionNotFound
from hermes.sessions.model import (
    OWNER,
    ConversationId,
    Kind,
    NewMessage,
    Outcome,
    Person,
    Role,
    Scope,
    Settlement,
    Snapshot,
    Split,
    ToolCall,
    TurnId,
    Usage,
    ViewEntry,
)
from hermes.sessions.ports import Store

CALLS = (
    ToolCall(id="c1", name="terminal", arguments='{"command": "ls"}'),
    ToolCall(id="c2", name="read_file", arguments="{}"),
)


class RowsContract:
    """Steps, transcripts, and the ends of conversations."""

    async def test_rows_come_back_as_they_were_written(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        written = (
            NewMessage(
                role=Role.USER,
                content="日本 👩‍🚀 ' \" % \ufffd\n",
                at=T0,
                sender=Person(id="u1", name="Ada"),
                platform_message_ids=("m:1", "m:2"),
            ),
            NewMessage(role=Role.ASSISTANT, content="", at=T0 + 1, tool_calls=CALLS, tokens=9, finish_reason="tool"),
            tool("out", call="c1", at=T0 + 2),
            NewMessage(role=Role.USER, kind=Kind.CARRIED, content="brought along", at=T0 + 3),
        )
        rows = await write(store, lease, session, *written)
        for new, row in zip(written, rows, strict=True):
            assert same_facts(new, row)
            assert (row.session_id, row.turn, row.undone_by) == (session.id, "turn-1", None)
        assert await store.history(session.id) == rows

    async def test_ids_grow_over_the_whole_store(self, store: Store) -> None:
        first, first_lease = await begin(store, "a")
        second, second_lease = await begin(store, "b")
        ids = []
        for _ in range(3):
            ids += [row.id for row in await write(store, first_lease, first, user("x"), user("y"))]
            ids += [row.id for row in await write(store, second_lease, second, user("z"))]
        assert ids == sorted(set(ids))

    async def test_a_step_without_rows_is_fine(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        assert await write(store, lease, session) == ()
        assert (await store.tip(session.conversation)).message_count == 0

    async def test_counters_and_last_activity_move_with_the_rows(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        carried = NewMessage(role=Role.USER, kind=Kind.CARRIED, content="old", at=T0)
        await write(store, lease, session, carried, user("hi", at=T0 + 5), assistant("", calls=CALLS, at=T0 + 9))
        await write(store, lease, session, tool("one", at=T0 + 7), tool("two", call="c2", at=T0 + 8))
        tip = await store.tip(session.conversation)
        assert (tip.message_count, tip.tool_call_count, tip.last_active) == (4, 2, T0 + 9)

    async def test_the_preview_is_what_a_person_said_first_on_one_line(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, assistant("Welcome"))
        await write(store, lease, session, user("plan\n\tthe   garden"), user("and more"))
        await write(store, lease, session, user("later"))
        assert (await store.tip(session.conversation)).preview == "plan the garden"

    async def test_a_preview_has_at_most_sixty_characters(self, store: Store) -> None:
        tip = await tell(store, "a", "x" * 61)
        assert tip.preview == "x" * 59 + "…"

    async def test_usage_adds_up(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        one = Usage(
            input_tokens=10,
            output_tokens=2,
            cache_read_tokens=3,
            cache_write_tokens=4,
            reasoning_tokens=5,
            cost_usd=0.25,
        )
        await write(store, lease, session, usage=one, api_calls=1)
        await write(store, lease, session, usage=one, api_calls=1)
        assert (await store.tip(session.conversation)).usage == one + one

    async def test_a_snapshot_stays_until_the_next_one(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, snapshot=Snapshot(model="m1", provider="p", system_prompt="s", tools="[]"))
        await write(store, lease, session, user("hi"))
        tip = await store.tip(session.conversation)
        assert (tip.model, tip.provider, tip.system_prompt, tip.tools) == ("m1", "p", "s", "[]")
        await write(store, lease, session, snapshot=Snapshot(model="m2", provider="q", system_prompt="t", tools="[1]"))
        tip = await store.tip(session.conversation)
        assert (tip.model, tip.provider, tip.system_prompt, tip.tools) == ("m2", "q", "t", "[1]")

    async def test_a_step_takes_up_events_settles_them_and_owes_the_answer(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        event = (await store.inbox.claim(arrival("m:1"))).row
        await write(store, lease, session, user("hi"), key=key_of("a"), runs=(event.id,))
        settled = Settlement(rows=(event.id,), outcome=Outcome.ANSWERED)
        await write(store, lease, session, assistant("hey"), settles=(settled,), deliveries=(duty("d1"),), ends="done")
        found = await store.inbox.find("telegram", "7", "m:1")
        assert found is not None
        assert (found.turn, found.outcome, found.payload) == ("turn-1", Outcome.ANSWERED, None)
        assert [owed.key for owed in await store.outbox.due(["telegram"], node="n", now=T0)] == ["d1"]
        assert await store.inbox.unfinished(key_of("a")) is None

    async def test_the_rows_of_a_turn_are_its_own_in_order(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("one"), turn="t1")
        await write(store, lease, session, user("two"), turn="t2")
        await write(store, lease, session, assistant("three"), turn="t1")
        assert texts(await store.turn_messages(TurnId("t1"))) == ["one", "three"]
        assert await store.turn_messages(TurnId("t3")) == ()

    async def test_the_answer_of_a_turn_is_the_last_thing_that_the_assistant_said(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("hi"), assistant("let me look", calls=CALLS), tool("out"), turn="t1")
        await write(store, lease, session, tool("out", call="c2"), assistant("found it"), turn="t1")
        await write(store, lease, session, user("thanks"), turn="t2")
        answer = await store.answer_of(TurnId("t1"))
        assert answer is not None
        assert answer.content == "found it"
        assert await store.answer_of(TurnId("t2")) is None

    async def test_a_call_without_words_is_no_answer(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("hi"), assistant("", calls=CALLS[:1]), tool("out"), turn="t1")
        assert await store.answer_of(TurnId("t1")) is None

    async def test_a_transcript_holds_what_was_said_and_got(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        carried = NewMessage(role=Role.USER, kind=Kind.CARRIED, content="carried", at=T0)
        await write(store, lease, session, carried, user("ask"), assistant("", calls=CALLS[:1]), tool("out"))
        await write(store, lease, session, assistant("answer"))
        assert texts(await store.transcript(session.conversation, OWNER)) == ["ask", "", "out", "answer"]

    async def test_a_transcript_reaches_over_all_segments_with_each_row_once(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        _, two = await write(store, lease, session, user("one"), assistant("two"))
        child = await store.split(lease, session.id, _split("b", tail=(two.id,)))
        await write(store, lease, child, user("three"))
        assert texts(await store.transcript(session.conversation, OWNER)) == ["one", "two", "three"]

    async def test_a_transcript_is_read_in_pages(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        rows = await write(store, lease, session, *(user(f"{n}") for n in range(7)))
        read: list[str] = []
        after = 0
        while page := await store.transcript(session.conversation, OWNER, after=after, limit=3):
            assert len(page) <= 3
            read += texts(page)
            after = page[-1].id
        assert read == texts(rows)

    async def test_a_transcript_without_rows_is_empty_but_not_unknown(self, store: Store) -> None:
        session = await store.open(key_of("a"), birth("a"))
        assert await store.transcript(session.conversation, OWNER) == ()
        with pytest.raises(SessionNotFound):
            await store.transcript(ConversationId("20270115_080000_nobody"), OWNER)

    async def test_deleting_removes_the_whole_lineage_and_its_routes(self, store: Store) -> None:
        session, lease = await begin(store, "a", title="garden")
        (row,) = await write(store, lease, session, user("one"))
        child = await store.split(lease, session.id, _split("b", tail=(row.id,)))
        await store.leases.release(lease)
        await store.delete(session.conversation, OWNER, now=T0)
        for segment in (session, child):
            with pytest.raises(SessionNotFound):
                await store.get(segment.id, OWNER)
        with pytest.raises(SessionNotFound):
            await store.tip(session.conversation)
        assert await store.turn_messages(TurnId("turn-1")) == ()
        assert (await store.open(key_of("a"), birth("c", title="garden"))).title == "garden"

    async def test_deleting_leaves_other_conversations_alone(self, store: Store) -> None:
        gone = await tell(store, "a", "one")
        kept = await tell(store, "b", "two")
        await store.delete(gone.conversation, OWNER, now=T0)
        assert texts(await store.history(kept.id)) == ["two"]

    async def test_a_conversation_that_is_thought_about_is_not_deleted(self, store: Store) -> None:
        session, _ = await begin(store, "a")
        with pytest.raises(LeaseBusy):
            await store.delete(session.conversation, OWNER, now=T0 + 1)
        assert (await store.tip(session.conversation)).id == session.id

    async def test_the_lease_of_a_dead_process_does_not_keep_a_conversation(self, store: Store) -> None:
        session, _ = await begin(store, "a")
        await store.delete(session.conversation, OWNER, now=T0 + HOUR)
        with pytest.raises(SessionNotFound):
            await store.tip(session.conversation)

    async def test_deleting_what_a_reader_may_not_see_is_deleting_nothing(self, store: Store) -> None:
        session = await tell(store, "a")
        with pytest.raises(SessionNotFound):
            await store.delete(session.conversation, Scope(source="telegram", user_id="u2"), now=T0)
        assert (await store.tip(session.conversation)).id == session.id

    async def test_a_lease_taken_before_a_deletion_writes_nothing_after_it(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await store.leases.release(lease)
        await store.delete(session.conversation, OWNER, now=T0)
        reborn = await store.open(key_of("a"), birth("a"))
        assert (await take(store, reborn.conversation)).generation > lease.generation
        with pytest.raises(LeaseLost):
            await write(store, lease, reborn, user("late"))


def _split(child: str, *, tail: tuple[int, ...]) -> Split:
    entries = tuple(ViewEntry(message_id=row) for row in tail)
    return Split(child=birth(child).id, head=(), summary=summary("in short"), tail=entries, at=T0)
