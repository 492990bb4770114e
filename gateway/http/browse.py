"""The sessions as JSON, for the browser page and for scripts of the owner."""

import re
from collections.abc import Mapping, Sequence

from aiohttp import web

from hermes.adapters.base import Guard, Route
from hermes.adapters.http import Problem, member, read_json
from hermes.clock import Clock
from hermes.sessions import titles
from hermes.sessions.model import OWNER, Hit, Message, Page, Query, Session
from hermes.sessions.ports import Store

MOST_SESSIONS = 200
MOST_MESSAGES = 500
MOST_HITS = 50

_WORDS: Mapping[str, bool] = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


class Browser:
    """Reads and tidies the owner's sessions. A session is named by id, unique prefix or title; its tip answers."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def routes(self) -> Sequence[Route]:
        """All addresses below `/api`, for the owner alone."""
        table = (
            ("GET", "/api/sessions", self._list),
            ("GET", "/api/sessions/{id}", self._show),
            ("GET", "/api/sessions/{id}/messages", self._messages),
            ("GET", "/api/search", self._search),
            ("POST", "/api/sessions/{id}/rename", self._rename),
            ("POST", "/api/sessions/{id}/archive", self._archive),
            ("POST", "/api/sessions/{id}/unarchive", self._unarchive),
            ("DELETE", "/api/sessions/{id}", self._delete),
        )
        return tuple(Route(method=m, path=path, handler=handler, guard=Guard.OWNER) for m, path, handler in table)

    async def _list(self, request: web.Request) -> web.Response:
        limit = _whole_number(request, "limit", default=20, most=MOST_SESSIONS)
        page = Page(
            limit=limit + 1,
            before=_time(request, "before"),
            source=request.query.get("source") or None,
            include_archived=_yes(request, "archived"),
        )
        found = await self._store.list(page, OWNER)
        return web.json_response(
            {"sessions": [session_json(session) for session in found[:limit]], "more": len(found) > limit}
        )

    async def _show(self, request: web.Request) -> web.Response:
        return _one(await self._named(request))

    async def _messages(self, request: web.Request) -> web.Response:
        limit = _whole_number(request, "limit", default=100, most=MOST_MESSAGES)
        after = _whole_number(request, "after", default=0, least=0)
        session = await self._named(request)
        rows = await self._store.transcript(session.conversation, OWNER, after=after, limit=limit + 1)
        return web.json_response(
            {
                "session": session_json(session),
                "messages": [message_json(row) for row in rows[:limit]],
                "more": len(rows) > limit,
            }
        )

    async def _search(self, request: web.Request) -> web.Response:
        limit = _whole_number(request, "limit", default=10, most=MOST_HITS)
        found = await self._store.search.discover(Query(text=request.query.get("q", ""), limit=limit), OWNER)
        return web.json_response({"hits": [hit_json(hit) for hit in found.hits], "partial": found.partial})

    async def _rename(self, request: web.Request) -> web.Response:
        title = titles.clean(member(await read_json(request), "title", str, ""))
        session = await self._named(request)
        return _one(await self._store.rename(session.id, title, by_person=True))

    async def _archive(self, request: web.Request) -> web.Response:
        return await self._set_archived(request, archived=True)

    async def _unarchive(self, request: web.Request) -> web.Response:
        return await self._set_archived(request, archived=False)

    async def _set_archived(self, request: web.Request, *, archived: bool) -> web.Response:
        session = await self._named(request)
        await self._store.archive(session.conversation, OWNER, archived=archived)
        return _one(await self._store.get(session.id, OWNER))

    async def _delete(self, request: web.Request) -> web.Response:
        session = await self._named(request)
        await self._store.delete(session.conversation, OWNER, now=self._clock.now())
        return web.json_response({"id": session.id, "deleted": True})

    async def _named(self, request: web.Request) -> Session:
        return await self._store.resolve(request.match_info["id"], OWNER)


def session_json(session: Session) -> dict[str, object]:
    """What lists and headings show of a session."""
    return {
        "id": session.id,
        "conversation": session.conversation,
        "title": session.title,
        "preview": session.preview,
        "source": session.source,
        "key": session.key,
        "chat_id": session.chat_id,
        "user_id": session.user_id,
        "model": session.model,
        "started_at": session.started_at,
        "last_active": session.last_active,
        "ended_at": session.ended_at,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "archived": session.archived,
    }


def message_json(message: Message) -> dict[str, object]:
    """One row of a transcript."""
    return {
        "id": message.id,
        "session_id": message.session_id,
        "role": message.role.value,
        "kind": message.kind.value,
        "content": message.content,
        "at": message.at,
        "sender_name": message.sender.name if message.sender else None,
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls],
        "tool_name": message.tool_name,
        "tool_call_id": message.tool_call_id,
    }


def hit_json(hit: Hit) -> dict[str, object]:
    """One conversation that matches a search."""
    return {"session": session_json(hit.session), "snippet": hit.snippet, "match_message_id": hit.window.anchor}


def _one(session: Session) -> web.Response:
    return web.json_response({"session": session_json(session)})


def _whole_number(request: web.Request, name: str, *, default: int, least: int = 1, most: int = 2**53) -> int:
    """A parameter of the query, at most `most`. Raises Problem 400."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 16) or int(text) < least:
        raise Problem(400, f"`{name}` must be a whole number from {least} on.", code="invalid_parameter", param=name)
    return min(int(text), most)


def _time(request: web.Request, name: str) -> float | None:
    text = request.query.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"\d{1,12}(\.\d+)?", text, re.ASCII):
        raise Problem(400, f"`{name}` must be seconds since the epoch.", code="invalid_parameter", param=name)
    return float(text)


def _yes(request: web.Request, name: str) -> bool:
    word = request.query.get(name, "").lower()
    if word not in _WORDS:
        raise Problem(400, f"`{name}` must be true or false.", code="invalid_parameter", param=name)
    return _WORDS[word]
