"""Where a key leads."""

import pytest

from contracts.store.facts import HOUR, MINUTE, T0, begin, birth, key_of, take, tell, write
from contracts.store.facts import user as said
from hermes.errors import LeaseLost, SessionNotFound, TitleTaken
from hermes.sessions.model import OWNER, ConversationId, Link, Room, RouteRow, Scope, Split
from hermes.sessions.ports import Store

KEY = key_of("a")


class RoutesContract:
    """The `Routes` port."""

    async def test_a_new_key_gets_a_session_from_its_birth(self, store: Store) -> None:
        session = await store.open(
            KEY,
            birth("a", user_id="u7", chat_id="7", chat_kind="group", thread_id="3", cwd="/src", git_branch="main"),
        )
        assert session.id == birth("a").id
        assert session.conversation == ConversationId(session.id)
        assert (session.source, session.user_id, session.key) == ("telegram", "u7", KEY)
        assert (session.chat_id, session.chat_kind, session.thread_id) == ("7", "group", "3")
        assert (session.cwd, session.git_branch) == ("/src", "main")
        assert (session.started_at, session.last_active, session.ended_at) == (T0, T0, None)
        assert (session.message_count, session.preview, session.title) == (0, "", None)
        assert (session.parent, session.link) == (None, None)

    async def test_a_known_key_leads_to_the_same_session(self, store: Store) -> None:
        first = await store.open(KEY, birth("a"))
        again = await store.open(KEY, birth("b", at=T0 + HOUR))
        assert again == first
        with pytest.raises(SessionNotFound):
            await store.get(birth("b").id, Scope(owner=True))

    async def test_looking_behind_a_key_makes_nothing(self, store: Store) -> None:
        assert await store.find(KEY) is None
        session = await store.open(KEY, birth("a"))
        assert await store.find(KEY) == session
        assert await store.find(key_of("b")) is None

    async def test_opening_again_records_the_newest_origin(self, store: Store) -> None:
        session = await store.open(KEY, birth("a"))
        assert await store.key_of(session.conversation) == (KEY, birth("a").origin)
        await store.open(KEY, birth("b", at=T0 + HOUR))
        assert await store.key_of(session.conversation) == (KEY, birth("b").origin)

    async def test_a_title_at_birth_is_kept_when_free_and_numbered_when_not(self, store: Store) -> None:
        first = await store.open(key_of("a"), birth("a", title="garden"))
        second = await store.open(key_of("b"), birth("b", title="garden"))
        assert (first.title, second.title) == ("garden", "garden #2")

    async def test_an_unknown_conversation_has_no_key(self, store: Store) -> None:
        assert await store.key_of(ConversationId("20270115_080000_nobody")) is None

    async def test_a_bound_key_leads_to_the_conversation(self, store: Store) -> None:
        session = await store.open(KEY, birth("a"))
        bound = await store.bind(key_of("phone"), session.conversation, origin='{"chat": "phone"}', at=T0 + MINUTE)
        assert bound.id == session.id
        assert (await store.open(key_of("phone"), birth("b", at=T0 + HOUR))).id == session.id

    async def test_the_key_of_a_conversation_is_the_one_that_last_led_to_it(self, store: Store) -> None:
        session = await store.open(KEY, birth("a"))
        await store.bind(key_of("phone"), session.conversation, origin='{"chat": "phone"}', at=T0 + MINUTE)
        assert await store.key_of(session.conversation) == (key_of("phone"), '{"chat": "phone"}')

    async def test_a_bound_key_leaves_where_it_led_before(self, store: Store) -> None:
        old = await store.open(KEY, birth("a"))
        other = await store.open(key_of("b"), birth("b"))
        await store.bind(KEY, other.conversation, origin="{}", at=T0 + MINUTE)
        assert (await store.open(KEY, birth("c", at=T0 + HOUR))).id == other.id
        assert await store.key_of(old.conversation) is None

    async def test_binding_to_an_unknown_conversation_changes_nothing(self, store: Store) -> None:
        session = await store.open(KEY, birth("a"))
        with pytest.raises(SessionNotFound):
            await store.bind(KEY, ConversationId("20270115_080000_nobody"), origin="{}", at=T0)
        assert (await store.open(KEY, birth("b"))).id == session.id

    async def test_the_index_shows_where_each_key_leads_now(self, store: Store) -> None:
        assert await store.routes() == ()
        session, lease = await begin(store, "b")
        other = await store.open(KEY, birth("a", at=T0 + MINUTE))
        split = Split(child=birth("c").id, head=(), summary=None, tail=(), at=T0 + HOUR)
        child = await store.split(lease, session.id, split)
        assert await store.routes() == (
            RouteRow(key=KEY, session=other.id, origin=birth("a").origin, updated_at=T0 + MINUTE),
            RouteRow(key=key_of("b"), session=child.id, origin=birth("b").origin, updated_at=T0),
        )

    async def test_starting_over_ends_the_old_conversation_and_leads_to_a_new_one(self, store: Store) -> None:
        old, lease = await begin(store, "a")
        new = await store.start_over(lease, KEY, birth("b", at=T0 + HOUR), reason="idle")
        ended = await store.get(old.id, Scope(owner=True))
        assert (ended.ended_at, ended.end_reason) == (T0 + HOUR, "idle")
        assert (new.parent, new.link) == (old.id, Link.RESET)
        assert new.conversation == ConversationId(new.id)
        assert (await store.open(KEY, birth("c", at=T0 + HOUR))).id == new.id

    async def test_starting_over_leaves_the_old_words_where_they_are(self, store: Store) -> None:
        old, lease = await begin(store, "a", title="garden")
        await write(store, lease, old, said("roses"))
        new = await store.start_over(lease, KEY, birth("b", title="kitchen"), reason="new")
        assert new.title == "kitchen"
        assert await store.history(new.id) == ()
        assert [row.content for row in await store.history(old.id)] == ["roses"]
        assert (await store.resolve("garden", Scope(owner=True))).id == old.id

    async def test_starting_over_with_a_taken_title_changes_nothing(self, store: Store) -> None:
        await store.open(key_of("b"), birth("b", title="garden"))
        old, lease = await begin(store, "a")
        with pytest.raises(TitleTaken) as refused:
            await store.start_over(lease, KEY, birth("c", title="garden"), reason="new")
        assert refused.value.holder == birth("b").id
        assert (await store.open(KEY, birth("d"))).id == old.id
        assert (await store.tip(old.conversation)).ended_at is None

    async def test_starting_over_with_a_lost_lease_changes_nothing(self, store: Store) -> None:
        old, lease = await begin(store, "a")
        await store.leases.release(lease)
        await take(store, old.conversation, owner="another")
        with pytest.raises(LeaseLost):
            await store.start_over(lease, KEY, birth("b"), reason="new")
        assert (await store.open(KEY, birth("c"))).id == old.id
        assert (await store.tip(old.conversation)).ended_at is None

    async def test_a_conversation_that_had_ended_is_live_again_when_a_key_leads_to_it(self, store: Store) -> None:
        old, lease = await begin(store, "a")
        await store.start_over(lease, KEY, birth("b"), reason="new")
        bound = await store.bind(KEY, old.conversation, origin="{}", at=T0 + MINUTE)
        assert (bound.id, bound.ended_at, bound.end_reason) == (old.id, None, None)

    async def test_sessions_keep_what_scopes_ask_for(self, store: Store) -> None:
        shared = await tell(store, "a", user_id=None, chat_id="7", chat_kind="group", thread_id="3")
        room = Scope(source="telegram", user_id="u9", rooms=frozenset({Room("telegram", "7", "3")}))
        assert (await store.get(shared.id, room)).id == shared.id

    async def test_a_session_that_was_left_is_closed_until_somebody_speaks_in_it(self, store: Store) -> None:
        session = await store.open(key_of("a"), birth("a"))
        await store.end(session.id, reason="cli_close", at=T0 + 1)
        await store.end(session.id, reason="later", at=T0 + 2)
        left = await store.get(session.id, OWNER)
        assert (left.ended_at, left.end_reason) == (T0 + 1, "cli_close")
        assert (await store.open(key_of("a"), birth("b"))).ended_at is None
