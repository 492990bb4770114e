"""Lists of conversations."""

from typing import Any

import pytest

from contracts.store.facts import HOUR, MINUTE, T0, begin, birth, key_of, summary, tell, user, write
from hermes.errors import SessionNotFound
from hermes.sessions.model import OWNER, Kind, NewMessage, Page, Role, Room, Scope, Split
from hermes.sessions.ports import Store


class ReadersContract:
    """`list` and `archive`."""

    async def test_the_last_active_conversation_comes_first(self, store: Store) -> None:
        for name, at in (("a", T0 + MINUTE), ("b", T0 + HOUR), ("c", T0)):
            await tell(store, name, at=at)
        assert await _names(store) == ["b", "a", "c"]

    async def test_speaking_moves_a_conversation_up(self, store: Store) -> None:
        old, lease = await begin(store, "a")
        await tell(store, "b", at=T0 + MINUTE)
        await write(store, lease, old, user("again", at=T0 + HOUR))
        assert await _names(store) == ["a", "b"]

    async def test_a_conversation_is_one_row_however_often_it_was_split(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("plan the garden"))
        child = await store.split(lease, session.id, _split("b"))
        (row,) = await store.list(Page(), OWNER)
        assert (row.id, row.conversation, row.preview) == (child.id, session.conversation, "plan the garden")

    async def test_empty_conversations_are_left_out(self, store: Store) -> None:
        await store.open(key_of("a"), birth("a"))
        assert await store.list(Page(), OWNER) == ()

    async def test_what_a_caller_brought_along_does_not_fill_a_conversation(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, NewMessage(role=Role.USER, kind=Kind.CARRIED, content="old", at=T0))
        assert await store.list(Page(), OWNER) == ()

    async def test_pages_follow_each_other_without_a_gap(self, store: Store) -> None:
        for n in range(5):
            await tell(store, f"s{n}", at=T0 + n)
        first = await store.list(Page(limit=2), OWNER)
        second = await store.list(Page(limit=2, before=first[-1].last_active), OWNER)
        third = await store.list(Page(limit=2, before=second[-1].last_active), OWNER)
        assert [row.last_active - T0 for row in (*first, *second, *third)] == [4, 3, 2, 1, 0]

    async def test_a_list_can_be_of_one_source(self, store: Store) -> None:
        await tell(store, "a")
        await tell(store, "b", source="slack")
        assert await _names(store, source="slack") == ["b"]

    async def test_machines_can_be_left_out(self, store: Store) -> None:
        await tell(store, "a")
        for source in ("cron", "batch", "webhook"):
            await tell(store, source, source=source)
        assert await _names(store, include_machines=False) == ["a"]
        assert len(await _names(store)) == 4

    async def test_an_archived_conversation_is_hidden_with_all_its_segments(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("one"))
        child = await store.split(lease, session.id, _split("b"))
        await store.archive(session.conversation, OWNER, archived=True)
        assert await store.list(Page(), OWNER) == ()
        (shown,) = await store.list(Page(include_archived=True), OWNER)
        assert shown.archived
        assert (await store.get(session.id, OWNER)).archived
        assert (await store.resolve(child.id, OWNER)).archived

    async def test_an_archived_conversation_can_be_shown_again(self, store: Store) -> None:
        session = await tell(store, "a")
        await store.archive(session.conversation, OWNER, archived=True)
        await store.archive(session.conversation, OWNER, archived=False)
        assert await store.list(Page(), OWNER) == (session,)

    async def test_a_list_shows_what_its_reader_may_see(self, store: Store) -> None:
        await tell(store, "a", user_id="u1")
        await tell(store, "b", user_id="u2")
        await tell(store, "c", user_id=None, chat_id="7", at=T0 + 1)
        await tell(store, "d", user_id=None, chat_id="8")
        scope = Scope(source="telegram", user_id="u1", rooms=frozenset({Room("telegram", "7")}))
        assert [row.id for row in await store.list(Page(), scope)] == [birth("c").id, birth("a").id]
        assert await store.list(Page(), Scope()) == ()

    async def test_the_limit_counts_what_the_reader_may_see(self, store: Store) -> None:
        await tell(store, "a", user_id="u1")
        for n in range(3):
            await tell(store, f"s{n}", user_id="u2", at=T0 + HOUR)
        (row,) = await store.list(Page(limit=1), Scope(source="telegram", user_id="u1"))
        assert row.id == birth("a").id

    async def test_only_who_sees_a_conversation_reads_or_archives_it(self, store: Store) -> None:
        session = await tell(store, "a", user_id="u1")
        stranger = Scope(source="telegram", user_id="u2")
        with pytest.raises(SessionNotFound):
            await store.transcript(session.conversation, stranger)
        with pytest.raises(SessionNotFound):
            await store.archive(session.conversation, stranger, archived=True)
        assert not (await store.tip(session.conversation)).archived


async def _names(store: Store, **page: Any) -> list[str]:
    rows = await store.list(Page(**page), OWNER)
    return [row.id.rpartition("_")[2] for row in rows]


def _split(child: str) -> Split:
    return Split(child=birth(child).id, head=(), summary=summary("in short"), tail=(), at=T0 + HOUR)
