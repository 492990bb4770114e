"""A small gateway around the real web adapter: its routes on a real port, a login, and a JSON API over plain lists."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes import VirtualClock
from hermes.adapters.base import (
    Accepted,
    Event,
    Guard,
    Inbound,
    LooseBookmarks,
    Outbound,
    Progress,
    Route,
    Standing,
    Surroundings,
)
from hermes.adapters.web import PLATFORM
from hermes.adapters.web.adapter import WebChat, WebConfig

SECRET = "correct-horse"
CODE = "one-time-code"
COOKIE = "hermes_login"

Row = dict[str, Any]


@dataclass
class Talk:
    """A stored conversation, as the JSON API shows it."""

    facts: Row
    rows: list[Row] = field(default_factory=list)


@dataclass
class WebWorld:
    """The gateway's part: what was said arrives in `heard`; a test answers with `glimpse` and `answer`."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    talks: dict[str, Talk] = field(default_factory=dict)
    heard: asyncio.Queue[Inbound] = field(default_factory=asyncio.Queue)
    seen: dict[str, Inbound] = field(default_factory=dict)
    refuse: Exception | None = None
    """Raised by `emit` instead of taking the event."""
    used_codes: set[str] = field(default_factory=set)
    port: int = 0
    base: str = "/"
    adapter: WebChat | None = None
    _listening: "asyncio.Future[None] | None" = None
    _ids: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.base}"

    async def emit(self, event: Event, /) -> Accepted:
        assert isinstance(event, Inbound)
        if self.refuse is not None:
            raise self.refuse
        if event.event_id in self.seen:
            return Accepted(standing=Standing.PENDING)
        self.seen[event.event_id] = event
        self.heard.put_nowait(event)
        return Accepted(standing=Standing.FRESH)

    async def next_said(self) -> Inbound:
        async with asyncio.timeout(10):
            return await self.heard.get()

    # --- what the gateway would do ---

    def glimpse(self, question: Inbound, text: str = "", *, tool: str | None = None, done: bool = False) -> None:
        assert self.adapter is not None
        session = self.session_of(question)
        self.adapter.progress(
            Progress(
                origin=question.origin, answers=question.event_id, session=session, text=text, tool=tool, done=done
            )
        )

    async def answer(self, question: Inbound, markdown: str, *, calls: list[Row] | None = None) -> None:
        """Store question and answer, then send the answer, in the order in which the gateway does."""
        session = self.session_of(question)
        self.keep(session, "user", question.text)
        if calls:
            self.keep(session, "assistant", "", tool_calls=calls)
            for call in calls:
                self.keep(session, "tool", "3 hits", kind="tool", tool_name=call["name"], tool_call_id=call["id"])
        self.keep(session, "assistant", markdown)
        await self.say(question, markdown, key=f"answer-{question.event_id}", session=session)

    async def say(self, question: Inbound, markdown: str, *, key: str, session: str | None = None) -> None:
        assert self.adapter is not None
        await self.adapter.send(
            Outbound(key=key, origin=question.origin, markdown=markdown, answers=question.event_id, session=session)
        )

    def session_of(self, question: Inbound) -> str:
        if question.continues:
            return question.continues
        for name, talk in self.talks.items():
            if talk.facts["chat_id"] == question.origin.chat_id:
                return name
        return self.add(chat_id=question.origin.chat_id, preview=question.text[:80])

    # --- what is stored ---

    def add(self, *, chat_id: str = "chat", source: str = "web", at: float | None = None, **facts: Any) -> str:
        self._ids += 1
        name = f"20270115_0800{self._ids:02d}_0000000{self._ids % 10}"
        now = self.clock.now() if at is None else at
        self.talks[name] = Talk(
            {
                "id": name, "conversation": name, "title": None, "preview": "", "source": source, "key": None,
                "chat_id": chat_id, "user_id": "owner", "model": "scripted", "started_at": now, "last_active": now,
                "ended_at": None, "message_count": 0, "archived": False, **facts,
            }
        )  # fmt: skip
        return name

    def keep(self, session: str, role: str, content: str, **fields: Any) -> int:
        self._ids += 1
        talk = self.talks[session]
        talk.facts["message_count"] += 1
        talk.rows.append(
            {
                "id": self._ids, "role": role, "kind": "talk", "content": content, "at": self.clock.now(),
                "sender_name": "Owner" if role == "user" else None, "tool_calls": [], "tool_name": None,
                "tool_call_id": None, **fields,
            }
        )  # fmt: skip
        return self._ids

    # --- HTTP ---

    async def login(self, request: web.Request) -> web.Response:
        offered = await request.json()
        fresh_code = offered.get("code") == CODE and CODE not in self.used_codes
        if not fresh_code and offered.get("secret") != SECRET:
            return web.json_response({"error": {"message": "The secret is wrong."}}, status=401)
        self.used_codes.add(offered.get("code", ""))
        response = web.json_response({})
        response.set_cookie(COOKIE, SECRET, httponly=True, samesite="Strict")
        return response

    async def logout(self, _: web.Request) -> web.Response:
        response = web.json_response({})
        response.del_cookie(COOKIE)
        return response

    async def list_sessions(self, request: web.Request) -> web.Response:
        before = float(request.query.get("before", "inf"))
        hidden = request.query.get("archived") != "true"
        found = [
            talk.facts
            for talk in self.talks.values()
            if talk.facts["last_active"] < before and not (hidden and talk.facts["archived"])
        ]
        found.sort(key=lambda facts: -facts["last_active"])
        limit = int(request.query.get("limit", "20"))
        return web.json_response({"sessions": found[:limit], "more": len(found) > limit})

    async def messages(self, request: web.Request) -> web.Response:
        talk = self.talks.get(request.match_info["id"])
        if talk is None:
            return web.json_response({"error": {"message": "No session answers to this id."}}, status=404)
        after, limit = int(request.query.get("after", "0")), int(request.query.get("limit", "100"))
        rows = [row for row in talk.rows if row["id"] > after]
        return web.json_response({"session": talk.facts, "messages": rows[:limit], "more": len(rows) > limit})

    async def search(self, request: web.Request) -> web.Response:
        wanted = request.query["q"]
        hits = [
            {
                "session": talk.facts,
                "snippet": row["content"].replace(wanted, f">>>{wanted}<<<"),
                "match_message_id": row["id"],
            }
            for talk in self.talks.values()
            for row in talk.rows
            if wanted in row["content"]
        ]
        return web.json_response({"hits": hits, "partial": False})

    async def change(self, request: web.Request) -> web.Response:
        facts = self.talks[request.match_info["id"]].facts
        match request.match_info["change"]:
            case "rename":
                facts["title"] = (await request.json())["title"]
            case change:
                facts["archived"] = change == "archive"
        return web.json_response({})

    async def delete(self, request: web.Request) -> web.Response:
        del self.talks[request.match_info["id"]]
        return web.json_response({})

    def application(self, routes: list[Route]) -> web.Application:
        app = web.Application()
        add = app.router.add_route
        base = self.base.rstrip("/")
        for route in routes:
            add(route.method, base + route.path, _guarded(route) if route.guard is Guard.OWNER else route.handler)
        add("POST", f"{base}/login", self.login)
        add("POST", f"{base}/logout", self.logout)
        owned = (
            ("GET", "sessions", self.list_sessions),
            ("GET", "sessions/{id}/messages", self.messages),
            ("POST", "sessions/{id}/{change}", self.change),
            ("DELETE", "sessions/{id}", self.delete),
            ("GET", "search", self.search),
        )
        for method, path, handler in owned:
            route = Route(method=method, path=f"/api/{path}", handler=handler, guard=Guard.OWNER)
            add(method, base + route.path, _guarded(route))
        return app

    @asynccontextmanager
    async def running(self, cache: Path) -> AsyncIterator["WebWorld"]:
        """Serve until the block ends. Entered again, it is the same gateway, restarted on the same port."""
        around = Surroundings(instance="web", clock=self.clock, cache=cache, bookmarks=LooseBookmarks(self.clock))
        async with PLATFORM.open(WebConfig(), around) as adapter:
            assert isinstance(adapter, WebChat)
            self.adapter = adapter
            self._listening = asyncio.ensure_future(adapter.listen(self.emit))
            runner = web.AppRunner(self.application(list(adapter.routes())), shutdown_timeout=1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True)
            await site.start()
            self.port = runner.addresses[0][1]
            try:
                yield self
            finally:
                await self.stop_listening()
                adapter.close()
                await runner.cleanup()

    async def stop_listening(self) -> None:
        """The first stage of a stop: the adapter leaves while the server still answers."""
        assert self._listening is not None
        self._listening.cancel()
        await asyncio.wait([self._listening])


def _guarded(route: Route) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.cookies.get(COOKIE) != SECRET:
            return web.json_response({"error": {"message": "Log in first."}}, status=401)
        return await route.handler(request)

    return handle
