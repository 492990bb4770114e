"""The session browser's JSON API over a store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes import VirtualClock
from hermes.gateway.http.browse import MOST_SESSIONS, Browser
from hermes.sessions.memory import MemoryStore
from hermes.sessions.model import (
    Birth,
    ConversationId,
    Kind,
    Lease,
    NewMessage,
    Person,
    Role,
    SessionId,
    SessionKey,
    Step,
    ToolCall,
    TurnId,
)
from hermes.sessions.ports import Store
from worlds.http_house import House, house

T0 = 1_800_000_000.0


@asynccontextmanager
async def browsing(store: MemoryStore) -> AsyncIterator[House]:
    clock = VirtualClock(T0)
    async with house(Browser(store, clock).routes(), clock=clock) as h:
        yield h


def user(text: str) -> NewMessage:
    return NewMessage(role=Role.USER, content=text, at=T0)


def assistant(text: str) -> NewMessage:
    return NewMessage(role=Role.ASSISTANT, content=text, at=T0)


async def take(store: Store, conversation: str) -> Lease:
    """The lease of a turn that runs in Telegram."""
    return await store.leases.take(ConversationId(conversation), owner="me", place="Telegram", now=T0, ttl=60)


async def talk(store: Store, name: str, *messages: NewMessage, at: float = T0, source: str = "telegram") -> str:
    """A finished conversation; gives its id."""
    birth = Birth(id=SessionId(f"20270115_080000_{name}"), source=source, at=at, origin="{}", user_id="u1")
    session = await store.open(SessionKey(f"agent:main:{source}:dm:{name}"), birth)
    lease = await take(store, session.conversation)
    said = messages or (user(f"hello from {name}"), assistant("hi"))
    await store.commit(lease, Step(turn=TurnId(f"turn-{name}"), session=session.id, at=at, messages=said))
    await store.leases.release(lease)
    return session.id


async def ids(h: House, query: str = "") -> list[str]:
    status, body = await h.ask("GET", f"/api/sessions{query}")
    assert status == 200
    return [session["id"] for session in body["sessions"]]


async def code_of(h: House, method: str, path: str, **options: Any) -> tuple[int, str]:
    status, body = await h.ask(method, path, **options)
    return status, body["error"]["code"]


class TestList:
    async def test_shows_what_a_heading_needs(self) -> None:
        store = MemoryStore()
        name = await talk(store, "a")
        async with browsing(store) as h:
            status, body = await h.ask("GET", "/api/sessions")
        assert status == 200
        assert body["more"] is False
        (session,) = body["sessions"]
        assert session == {
            "id": name,
            "conversation": name,
            "title": None,
            "preview": "hello from a",
            "source": "telegram",
            "key": "agent:main:telegram:dm:a",
            "chat_id": None,
            "user_id": "u1",
            "model": None,
            "started_at": T0,
            "last_active": T0,
            "ended_at": None,
            "message_count": 2,
            "tool_call_count": 0,
            "archived": False,
        }

    async def test_pages_from_the_newest_back(self) -> None:
        store = MemoryStore()
        made = [await talk(store, str(n), at=T0 + n) for n in range(5)]
        async with browsing(store) as h:
            status, body = await h.ask("GET", "/api/sessions?limit=3")
            first = [session["id"] for session in body["sessions"]]
            rest = await ids(h, f"?limit=3&before={body['sessions'][-1]['last_active']}")
        assert (status, body["more"]) == (200, True)
        assert first + rest == made[::-1]

    async def test_keeps_to_one_source(self) -> None:
        store = MemoryStore()
        await talk(store, "a")
        mine = await talk(store, "b", source="api-server")
        async with browsing(store) as h:
            assert await ids(h, "?source=api-server") == [mine]

    async def test_a_huge_limit_is_cut_not_refused(self) -> None:
        async with browsing(MemoryStore()) as h:
            assert await ids(h, f"?limit={MOST_SESSIONS * 1000}") == []

    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=-1", "limit=x", "limit=²", "before=nan", "before=x", "archived=maybe"]
    )
    async def test_a_parameter_that_makes_no_sense_is_named(self, query: str) -> None:
        async with browsing(MemoryStore()) as h:
            status, body = await h.ask("GET", f"/api/sessions?{query}")
        assert status == 400
        assert body["error"]["param"] == query.partition("=")[0]


class TestOne:
    @pytest.mark.parametrize("name", ["20270115_080000_a", "20270115_080000", "latest"])
    async def test_is_found_by_id_prefix_or_latest(self, name: str) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            status, body = await h.ask("GET", f"/api/sessions/{name}")
        assert (status, body["session"]["id"]) == (200, made)

    async def test_is_found_by_a_title_with_any_characters(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            status, _ = await h.ask("POST", f"/api/sessions/{made}/rename", json={"title": "50% of a/b?"})
            assert status == 200
            status, body = await h.ask("GET", "/api/sessions/50%25%20of%20a%2Fb%3F")
        assert (status, body["session"]["id"]) == (200, made)

    async def test_several_that_fit_are_a_409_and_none_a_404(self) -> None:
        store = MemoryStore()
        for name in ("a", "b"):
            await talk(store, name)
        async with browsing(store) as h:
            assert await code_of(h, "GET", "/api/sessions/20270115") == (409, "ambiguous_session")
            assert await code_of(h, "GET", "/api/sessions/nowhere") == (404, "session_not_found")
            assert await code_of(h, "GET", "/api/sessions/nowhere/messages") == (404, "session_not_found")


class TestMessages:
    async def test_come_whole_with_calls_and_senders(self) -> None:
        store = MemoryStore()
        call = ToolCall(id="c1", name="terminal", arguments='{"command": "ls"}')
        said = NewMessage(role=Role.USER, content="日本 👩‍🚀", at=T0, sender=Person(id="u1", name="Ada"))
        asked = NewMessage(role=Role.ASSISTANT, kind=Kind.TOOL, content="", at=T0, tool_calls=(call,))
        out = NewMessage(role=Role.TOOL, kind=Kind.TOOL, content="out", at=T0, tool_call_id="c1", tool_name="terminal")
        made = await talk(store, "a", said, asked, out, assistant("done"))
        async with browsing(store) as h:
            status, body = await h.ask("GET", f"/api/sessions/{made}/messages")
        assert (status, body["more"], body["session"]["id"]) == (200, False, made)
        first, second, third, last = body["messages"]
        assert first == {
            "id": first["id"],
            "session_id": made,
            "role": "user",
            "kind": "talk",
            "content": "日本 👩‍🚀",
            "at": T0,
            "sender_name": "Ada",
            "tool_calls": [],
            "tool_name": None,
            "tool_call_id": None,
        }
        assert second["tool_calls"] == [{"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'}]
        assert (third["role"], third["tool_name"], third["tool_call_id"]) == ("tool", "terminal", "c1")
        assert (last["content"], last["sender_name"]) == ("done", None)

    async def test_page_on_after_the_last_one_seen(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a", *(user(str(n)) for n in range(5)))
        seen: list[str] = []
        after, more = 0, True
        async with browsing(store) as h:
            while more:
                _, body = await h.ask("GET", f"/api/sessions/{made}/messages?limit=2&after={after}")
                seen += [message["content"] for message in body["messages"]]
                after, more = body["messages"][-1]["id"], body["more"]
        assert seen == ["0", "1", "2", "3", "4"]


class TestSearch:
    async def test_finds_a_conversation_and_where_in_it(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a", user("where is the pelican"), assistant("at sea"))
        await talk(store, "b")
        async with browsing(store) as h:
            status, body = await h.ask("GET", "/api/search?q=pelican")
            _, page = await h.ask("GET", f"/api/sessions/{made}/messages")
        assert (status, body["partial"]) == (200, False)
        (hit,) = body["hits"]
        assert hit["session"]["id"] == made
        assert "pelican" in hit["snippet"]
        assert hit["match_message_id"] == page["messages"][0]["id"]

    @pytest.mark.parametrize("q", ["", "%22", "AND OR NOT", "%00", "((*", "%F0%9F"])
    async def test_takes_anything_that_a_person_types(self, q: str) -> None:
        async with browsing(MemoryStore()) as h:
            assert (await h.ask("GET", f"/api/search?q={q}"))[0] == 200


class TestChanges:
    async def test_a_title_is_set_on_one_line_and_taken_away(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            _, named = await h.ask("POST", f"/api/sessions/{made}/rename", json={"title": " two\nlines "})
            assert named["session"]["title"] == "two lines"
            _, turned = await h.ask("POST", f"/api/sessions/{made}/rename", json={"title": "in\u202evoice"})
            assert turned["session"]["title"] == "invoice"
            status, _ = await h.ask("POST", f"/api/sessions/{made}/rename", json={"title": "x" * 101})
            assert status == 400
            _, bare = await h.ask("POST", f"/api/sessions/{made}/rename", json={"title": ""})
            assert bare["session"]["title"] is None

    async def test_a_title_of_another_conversation_is_a_409_that_says_whose(self) -> None:
        store = MemoryStore()
        one, two = await talk(store, "a"), await talk(store, "b")
        async with browsing(store) as h:
            await h.ask("POST", f"/api/sessions/{one}/rename", json={"title": "boat"})
            status, body = await h.ask("POST", f"/api/sessions/{two}/rename", json={"title": "boat"})
        assert (status, body["error"]["code"]) == (409, "title_taken")
        assert one in body["error"]["message"]

    async def test_a_title_that_is_no_text_is_a_400(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            assert await code_of(h, "POST", f"/api/sessions/{made}/rename", json={"title": 5}) == (400, "invalid_type")

    async def test_archiving_hides_and_unarchiving_shows_again(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            _, body = await h.ask("POST", f"/api/sessions/{made}/archive")
            assert body["session"]["archived"] is True
            assert await ids(h) == []
            assert await ids(h, "?archived=true") == [made]
            _, body = await h.ask("POST", f"/api/sessions/{made}/unarchive")
            assert body["session"]["archived"] is False
            assert await ids(h) == [made]

    async def test_a_deleted_conversation_is_gone(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        async with browsing(store) as h:
            assert await h.ask("DELETE", f"/api/sessions/{made}") == (200, {"id": made, "deleted": True})
            assert await code_of(h, "GET", f"/api/sessions/{made}") == (404, "session_not_found")

    async def test_a_conversation_with_a_running_turn_is_not_deleted(self) -> None:
        store = MemoryStore()
        made = await talk(store, "a")
        await take(store, made)
        async with browsing(store) as h:
            status, body = await h.ask("DELETE", f"/api/sessions/{made}")
            assert (status, body["error"]["code"]) == (409, "session_busy")
            assert "Telegram" in body["error"]["message"]
            assert await ids(h) == [made]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/sessions"),
        ("GET", "/api/sessions/x"),
        ("GET", "/api/sessions/x/messages"),
        ("GET", "/api/search?q=x"),
        ("POST", "/api/sessions/x/rename"),
        ("POST", "/api/sessions/x/archive"),
        ("POST", "/api/sessions/x/unarchive"),
        ("DELETE", "/api/sessions/x"),
    ],
)
async def test_nobody_but_the_owner_comes_in(method: str, path: str) -> None:
    async with browsing(MemoryStore()) as h:
        assert (await h.call(method, path)).status == 401
