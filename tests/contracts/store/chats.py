"""A chat that goes on under another id takes everything along; adapters find their places again."""

import json

from contracts.store.facts import NODE, T0, arrival, begin, birth, duty, user, write
from hermes.sessions.model import Arrival, Birth, Move, NewDelivery, Place, SessionKey, TurnId
from hermes.sessions.ports import Store


def place_of(chat: str, user_id: str | None = None) -> Place:
    """What routing would make of it: enough of a key, and an origin."""
    key = f"agent:main:telegram:group:{chat}" + (f":{user_id}" if user_id else "")
    return Place(key=SessionKey(key), origin=json.dumps({"chat_id": chat, "user_id": user_id}))


def moving(chat: str, to: str) -> Move:
    def follow(origin: str) -> Place | None:
        facts = json.loads(origin)
        return place_of(to, facts["user_id"]) if facts.get("chat_id") == chat else None

    return Move(platform="telegram", chat_id=chat, to=to, at=T0, follow=follow)


class ChatsContract:
    """The `Chats` port."""

    async def test_conversations_are_found_under_the_new_id_by_each_of_its_people(self, store: Store) -> None:
        for person in ("u1", "u2"):
            await store.open(place_of("-7", person).key, _birth("-7", person))
        await store.open(place_of("-77", "u1").key, _birth("-77", "u1"))
        await store.chats.move(moving("-7", "-1007"))
        for person in ("u1", "u2"):
            found = await store.find(place_of("-1007", person).key)
            assert found is not None
            assert (found.id, found.chat_id) == (_birth("-7", person).id, "-1007")
            assert await store.find(place_of("-7", person).key) is None
        other = await store.find(place_of("-77", "u1").key)
        assert other is not None
        assert other.chat_id == "-77"
        assert {row.origin for row in await store.routes()} == {
            place_of("-1007", "u1").origin,
            place_of("-1007", "u2").origin,
            place_of("-77", "u1").origin,
        }

    async def test_the_long_conversation_wins_over_one_that_began_in_between(self, store: Store) -> None:
        old = await store.open(place_of("-7").key, _birth("-7"))
        new = await store.open(place_of("-1007").key, _birth("-1007"))
        await store.chats.move(moving("-7", "-1007"))
        found = await store.find(place_of("-1007").key)
        assert found is not None
        assert found.id == old.id
        assert (await store.tip(new.conversation)).id == new.id

    async def test_what_is_owed_goes_to_the_new_id_and_refers_to_no_old_message(self, store: Store) -> None:
        origin = place_of("-7").origin
        await store.outbox.add([_duty("d1", "-7", reply_to="12"), duty("d2", chat="-77")])
        await store.chats.move(moving("-7", "-1007"))
        first, second = await store.outbox.due(["telegram"], node=NODE, now=T0)
        assert (first.key, first.chat_id, first.reply_to) == ("d1", "-1007", None)
        assert first.origin == place_of("-1007").origin != origin
        assert (second.key, second.chat_id) == ("d2", "-77")

    async def test_what_waits_is_found_under_the_new_key_and_known_under_the_old_id(self, store: Store) -> None:
        await store.inbox.claim(_event("m:1", "-7", "u1"))
        await store.inbox.claim(_event("m:2", "-7", "u2"))
        await store.inbox.claim(_event("m:1", "-77", "u1"))
        keys = await store.chats.move(moving("-7", "-1007"))
        assert keys == (place_of("-1007", "u1").key, place_of("-1007", "u2").key)
        (waiting,) = await store.inbox.waiting(keys[0])
        assert (waiting.event_id, waiting.origin) == ("m:1", place_of("-1007", "u1").origin)
        assert not (await store.inbox.claim(_event("m:1", "-7", "u1"))).fresh
        assert (await store.inbox.claim(_event("m:1", "-1007", "u1"))).fresh

    async def test_a_turn_that_was_cut_off_is_resumed_under_the_new_key(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        event = (await store.inbox.claim(_event("m:1", "-7", "u1"))).row
        await write(store, lease, session, user("hi"), turn="t1", key=event.key, runs=(event.id,))
        (key,) = await store.chats.move(moving("-7", "-1007"))
        found = await store.inbox.unfinished(key)
        assert found is not None
        assert (found[0].id, found[0].key) == (TurnId("t1"), key)

    async def test_an_id_may_hold_any_character(self, store: Store) -> None:
        await store.open(place_of('a"b\\').key, _birth('a"b\\'))
        await store.chats.move(moving('a"b\\', "-1007"))
        assert await store.find(place_of("-1007").key) is not None

    async def test_moving_twice_changes_nothing_more(self, store: Store) -> None:
        await store.open(place_of("-7").key, _birth("-7"))
        await store.chats.move(moving("-7", "-1007"))
        before = await store.routes()
        assert await store.chats.move(moving("-7", "-1007")) == ()
        assert await store.routes() == before

    async def test_aliases_lead_to_the_newest_id(self, store: Store) -> None:
        await store.chats.move(moving("1", "2"))
        await store.chats.move(moving("2", "3"))
        assert await store.chats.aliases() == (("telegram", "1", "3"), ("telegram", "2", "3"))


class BookmarksContract:
    """The `Bookmarks` port."""

    async def test_a_bookmark_is_found_as_it_was_kept_last(self, store: Store) -> None:
        assert await store.bookmarks.find("telegram", "offset:1") is None
        await store.bookmarks.keep("telegram", "offset:1", "10", at=T0)
        await store.bookmarks.keep("telegram", "offset:1", "11", at=T0 + 1)
        assert await store.bookmarks.find("telegram", "offset:1") == ("11", T0 + 1)

    async def test_bookmarks_are_each_platforms_own(self, store: Store) -> None:
        await store.bookmarks.keep("telegram", "offset", "10", at=T0)
        await store.bookmarks.keep("telegram@work", "offset", "20", at=T0)
        assert await store.bookmarks.find("telegram", "offset") == ("10", T0)
        assert await store.bookmarks.find("telegram", "other") is None


def _birth(chat: str, person: str | None = None) -> Birth:
    return Birth(
        id=birth(f"{chat}{person}").id,
        source="telegram",
        at=T0,
        origin=place_of(chat, person).origin,
        user_id=person,
        chat_id=chat,
    )


def _duty(key: str, chat: str, *, reply_to: str) -> NewDelivery:
    return NewDelivery(
        key=key,
        platform="telegram",
        chat_id=chat,
        origin=place_of(chat).origin,
        markdown="words",
        at=T0,
        reply_to=reply_to,
    )


def _event(event: str, chat: str, person: str) -> Arrival:
    place = place_of(chat, person)
    template = arrival(event, chat=chat)
    return Arrival(
        platform=template.platform,
        chat_id=chat,
        event_id=event,
        key=place.key,
        origin=place.origin,
        payload=template.payload,
        at=T0,
    )
