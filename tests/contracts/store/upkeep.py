"""What is done for a store that lives for years."""

from dataclasses import replace

from contracts.store.facts import (
    HOUR,
    T0,
    arrival,
    assistant,
    begin,
    birth,
    duty,
    key_of,
    take,
    tell,
    texts,
    tool,
    user,
    write,
)
from hermes.sessions.filters import Filter
from hermes.sessions.model import OWNER, Link, Outcome, Page, Person, Query, Sending, Settlement, ToolCall, ViewEntry
from hermes.sessions.ports import Store

DAY = 24 * HOUR


class UpkeepContract:
    """The `Upkeep` port."""

    async def test_a_job_is_done_once_an_interval(self, store: Store) -> None:
        asked = []
        for at in (0, 1, 9.9, 10, 11, 25):
            asked.append(await store.upkeep.claim("prune", now=T0 + at, every=10))
            if asked[-1]:
                await store.upkeep.done("prune", now=T0 + at)
        assert asked == [True, False, False, True, False, True]
        assert await store.upkeep.claim("other", now=T0 + 1, every=10)

    async def test_a_job_that_was_never_done_is_begun_again_soon(self, store: Store) -> None:
        assert await store.upkeep.claim("prune", now=T0, every=DAY)
        assert not await store.upkeep.claim("prune", now=T0 + 599, every=DAY)
        assert await store.upkeep.claim("prune", now=T0 + 601, every=DAY)
        await store.upkeep.done("prune", now=T0 + 700)
        assert not await store.upkeep.claim("prune", now=T0 + 2000, every=DAY)

    async def test_idle_conversations_are_closed_and_open_again_when_somebody_speaks(self, store: Store) -> None:
        old, busy, young = [await tell(store, name, at=at) for name, at in (("a", T0), ("b", T0), ("c", T0 + DAY))]
        await store.leases.take(busy.conversation, owner="me", place="here", now=T0 + DAY, ttl=60)
        assert await store.upkeep.close_idle(before=T0 + HOUR, now=T0 + DAY) == 1
        assert await store.upkeep.close_idle(before=T0 + HOUR, now=T0 + DAY) == 0
        ended = await store.get(old.id, OWNER)
        assert (ended.ended_at, ended.end_reason) == (T0 + DAY, "idle")
        assert [(await store.get(one.id, OWNER)).ended_at for one in (busy, young)] == [None, None]
        assert (await store.open(key_of("a"), birth("x"))).ended_at is None

    async def test_a_person_is_forgotten_with_all_that_is_theirs(self, store: Store) -> None:
        await tell(store, "a", "my secret", user_id="u1", chat_id="7", chat_kind="dm", title="secret plan")
        await tell(store, "b", "in the group", user_id="u1", chat_id="-100", chat_kind="group")
        await tell(store, "c", "another's secret", user_id="u2", chat_id="8", chat_kind="dm")
        await tell(store, "d", "same id elsewhere", user_id="u1", chat_id="7", chat_kind="dm", source="slack")
        for chat in ("7", "8"):
            row = (await store.inbox.claim(arrival("m:1", chat=chat))).row
            await store.inbox.settle(Settlement(rows=(row.id,), outcome=Outcome.ANSWERED), at=T0)
            await store.outbox.add([duty(f"d{chat}", chat=chat), duty(f"open{chat}", chat=chat)])
        for sent in await store.outbox.due(["telegram"], node="n", now=T0 + 1):
            await store.outbox.settle(sent.id, Sending.SENT, at=T0)
        before = await store.counts()
        await store.roles.request("telegram", "u1", name="U", code="AAAA", at=T0, ttl=100)
        await store.roles.approve("telegram", "AAAA", role="trusted", at=T0)
        gone = await store.upkeep.forget("telegram", "telegram", "u1", now=T0 + DAY)
        assert (gone.conversations, gone.shared, gone.kept) == (2, 0, ())
        assert [one.conversation[-1] for one in await store.select(Filter(), OWNER)] == ["c", "d"]
        found = await store.search.discover(Query(text="secret", limit=9), OWNER)
        assert [hit.session.id[-1] for hit in found.hits] == ["c"]
        assert await store.inbox.find("telegram", "7", "m:1") is None
        assert await store.inbox.find("telegram", "8", "m:1") is not None
        assert await store.roles.role_of("telegram", "u1") is None
        after = await store.counts()
        assert (after.inbound, after.outbound) == (before.inbound, before.outbound), "the books still add up"
        again = await store.upkeep.forget("telegram", "telegram", "u1", now=T0 + DAY)
        assert (again.conversations, again.shared) == (0, 0)

    async def test_their_words_in_a_room_are_erased_and_the_others_stay(self, store: Store) -> None:
        session, lease = await begin(store, "a", user_id=None, chat_id="-100", chat_kind="group")
        said = [("u1", "my secret address"), ("u2", "I see"), ("u1", "thanks")]
        rows = [replace(user(text), sender=Person(id=who, name=who.upper())) for who, text in said]
        for number, row in enumerate(rows):
            calls = (ToolCall(id=f"c{number}", name="note", arguments='{"x": "address"}'),)
            answer = (assistant(f"you said {row.content}", calls=calls), tool("address noted", call=f"c{number}"))
            await write(store, lease, session, row, *answer, turn=f"turn-{number}")
        await store.rename(session.id, "Secret address", by_person=False)
        gone = await store.upkeep.forget("telegram", "telegram", "u1", now=T0 + DAY)
        assert (gone.conversations, gone.shared) == (0, 2)
        left = await store.transcript(session.conversation, OWNER)
        others = ["I see", "you said I see", "address noted"]
        assert texts(left) == ["[erased]", "[erased]", *others, "[erased]", "[erased]"]
        assert [row.sender.id for row in left if row.sender is not None] == ["u2"]
        assert [row.tool_calls for row in left if row.content == "[erased]"] == [()] * 4
        (shown,) = await store.list(Page(), OWNER)
        assert (shown.title, shown.preview) == (None, "[erased]")
        assert (await store.search.discover(Query(text="address"), OWNER)).hits == ()

    async def test_what_cannot_go_is_named(self, store: Store) -> None:
        session, lease = await begin(store, "a", user_id="u1")
        (row,) = await write(store, lease, session, user("shared"))
        await store.leases.release(lease)
        branch, lease = await begin(store, "b", user_id="u2", parent=session.id, link=Link.BRANCH)
        await store.replace(lease, branch.id, [ViewEntry(message_id=row.id)])
        await store.leases.release(lease)
        busy = await tell(store, "c", user_id="u1")
        await take(store, busy.conversation, now=T0 + DAY)
        gone = await store.upkeep.forget("telegram", "telegram", "u1", now=T0 + DAY)
        assert gone.conversations == 0
        assert set(gone.kept) == {session.conversation, busy.conversation}
