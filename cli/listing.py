"""`hermes sessions list`: straight from a reader, without the gateway's libraries."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from hermes.cli.columns import columns_of, fit
from hermes.home import Home
from hermes.sessions import dbapi
from hermes.sessions.database import open_readable, unavailable
from hermes.sessions.lookup import list_tips
from hermes.sessions.model import OWNER, Page, Session

MINUTE, HOUR, DAY = 60, 3600, 86400

Column = tuple[str, int, Callable[[Session], str]]
"""Heading, width, and what stands there."""

LEFT_OUT = {"system_prompt", "tools"}
"""Long, and the same for many sessions."""


def show(home: Home, *, source: str | None, limit: int, as_json: bool) -> None:
    """Print the conversations, last active first. Raises StoreUnavailable, SchemaTooNew."""
    found = _read(home, Page(limit=limit + 1, source=source))
    sessions, more = found[:limit], len(found) > limit
    if as_json:
        print(json.dumps([_facts(one) for one in sessions], ensure_ascii=False, indent=1))
    elif not sessions:
        print(_nothing(source))
    else:
        print("\n".join(table(sessions, now=time.time())))
        if more:
            print(f"… and more. Show them with --limit {limit * 2}")


def _read(home: Home, page: Page) -> tuple[Session, ...]:
    if not home.database.exists():
        return ()
    try:
        with closing(open_readable(home.database)) as connection:
            return list_tips(connection, page, OWNER)
    except dbapi.Error as error:
        raise unavailable(home.database, error) from error


def _nothing(source: str | None) -> str:
    if source is None:
        return "No conversations yet. Start one with: hermes chat"
    return f"No conversations came through {source!r}. See all with: hermes sessions list"


def table(sessions: Sequence[Session], *, now: float) -> list[str]:
    """The list as people read it: with titles where any session has one, else with sources."""
    when: Column = ("Last Active", 13, lambda one: ago(now - one.last_active))
    if any(one.title for one in sessions):
        columns: list[Column] = [
            ("Title", 22, lambda one: one.title or "—"),
            ("Preview", 40, lambda one: one.preview),
            when,
        ]
    else:
        columns = [("Preview", 50, lambda one: one.preview), when, ("Src", 6, lambda one: one.source[:4])]
    heading = " ".join([*(fit(name, width) for name, width, _ in columns), "ID"])
    lines = [" ".join([*(fit(value(one), width) for _, width, value in columns), one.id]) for one in sessions]
    return [heading, "─" * max(map(columns_of, [heading, *lines])), *lines]


def ago(seconds: float) -> str:
    """`just now`, `5m ago`, `2h ago`, `yesterday`, `3d ago`."""
    if seconds < MINUTE:
        return "just now"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)}m ago"
    if seconds < DAY:
        return f"{int(seconds // HOUR)}h ago"
    days = int(seconds // DAY)
    return "yesterday" if days == 1 else f"{days}d ago"


def _facts(session: Session) -> dict[str, object]:
    facts = dataclasses.asdict(session)
    return {name: value for name, value in facts.items() if name not in LEFT_OUT}
