"""Figures about what was kept: tokens and money, models, tools, and when people are active."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from hermes.sessions import scope as scoping
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import Usage
from hermes.sessions.rows import read_tool_calls

TOOLS = 10
"""Tools that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one model or one entry took part in."""

    name: str
    sessions: int
    messages: int
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """The figures of a time."""

    sessions: int
    messages: int
    usage: Usage
    models: tuple[Share, ...]
    sources: tuple[Share, ...]
    tools: tuple[tuple[str, int], ...]
    """The tools that were called most, with how often."""
    hours: Mapping[int, int]
    """Messages of people by the hour of their day."""
    weekdays: Mapping[int, int]
    """And by the day of their week, Monday is 0."""


def insights(connection: Connection, since: float, zone: tzinfo | None) -> Insights:
    """The figures of sessions that were active since then; hours and days in `zone`, None is the system's."""
    models, sources = (_shares(connection, column, since) for column in ("model", "source"))
    moments = [
        datetime.fromtimestamp(at, UTC).astimezone(zone)
        for (at,) in connection.execute(
            "SELECT m.at FROM sessions s JOIN messages m ON m.session_id = s.id"
            f" WHERE s.last_active >= ? AND m.at >= ? AND m.role = 'user' AND m.kind = 'talk' AND {scoping.STANDING}",
            (since, since),
        )
    ]
    return Insights(
        sessions=sum(one.sessions for one in sources),
        messages=sum(one.messages for one in sources),
        usage=sum((one.usage for one in sources), Usage()),
        models=models,
        sources=sources,
        tools=tuple(_tools(connection, since).most_common(TOOLS)),
        hours=dict(Counter(moment.hour for moment in moments)),
        weekdays=dict(Counter(moment.weekday() for moment in moments)),
    )


def _shares(connection: Connection, column: str, since: float) -> tuple[Share, ...]:
    found = connection.execute(
        f"SELECT coalesce(s.{column}, '—'), count(DISTINCT s.conversation), sum(s.message_count),"
        " sum(s.input_tokens), sum(s.output_tokens), sum(s.cache_read_tokens), sum(s.cache_write_tokens),"
        " sum(s.reasoning_tokens), sum(s.cost_usd)"
        f" FROM sessions s WHERE s.last_active >= ? AND s.message_count > 0 AND {scoping.STANDING}"
        " GROUP BY 1 ORDER BY 3 DESC, 1",
        (since,),
    )
    return tuple(
        Share(
            name=name,
            sessions=sessions,
            messages=messages,
            usage=Usage(
                input_tokens=spent[0],
                output_tokens=spent[1],
                cache_read_tokens=spent[2],
                cache_write_tokens=spent[3],
                reasoning_tokens=spent[4],
                cost_usd=spent[5],
            ),
        )
        for name, sessions, messages, *spent in found
    )


def _tools(connection: Connection, since: float) -> Counter[str]:
    rows = connection.execute(
        "SELECT m.tool_calls FROM sessions s JOIN messages m ON m.session_id = s.id"
        " WHERE s.last_active >= ? AND s.tool_call_count > 0 AND m.tool_calls IS NOT NULL AND m.at >= ?"
        f" AND {scoping.STANDING}",
        (since, since),
    )
    return Counter(call.name for (calls,) in rows for call in read_tool_calls(calls))
