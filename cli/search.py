"""`hermes search`: what the agent's session_search finds, for a person."""

import json
import os
import sys
import time
from collections.abc import Mapping

from hermes.cli.columns import printable
from hermes.cli.listing import ago
from hermes.cli.store import readable
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions.database import snapshot
from hermes.sessions.model import OWNER, Found, Hit, Message, Query
from hermes.sessions.query import parse
from hermes.sessions.records import message_facts
from hermes.sessions.search import discover
from hermes.sessions.snippet import CLOSE, OPEN
from hermes.text import one_line

NAME = 60
"""Characters of a conversation's name."""
BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def search(home: Home, query: Query, *, as_json: bool) -> int:
    """Print what was found; 1 when nothing was. Raises UserError for a query without a word, or without a store."""
    if parse(query.text) is None:
        raise UserError("The query holds nothing to search for. Give a word or two of what was said.")
    with readable(home) as connection, snapshot(connection):
        found = discover(connection, query, OWNER)
    if as_json:
        print(json.dumps(_facts(found), ensure_ascii=False, indent=1))
    else:
        print("\n".join(_shown(found, marks(os.environ))))
    return 0 if found.hits else 1


def marks(environ: Mapping[str, str]) -> tuple[str, str, str, str]:
    """What begins and ends a match, and what is secondary: colours on a terminal that wants them, else arrows."""
    if sys.stdout.isatty() and not environ.get("NO_COLOR"):
        return BOLD, RESET, DIM, RESET
    return OPEN, CLOSE, "", ""


def _shown(found: Found, how: tuple[str, str, str, str]) -> list[str]:
    lines = [line for hit in found.hits for line in _hit(hit, how)] or ["Nothing was found."]
    if found.partial:
        lines.append("Time ran out before every message was read. Try a whole word that was used.")
    return lines


def _hit(hit: Hit, how: tuple[str, str, str, str]) -> list[str]:
    begin, end, dim, plain = how
    anchor = _anchor(hit)
    name = printable(one_line(hit.session.title or hit.session.preview, NAME))
    where = printable(f"{hit.session.source} · {hit.session.id}")
    facts = f"{ago(time.time() - anchor.at)} · {where} · message {anchor.id}"
    words = printable(hit.snippet).replace(OPEN, begin).replace(CLOSE, end)
    return [f"{name}  {dim}{facts}{plain}", f"  {anchor.role.value}: {words}", ""]


def _anchor(hit: Hit) -> Message:
    return next(row for row in hit.window.messages if row.id == hit.window.anchor)


def _facts(found: Found) -> dict[str, object]:
    return {
        "partial": found.partial,
        "results": [
            {
                "session_id": hit.session.id,
                "title": hit.session.title,
                "source": hit.session.source,
                "at": _anchor(hit).at,
                "snippet": hit.snippet,
                "match_message_id": hit.window.anchor,
                "bookend_start": list(map(message_facts, hit.bookend_start)),
                "messages": list(map(message_facts, hit.window.messages)),
                "bookend_end": list(map(message_facts, hit.bookend_end)),
            }
            for hit in found.hits
        ],
    }
