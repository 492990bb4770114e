"""`hermes sessions list`: straight from a reader, without the gateway's libraries."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import PurePath

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


def show(home: Home, page: Page, *, as_json: bool) -> None:
    """Print a page of conversations, last active first. Raises StoreUnavailable, SchemaTooNew."""
    found = _read(home, dataclasses.replace(page, limit=page.limit + 1))
    sessions, more = found[: page.limit], len(found) > page.limit
    if as_json:
        print(json.dumps([_facts(one) for one in sessions], ensure_ascii=False, indent=1))
    elif not sessions:
        print(_nothing(page))
    else:
        print("\n".join(table(sessions, now=time.time(), workspaces=page.workspace is not None)))
        if more:
            print(f"… and more. Show them with --limit {page.limit * 2}")


def _read(home: Home, page: Page) -> tuple[Session, ...]:
    if not home.database.exists():
        return ()
    try:
        with closing(open_readable(home.database)) as connection:
            return list_tips(connection, page, OWNER)
    except dbapi.Error as error:
        raise unavailable(home.database, error) from error


def _nothing(page: Page) -> str:
    if page.source is None and page.workspace is None:
        return "No conversations yet. Start one with: hermes chat"
    where = [f"came through {page.source!r}"] if page.source is not None else []
    where += [f"were held in a folder with {page.workspace!r}"] if page.workspace is not None else []
    return f"No conversations {' and '.join(where)}. See all with: hermes sessions list"


def table(sessions: Sequence[Session], *, now: float, workspaces: bool = False) -> list[str]:
    """The list as people read it: with titles where any session has one, else with sources.

    `workspaces` adds the folder and takes the room for it from the preview.
    """
    when: Column = ("Last Active", 13, lambda one: ago(now - one.last_active))
    where: list[Column] = [("Workspace", 18, lambda one: PurePath(one.cwd or "—").name or "/")] if workspaces else []
    if any(one.title for one in sessions):
        columns: list[Column] = [
            ("Title", 28 if workspaces else 22, lambda one: one.title or "—"),
            *(where or [("Preview", 40, lambda one: one.preview)]),
            when,
        ]
    else:
        preview: Column = ("Preview", 38 if workspaces else 50, lambda one: one.preview)
        columns = [preview, *where, when, ("Src", 6, lambda one: one.source[:4])]
    heading = " ".join([*(fit(name, width) for name, width, _ in columns), "ID"])
    lines = [" ".join([*(fit(value(one), width) for _, width, value in columns), _id(one)]) for one in sessions]
    return [heading, "─" * max(map(columns_of, [heading, *lines])), *lines]


def _id(one: Session) -> str:
    return f"{one.id} (archived)" if one.archived else one.id


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
