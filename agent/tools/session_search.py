"""The tool by which the model remembers other conversations: find, scroll, browse. No model call, no summary."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from hermes.agent.models.base import ToolSpec
from hermes.agent.tools.base import ToolContext, ToolResult
from hermes.errors import SessionNotFound, UserError
from hermes.sessions.model import Hit, Message, Order, Page, Query, Role, Session, SessionId, Window
from hermes.sessions.ports import Store
from hermes.sessions.query import parse
from hermes.text import one_line

LIMIT, MOST = 3, 10
"""Sessions of a search: by default, and at most."""
BROWSED = 20
"""Sessions that browsing shows."""
SPAN, WIDEST = 5, 20
"""Messages to each side when scrolling: by default, and at most."""
NAME = 60
"""Characters of a sender's name: other people chose it."""
ROOM = 40_000
"""Characters that an answer may take; beyond it the longest messages are shortened, and say so."""
CAPS = (None, 4_000, 1_000, 200)
"""Characters a message may keep, tried in turn until the answer fits."""
ORDERS = {None: Order.RELEVANCE, "newest": Order.NEWEST, "oldest": Order.OLDEST}

SPEC = ToolSpec(
    name="session_search",
    description=(
        "Search past conversations, or read around a message in one. Returns stored messages word for word. "
        "When the user refers to an earlier conversation ('we did this before', 'do you remember', 'last time', "
        "'as I mentioned'), or names a person, project or idea that is not in this conversation, or when you suspect "
        "that earlier context exists: search first, before you ask the user to repeat anything.\n"
        "Three forms, told apart by the arguments. "
        "1) query: the best matching sessions, each with its opening, the match with its surroundings, and its end. "
        'Words must all occur; "exact phrase", OR, NOT and prefix* are understood. '
        "2) session_id and around_message_id: the messages around one message; to page on, pass the id of the last (or "
        "first) message that you got; messages_before or messages_after below the window means the start or the end. "
        "3) no arguments: the most recent sessions, for 'what was I doing?'."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT},
            "sort": {
                "type": "string",
                "enum": ["newest", "oldest"],
                "description": "newest for 'where did we leave off', oldest for 'how did it begin'; else by relevance.",
            },
            "role_filter": {
                "type": "string",
                "default": "user,assistant",
                "description": "Comma-separated: user, assistant, tool. Add tool to look into tool output.",
            },
            "session_id": {"type": "string"},
            "around_message_id": {"type": "integer"},
            "window": {"type": "integer", "minimum": 1, "maximum": WIDEST, "default": SPAN},
        },
    },
)


class SessionSearch:
    """The tool. A reader's scope decides what it can see; the conversation that asks is left out of searches."""

    def __init__(self, store: Store, *, zone: tzinfo | None = None) -> None:
        """Times are shown in `zone`; None is the system's."""
        self._store = store
        self._zone = zone

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        given = {name: value for name, value in arguments.items() if value is not None and value != ""}
        if unknown := given.keys() - SPEC.parameters["properties"].keys():
            raise UserError(f"session_search has no parameter {min(unknown)!r}. It takes {', '.join(_names())}.")
        if "session_id" in given or "around_message_id" in given:
            return ToolResult(text=await self._scroll(given, context))
        if "query" in given:
            return ToolResult(text=await self._discover(given, context))
        return ToolResult(text=await self._browse(given, context))

    async def _discover(self, given: Mapping[str, Any], context: ToolContext) -> str:
        query = Query(
            text=_text(given, "query"),
            limit=_clamped(given, "limit", LIMIT, MOST),
            order=_order(given.get("sort")),
            roles=_roles(given),
            exclude=context.conversation,
        )
        if parse(query.text) is None:
            raise UserError("The query holds nothing to search for. Give a word or two of what was said.")
        found = await self._store.search.discover(query, context.scope)
        facts: dict[str, Any] = {"mode": "search", "query": query.text, "count": len(found.hits)}
        if found.partial:
            facts["partial"] = "Time ran out before all messages were read. Try a whole word that was used."
        if found.hidden:
            facts["hidden"] = "This conversation matches too; it is left out because you can see it."
        return _fitting(lambda cap: {**facts, "results": [_hit(hit, cap, self._zone) for hit in found.hits]})

    async def _scroll(self, given: Mapping[str, Any], context: ToolContext) -> str:
        if not {"session_id", "around_message_id"} <= given.keys():
            raise UserError("To read in a session give both session_id and around_message_id, as a search shows them.")
        session, around = SessionId(_text(given, "session_id")), _number(given, "around_message_id", 0)
        window = _clamped(given, "window", SPAN, WIDEST)
        try:
            shown = await self._store.search.scroll(session, around, window, context.scope)
        except SessionNotFound as error:
            raise UserError(
                f"There is no message {around} in a session {session}. Use ids as an earlier result shows them."
            ) from error
        titled = _titled(shown.session, shown.session.started_at, self._zone)
        return _fitting(lambda cap: {"mode": "scroll", **titled, **_window(shown, cap)})

    async def _browse(self, given: Mapping[str, Any], context: ToolContext) -> str:
        page = Page(limit=_clamped(given, "limit", BROWSED, BROWSED), include_machines=False)
        sessions = [
            {
                **_titled(session, session.last_active, self._zone),
                "preview": session.preview,
                "message_count": session.message_count,
            }
            for session in await self._store.list(page, context.scope)
            if session.conversation != context.conversation
        ]
        return _json({"mode": "browse", "count": len(sessions), "results": sessions})


