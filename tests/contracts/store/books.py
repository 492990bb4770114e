"""Figures that add up."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import (
    HOUR,
    MINUTE,
    NODE,
    T0,
    arrival,
    begin,
    birth,
    duty,
    random_histories,
    summary,
    tell,
    user,
    write,
)
from hermes.ids import fresh
from hermes.sessions.model import Outcome, Sending, Settlement, Split
from hermes.sessions.ports import Store


class BooksContract:
    """The `Books` port."""

    async def test_an_empty_store_has_empty_books(self, store: Store) -> None:
        counts = await store.counts()
        assert (counts.inbound["received"], counts.outbound["created"], counts.messages) == (0, 0, 0)
        assert counts.sessions == {}

    async def test_conversations_are_counted_by_source_however_often_they_were_split(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("one"))
        await store.split(lease, session.id, Split(child=birth("b").id, head=(), summary=None, tail=(), at=T0))
        await tell(store, "c")
        await tell(store, "d", source="slack")
        assert (await store.counts()).sessions == {"telegram": 2, "slack": 1}

    async def test_messages_are_counted_and_summaries_are_not(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("one"), user("two"))
        split = Split(child=birth("b").id, head=(), summary=summary("in short"), tail=(), at=T0)
        await store.split(lease, session.id, split)
        assert (await store.counts()).messages == 2

    async def test_events_and_duties_are_counted_by_what_became_of_them(self, store: Store) -> None:
        rows = [(await store.inbox.claim(arrival(f"m:{n}"))).row.id for n in range(4)]
        await store.inbox.settle(Settlement(rows=tuple(rows[:2]), outcome=Outcome.ANSWERED), at=T0)
        await store.inbox.settle(Settlement(rows=(rows[2],), outcome=Outcome.DEAD), at=T0)
        await store.outbox.add([duty("d1"), duty("d2"), duty("d3")])
        owed = await store.outbox.due(["telegram"], node=NODE, now=T0)
        await store.outbox.settle(owed[0].id, Sending.SENT, at=T0)
        await store.outbox.take_off(owed[1].id)
        counts = await store.counts()
        assert _filled(counts.inbound) == {"received": 4, "open": 1, "answered": 2, "dead": 1}
        assert _filled(counts.outbound) == {"created": 3, "open": 2, "sent": 1}

    async def test_purging_drops_what_was_settled_long_ago_and_keeps_the_counts(self, store: Store) -> None:
        rows = [(await store.inbox.claim(arrival(f"m:{n}"))).row.id for n in range(3)]
        await store.inbox.settle(Settlement(rows=(rows[0],), outcome=Outcome.ANSWERED), at=T0)
        await store.inbox.settle(Settlement(rows=(rows[1],), outcome=Outcome.ANSWERED), at=T0 + HOUR)
        await store.outbox.add([duty("d1", turn=None), duty("d2")])
        owed = await store.outbox.due(["telegram"], node=NODE, now=T0)
        await store.outbox.settle(owed[0].id, Sending.SENT, at=T0)
        before = await store.counts()
        assert await store.purge(before=T0 + MINUTE) == 2
        assert await store.inbox.find("telegram", "7", "m:0") is None
        assert await store.inbox.find("telegram", "7", "m:1") is not None
        assert await store.inbox.find("telegram", "7", "m:2") is not None
        assert await store.counts() == before
        assert await store.purge(before=T0 + MINUTE) == 0

    @random_histories
    @given(ends=st.lists(st.one_of(st.none(), st.sampled_from(list(Outcome))), max_size=8), purged=st.booleans())
    async def test_what_was_received_is_open_or_has_an_outcome(
        self, store: Store, ends: list[Outcome | None], purged: bool
    ) -> None:
        for end in ends:
            row = (await store.inbox.claim(arrival(fresh("m")))).row
            if end is not None:
                await store.inbox.settle(Settlement(rows=(row.id,), outcome=end), at=T0)
        if purged:
            await store.purge(before=T0 + 1)
        inbound = dict((await store.counts()).inbound)
        assert inbound.pop("received") == sum(inbound.values())


def _filled(book: dict[str, int]) -> dict[str, int]:
    """Without the zeros, which a store may leave out."""
    return {str(name): count for name, count in book.items() if count}
