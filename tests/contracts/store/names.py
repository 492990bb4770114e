"""Finding a conversation by what people type, and naming it."""

import asyncio

import pytest

from contracts.store.facts import HOUR, MINUTE, T0, begin, birth, key_of, summary, tell, user, write
from hermes.errors import AmbiguousSession, SessionNotFound, TitleTaken
from hermes.sessions.model import OWNER, Lease, Room, Scope, Session, SessionId, Split
from hermes.sessions.ports import Store

GUEST = Scope(source="telegram", user_id="u1")
STRANGER = Scope(source="telegram", user_id="u2")


class NamesContract:
    """Ids, prefixes, titles, `latest`, and who may see them."""

    async def test_every_name_of_a_conversation_leads_to_its_live_tip(self, store: Store) -> None:
        session, lease = await begin(store, "a1", title="garden")
        second = await _next(store, lease, session, "b2")
        third = await _next(store, lease, second, "c3")
        names = [session.id, second.id, third.id, "garden", "garden #2", "garden #3", session.id[:-1], third.id[:-1]]
        for name in names:
            assert (await store.resolve(name, OWNER)).id == third.id

    async def test_a_prefix_that_fits_several_segments_of_one_conversation_is_unique(self, store: Store) -> None:
        session, lease = await begin(store, "a1")
        child = await _next(store, lease, session, "a2")
        assert (await store.resolve("20270115_080000_a", OWNER)).id == child.id

    async def test_a_prefix_that_fits_several_conversations_shows_them(self, store: Store) -> None:
        one = await tell(store, "a1")
        two = await tell(store, "a2")
        await tell(store, "b1")
        with pytest.raises(AmbiguousSession) as ambiguous:
            await store.resolve("20270115_080000_a", OWNER)
        assert set(ambiguous.value.candidates) == {one.id, two.id}

    async def test_a_whole_id_is_never_ambiguous(self, store: Store) -> None:
        short = await tell(store, "a")
        await tell(store, "ab")
        assert (await store.resolve(short.id, OWNER)).id == short.id

    @pytest.mark.parametrize("pattern", ["%", "_", "20270115%", "20270115_08000__", "*", "20270115?", "a1"])
    async def test_a_prefix_is_no_pattern(self, store: Store, pattern: str) -> None:
        await tell(store, "a1")
        with pytest.raises(SessionNotFound):
            await store.resolve(pattern, OWNER)

    async def test_an_exact_title_goes_before_a_prefix(self, store: Store) -> None:
        await tell(store, "a", id="20270115_080000_abc")
        named = await tell(store, "b", title="20270115")
        assert (await store.resolve("20270115", OWNER)).id == named.id

    async def test_a_title_is_matched_whole(self, store: Store) -> None:
        await tell(store, "a", title="garden plan")
        with pytest.raises(SessionNotFound):
            await store.resolve("garden", OWNER)

    async def test_latest_is_the_conversation_that_was_last_active(self, store: Store) -> None:
        await tell(store, "a", at=T0)
        newest = await tell(store, "b", at=T0 + HOUR, source="slack")
        await tell(store, "c", at=T0 + MINUTE)
        assert (await store.resolve("latest", OWNER)).id == newest.id

    async def test_latest_of_a_source_is_the_tip_that_was_last_active_there(self, store: Store) -> None:
        await tell(store, "a", at=T0)
        newest = await tell(store, "b", at=T0 + MINUTE)
        await tell(store, "c", at=T0 + HOUR, source="slack")
        assert (await store.latest("telegram", OWNER)).id == newest.id
        with pytest.raises(SessionNotFound):
            await store.latest("discord", OWNER)

    async def test_nothing_is_found_in_an_empty_store(self, store: Store) -> None:
        for reference in ("latest", "garden", "20270115", ""):
            with pytest.raises(SessionNotFound):
                await store.resolve(reference, OWNER)

    async def test_a_session_out_of_scope_answers_to_none_of_its_names(self, store: Store) -> None:
        session = await tell(store, "a1", title="garden", user_id="u1")
        for reference in (session.id, "garden", session.id[:-1], "latest"):
            assert (await store.resolve(reference, GUEST)).id == session.id
            with pytest.raises(SessionNotFound):
                await store.resolve(reference, STRANGER)
        with pytest.raises(SessionNotFound):
            await store.get(session.id, STRANGER)
        with pytest.raises(SessionNotFound):
            await store.latest("telegram", STRANGER)

    async def test_sessions_out_of_scope_make_no_prefix_ambiguous(self, store: Store) -> None:
        mine = await tell(store, "a1", user_id="u1")
        await tell(store, "a2", user_id="u2")
        assert (await store.resolve("20270115_080000_a", GUEST)).id == mine.id

    @pytest.mark.parametrize(
        "scope",
        [
            Scope(source="slack", user_id="u1"),
            Scope(source="telegram"),
            Scope(source="telegram", rooms=frozenset({Room("telegram", "7")})),
            Scope(),
        ],
    )
    async def test_a_persons_session_is_seen_by_that_person_alone(self, store: Store, scope: Scope) -> None:
        session = await tell(store, "a", user_id="u1", chat_id="7")
        with pytest.raises(SessionNotFound):
            await store.get(session.id, scope)

    @pytest.mark.parametrize(
        ("room", "seen"),
        [
            (Room("telegram", "7", "3"), True),
            (Room("telegram", "7"), False),
            (Room("telegram", "7", "4"), False),
            (Room("telegram", "8", "3"), False),
            (Room("slack", "7", "3"), False),
        ],
    )
    async def test_a_shared_session_is_seen_in_its_own_room_alone(self, store: Store, room: Room, seen: bool) -> None:
        session = await tell(store, "a", user_id=None, chat_id="7", thread_id="3")
        scope = Scope(source="telegram", user_id="u9", rooms=frozenset({room}))
        if seen:
            assert (await store.get(session.id, scope)).id == session.id
        else:
            with pytest.raises(SessionNotFound):
                await store.get(session.id, scope)

    async def test_a_title_goes_to_the_tip_whichever_segment_was_meant(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        child = await _next(store, lease, session, "b")
        renamed = await store.rename(session.id, "garden", by_person=True)
        assert (renamed.id, renamed.title, renamed.title_by_person) == (child.id, "garden", True)
        assert await store.tip(session.conversation) == renamed

    async def test_an_unknown_session_cannot_be_named(self, store: Store) -> None:
        with pytest.raises(SessionNotFound):
            await store.rename(SessionId("20270115_080000_nobody"), "garden", by_person=True)

    async def test_a_title_can_be_taken_away(self, store: Store) -> None:
        session = await tell(store, "a", title="garden")
        assert (await store.rename(session.id, None, by_person=True)).title is None
        with pytest.raises(SessionNotFound):
            await store.resolve("garden", OWNER)

    async def test_a_person_is_told_who_has_the_title(self, store: Store) -> None:
        holder = await tell(store, "a", title="garden")
        other = await tell(store, "b", title="kitchen")
        with pytest.raises(TitleTaken) as taken:
            await store.rename(other.id, "garden", by_person=True)
        assert (taken.value.title, taken.value.holder) == ("garden", holder.id)
        assert (await store.tip(other.conversation)).title == "kitchen"

    async def test_a_title_that_an_older_segment_holds_is_taken_too(self, store: Store) -> None:
        session, lease = await begin(store, "a", title="garden")
        await _next(store, lease, session, "b")
        other = await tell(store, "c")
        with pytest.raises(TitleTaken):
            await store.rename(other.id, "garden", by_person=True)

    async def test_a_conversation_may_have_its_own_name_back(self, store: Store) -> None:
        session, lease = await begin(store, "a", title="garden")
        child = await _next(store, lease, session, "b")
        await store.rename(child.id, "garden", by_person=True)
        await store.rename(child.id, "garden", by_person=True)
        assert (await store.resolve("garden", OWNER)).id == child.id

    async def test_made_titles_that_clash_are_numbered(self, store: Store) -> None:
        sessions = [await tell(store, f"s{n}") for n in range(20)]
        await asyncio.gather(*(store.rename(session.id, "Hello", by_person=False) for session in sessions))
        titles = {(await store.tip(session.conversation)).title for session in sessions}
        assert titles == {"Hello", *(f"Hello #{n}" for n in range(2, 21))}

    async def test_a_made_title_never_replaces_a_persons(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await store.rename(session.id, "mine", by_person=True)
        assert (await store.rename(session.id, "made", by_person=False)).title == "mine"
        child = await _next(store, lease, session, "b")
        assert (await store.rename(child.id, "made", by_person=False)).title == "mine #2"

    async def test_a_title_given_at_birth_is_a_persons(self, store: Store) -> None:
        session = await store.open(key_of("a"), birth("a", title="mine"))
        assert (await store.rename(session.id, "made", by_person=False)).title == "mine"

    async def test_a_person_may_replace_a_made_title(self, store: Store) -> None:
        session = await tell(store, "a")
        made = await store.rename(session.id, "made", by_person=False)
        assert (made.title, made.title_by_person) == ("made", False)
        assert (await store.rename(session.id, "mine", by_person=True)).title == "mine"
        other = await tell(store, "b")
        assert (await store.rename(other.id, "made", by_person=True)).title == "made"


async def _next(store: Store, lease: Lease, session: Session, child: str) -> Session:
    """One more segment, with a word in it."""
    split = Split(child=birth(child).id, head=(), summary=summary("in short"), tail=(), at=T0)
    segment = await store.split(lease, session.id, split)
    await write(store, lease, segment, user(f"word in {child}"))
    return segment
