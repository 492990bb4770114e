"""Finding what was said. How a query's syntax is read is each store's own matter; here words are words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import (
    HOUR,
    MINUTE,
    T0,
    assistant,
    begin,
    birth,
    random_histories,
    summary,
    tell,
    texts,
    tool,
    user,
    write,
)
from hermes.errors import SessionNotFound
from hermes.sessions.model import OWNER, Found, Order, Query, Role, Scope, SessionId, Split
from hermes.sessions.ports import Store

STRANGER = Scope(source="telegram", user_id="u2")


class SearchContract:
    """The `Search` port."""

    async def test_a_word_is_found_whatever_its_case(self, store: Store) -> None:
        session = await tell(store, "a", "the Lantern by the door")
        await tell(store, "b", "nothing of the kind")
        (hit,) = (await _find(store, "lantern")).hits
        assert hit.session.id == session.id
        assert "Lantern" in hit.snippet

    async def test_all_words_have_to_be_there(self, store: Store) -> None:
        both = await tell(store, "a", "a lantern in the orchard")
        await tell(store, "b", "a lantern in the cellar")
        assert _sessions(await _find(store, "orchard lantern")) == [both.id]

    async def test_a_conversation_is_one_hit_with_its_matching_words(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (first,) = await write(store, lease, session, user("lantern"))
        child = await store.split(lease, session.id, _split("b"))
        (second,) = await write(store, lease, child, user("lantern"))
        (hit,) = (await _find(store, "lantern")).hits
        assert hit.session.conversation == session.conversation
        assert hit.window.anchor in {first.id, second.id}

    async def test_a_hit_shows_what_was_said_around_it_and_at_both_ends(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        words = [f"word{n}" for n in range(20)]
        words[10] = "lantern"
        rows = await write(store, lease, session, *map(user, words))
        (hit,) = (await _find(store, "lantern", window=2, bookends=3)).hits
        assert hit.window.anchor == rows[10].id
        assert texts(hit.window.messages) == words[8:13]
        assert (hit.window.before, hit.window.after) == (2, 2)
        assert texts(hit.bookend_start) == words[:3]
        assert texts(hit.bookend_end) == words[-3:]

    async def test_fewer_messages_than_asked_mean_the_start_or_the_end(self, store: Store) -> None:
        await tell(store, "a", "one", "lantern", "three", "four")
        (hit,) = (await _find(store, "lantern", window=5)).hits
        assert (hit.window.before, hit.window.after) == (1, 2)

    async def test_tool_output_is_searched_when_asked_for(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("look"), tool("lantern in the log"))
        assert (await _find(store, "lantern")).hits == ()
        assert _sessions(await _find(store, "lantern", roles=frozenset({Role.TOOL}))) == [session.id]

    async def test_a_search_can_be_for_what_one_side_said(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("lantern"), assistant("orchard"))
        only_user = frozenset({Role.USER})
        assert _sessions(await _find(store, "lantern", roles=only_user)) == [session.id]
        assert (await _find(store, "orchard", roles=only_user)).hits == ()

    async def test_summaries_and_undone_rows_are_not_found(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (row,) = await write(store, lease, session, user("orchard"))
        await store.mark_undone(lease, session.id, row.id, by=row.id + 1)
        await store.split(lease, session.id, _split("b", "lantern"))
        assert (await _find(store, "orchard")).hits == ()
        assert (await _find(store, "lantern")).hits == ()

    async def test_deleted_words_are_not_found(self, store: Store) -> None:
        session = await tell(store, "a", "lantern")
        await store.delete(session.conversation, OWNER, now=T0)
        assert (await _find(store, "lantern")).hits == ()

    async def test_an_index_that_refused_nothing_needs_no_mending(self, store: Store) -> None:
        await tell(store, "a", "lantern")
        assert await store.mend_index() == 0

    async def test_hits_can_be_sorted_by_time_and_are_limited(self, store: Store) -> None:
        for name, at in (("a", T0), ("b", T0 + MINUTE), ("c", T0 + HOUR)):
            await tell(store, name, "lantern", at=at)
        ids = {name: birth(name).id for name in "abc"}
        assert _sessions(await _find(store, "lantern", order=Order.NEWEST)) == [ids["c"], ids["b"], ids["a"]]
        assert _sessions(await _find(store, "lantern", order=Order.OLDEST)) == [ids["a"], ids["b"], ids["c"]]
        assert _sessions(await _find(store, "lantern", order=Order.OLDEST, limit=1)) == [ids["a"]]
        assert len((await _find(store, "lantern", limit=2)).hits) == 2

    async def test_the_asking_conversation_is_left_out_and_said_so(self, store: Store) -> None:
        asking = await tell(store, "a", *["lantern"] * 10)
        other = await tell(store, "b", "lantern")
        found = await _find(store, "lantern", exclude=asking.conversation, limit=1)
        assert _sessions(found) == [other.id]
        assert found.hidden == 1
        assert (await _find(store, "lantern", exclude=other.conversation)).hidden == 1
        assert (await _find(store, "lantern")).hidden == 0

    async def test_a_reader_finds_what_they_may_see(self, store: Store) -> None:
        mine = await tell(store, "a", "lantern", user_id="u1")
        await tell(store, "b", "lantern", user_id="u2")
        found = await store.search.discover(Query(text="lantern"), Scope(source="telegram", user_id="u1"))
        assert _sessions(found) == [mine.id]

    @pytest.mark.parametrize(
        "text",
        [
            *("C++", "it's", "gateway/run.py", "50%", "user@host", "#42", "AND", "a OR", "NOT NOT", "NEAR(", "(x"),
            *('un "quoted', '""', "*", "-x", "^a", "a:b", "_", "%", "", "   ", "\x00", "\ud83d", "日本", "👩‍🚀"),
        ],
    )
    async def test_no_input_raises(self, store: Store, text: str) -> None:
        await tell(store, "a", "lantern")
        assert (await _find(store, text)).hidden == 0

    @random_histories
    @given(text=st.text(max_size=20))
    async def test_no_text_at_all_raises(self, store: Store, text: str) -> None:
        assert (await _find(store, text)).hits == ()

    async def test_scrolling_shows_the_words_around_an_anchor(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        rows = await write(store, lease, session, *(user(f"word{n}") for n in range(9)))
        window = await store.search.scroll(session.id, rows[4].id, 2, OWNER)
        assert (window.anchor, window.session.conversation) == (rows[4].id, session.conversation)
        assert [row.id for row in window.messages] == [row.id for row in rows[2:7]]
        assert (window.before, window.after) == (2, 2)

    async def test_scrolling_goes_on_from_the_edges_of_a_window(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        rows = await write(store, lease, session, *(user(f"word{n}") for n in range(9)))
        window = await store.search.scroll(session.id, rows[4].id, 2, OWNER)
        later = await store.search.scroll(session.id, window.messages[-1].id, 2, OWNER)
        earlier = await store.search.scroll(session.id, window.messages[0].id, 2, OWNER)
        assert texts(later.messages) == ["word4", "word5", "word6", "word7", "word8"]
        assert (earlier.before, earlier.after) == (2, 2)
        start = await store.search.scroll(session.id, rows[0].id, 2, OWNER)
        assert (start.before, start.after) == (0, 2)

    async def test_scrolling_reaches_over_segments(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (one,) = await write(store, lease, session, user("one"))
        child = await store.split(lease, session.id, _split("b"))
        await write(store, lease, child, user("two"))
        for segment in (session, child):
            window = await store.search.scroll(segment.id, one.id, 5, OWNER)
            assert texts(window.messages) == ["one", "two"]

    async def test_scrolling_outside_ones_scope_finds_no_session(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (row,) = await write(store, lease, session, user("one"))
        with pytest.raises(SessionNotFound):
            await store.search.scroll(session.id, row.id, 5, STRANGER)
        with pytest.raises(SessionNotFound):
            await store.search.scroll(SessionId("20270115_080000_nobody"), row.id, 5, OWNER)

    async def test_an_anchor_in_a_strangers_conversation_shows_none_of_it(self, store: Store) -> None:
        theirs, lease = await begin(store, "a", user_id="u1")
        (secret,) = await write(store, lease, theirs, user("secret"))
        own = await tell(store, "b", "mine", user_id="u2")
        with pytest.raises(SessionNotFound):
            await store.search.scroll(own.id, secret.id, 5, STRANGER)


async def _find(store: Store, text: str, **facts: Any) -> Found:
    return await store.search.discover(Query(text=text, **facts), OWNER)


def _sessions(found: Found) -> list[SessionId]:
    return [hit.session.id for hit in found.hits]


def _split(child: str, short: str = "in short") -> Split:
    return Split(child=birth(child).id, head=(), summary=summary(short), tail=(), at=T0)