def _names() -> list[str]:
    return list(SPEC.parameters["properties"])


def _text(given: Mapping[str, Any], name: str) -> str:
    if not isinstance(given[name], str):
        raise UserError(f"{name} is a string, not {given[name]!r}.")
    return str(given[name])


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number, also as models write it: 5, 5.0, "5"."""
    value = given.get(name, default)
    try:
        return int(str(value)) if not isinstance(value, float) else int(value)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{name} is a whole number, not {value!r}.") from error


def _clamped(given: Mapping[str, Any], name: str, default: int, most: int) -> int:
    return max(1, min(_number(given, name, default), most))


def _order(sort: object) -> Order:
    if sort not in ORDERS:
        raise UserError(f"sort is newest or oldest, or left out for relevance; not {sort!r}.")
    return ORDERS[sort]


def _roles(given: Mapping[str, Any]) -> frozenset[Role]:
    names = [name.strip().casefold() for name in str(given.get("role_filter", "user,assistant")).split(",")]
    if unknown := {name for name in names if name} - {role.value for role in Role}:
        raise UserError(f"role_filter is a list of user, assistant and tool; not {min(unknown)!r}.")
    return frozenset(Role(name) for name in names if name)


def _hit(hit: Hit, cap: int | None, zone: tzinfo | None) -> dict[str, Any]:
    anchor = next(row for row in hit.window.messages if row.id == hit.window.anchor)
    return {
        **_titled(hit.session, anchor.at, zone),
        "snippet": hit.snippet,
        "bookend_start": [_message(row, cap) for row in hit.bookend_start],
        **_window(hit.window, cap),
        "bookend_end": [_message(row, cap) for row in hit.bookend_end],
        "match_message_id": hit.window.anchor,
    }


def _titled(session: Session, at: float, zone: tzinfo | None) -> dict[str, Any]:
    when = datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat(timespec="minutes")
    return {"session_id": session.id, "title": session.title, "when": when, "source": session.source}


def _window(window: Window, cap: int | None) -> dict[str, Any]:
    marked = [
        {**_message(row, cap), "anchor": True} if row.id == window.anchor else _message(row, cap)
        for row in window.messages
    ]
    return {"messages": marked, "messages_before": window.before, "messages_after": window.after}


def _message(row: Message, cap: int | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": row.id, "role": row.role.value, "content": _capped(row.content, cap)}
    if row.sender is not None and row.sender.name:
        facts["sender"] = one_line(row.sender.name, NAME)
    if row.tool_name is not None:
        facts["tool"] = row.tool_name
    if row.tool_calls:
        facts["calls"] = [call.name for call in row.tool_calls]
    return facts


def _capped(content: str, cap: int | None) -> str:
    if cap is None or len(content) <= cap:
        return content
    return f"{content[:cap]}… [{len(content) - cap} more characters]"


def _fitting(facts: Callable[[int | None], dict[str, Any]]) -> str:
    """The first rendering that fits, from whole messages down."""
    renderings = (_json(facts(cap)) for cap in CAPS)
    text = next(renderings)
    while len(text) > ROOM and (shorter := next(renderings, None)) is not None:
        text = shorter
    return text


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False)
