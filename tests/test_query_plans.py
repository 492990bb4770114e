"""However large a store is, nobody reads it from end to end to find one conversation."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from contracts.store.facts import T0
from hermes.sessions import lookup, removal, selecting
from hermes.sessions.database import connect
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import OWNER, ConversationId, Page, Scope, SessionId
from hermes.sessions.store import open_store
from worlds.archive import CHILD, fill

ROOT = ConversationId("20270115_080000_a")
LARGE = r"(SCAN|AUTOMATIC\b.* ON) (messages|sessions|m|s|d|p|own|c|v|views|conversations)\b"
"""Tables that grow with what was said, read whole; a scan along an index that ends after a page is none."""

READS: dict[str, Callable[[Connection], object]] = {
    "stamp": lambda c: selecting.stamp(c, ROOT, OWNER),
    "family": lambda c: selecting.family(c, ROOT),
    "lineage": lambda c: selecting.lineage(c, ROOT, OWNER),
    "doom": lambda c: removal.doom(c, ROOT, OWNER, T0 + 1e6, None),
    "clear": removal.clear,
    "last_said": lambda c: lookup.last_said(c, ROOT, 20),
    "resolve": lambda c: lookup.resolve(c, "20270115_0900", OWNER),
    "resolve title": lambda c: lookup.resolve(c, "proj", Scope(source="telegram", user_id="u1")),
    "get": lambda c: lookup.get(c, SessionId(CHILD), OWNER),
    "transcript": lambda c: lookup.transcript(c, ROOT, OWNER, 0, 10),
}


@pytest.mark.parametrize("name", READS)
async def test_one_conversation_is_found_by_look_ups(tmp_path: Path, name: str) -> None:
    store = await open_store(tmp_path / "state.db")
    await fill(store)
    await store.close()
    statements: list[str] = []
    with closing(connect(tmp_path / "state.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.set_trace_callback(statements.append)
        READS[name](connection)
        connection.set_trace_callback(None)
        plans = [
            (row[3], statement)
            for statement in statements
            if statement.lstrip().startswith(("SELECT", "WITH", "UPDATE", "DELETE"))
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert plans
    read_whole = [plan for plan in plans if re.match(LARGE, plan[0]) and "USING" not in plan[0]]
    automatic = [plan for plan in plans if "AUTOMATIC" in plan[0]]
    assert read_whole + automatic == []


async def test_a_page_of_the_list_ends_early(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "state.db")
    await fill(store)
    await store.close()
    statements: list[str] = []
    with closing(connect(tmp_path / "state.db")) as connection:
        connection.set_trace_callback(statements.append)
        lookup.list_tips(connection, Page(limit=20), OWNER)
        connection.set_trace_callback(None)
        (plan,) = [[row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")] for one in statements]
    assert plan[0] == "SCAN s USING INDEX sessions_recent"
    assert not any(step == "USE TEMP B-TREE FOR ORDER BY" for step in plan), "only what is equally old is sorted"
