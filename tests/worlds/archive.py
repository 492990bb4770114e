"""A store with a bit of everything that an export has to carry, written through the ports."""

from contracts.store.facts import HOUR, T0, assistant, begin, summary, tool, user, write
from hermes.sessions.model import (
    Link,
    NewMessage,
    Person,
    Role,
    SessionId,
    Snapshot,
    Split,
    ToolCall,
    Usage,
    ViewEntry,
)
from hermes.sessions.store import SqliteStore

CHILD = SessionId("20270115_090000_child")
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"
"""Looks like a provider's key, and is nobody's."""


async def fill(store: SqliteStore) -> None:
    """A compressed conversation with an undone row, tools, senders and a delegate; a short one; one in Arabic."""
    call = ToolCall(id="c1", name="terminal", arguments=f'{{"env": {{"API_KEY": "{KEY}"}}, "cmd": "ls"}}')
    session, lease = await begin(store, "a", title="proj", cwd="/home/me/proj", git_branch="main")
    asked = NewMessage(role=Role.USER, content="Fix the auth module 修复", at=T0, sender=Person(id="u1", name="Ann"))
    rows = await write(
        store,
        lease,
        session,
        asked,
        assistant("I look.", calls=(call,), at=T0 + 1),
        tool("def login(): ...", at=T0 + 2),
        assistant("Done.", at=T0 + 3),
        user("no, undo that", at=T0 + 4),
        usage=Usage(input_tokens=100, output_tokens=20, cost_usd=0.25),
        api_calls=2,
        snapshot=Snapshot(model="gpt-9", provider="openai", system_prompt=f"Use {KEY}", tools="[]"),
    )
    (undo,) = await write(store, lease, session, user("/undo", at=T0 + 5), turn="turn-2")
    await store.mark_undone(lease, session.id, rows[4].id, by=undo.id)
    head = (ViewEntry(message_id=rows[0].id), ViewEntry(message_id=rows[2].id, replacement="[cleared]"))
    split = Split(child=CHILD, head=head, summary=summary("so far", at=T0 + 6), tail=(), at=T0 + 6)
    child = await store.split(lease, session.id, split)
    await write(store, lease, child, user("and now the tests", at=T0 + 7), turn="turn-3")
    await store.leases.release(lease)
    await store.end(CHILD, reason="done", at=T0 + 8)
    sent, lease = await begin(store, "b", source="cli", at=T0 + 10, parent=session.id, link=Link.DELEGATE)
    await write(store, lease, sent, user("look into it", at=T0 + 10), turn="turn-4")
    await store.leases.release(lease)
    other, lease = await begin(store, "c", at=T0 + HOUR, user_id="u2")
    await write(store, lease, other, user("مرحبا", at=T0 + HOUR), assistant("أهلا", at=T0 + HOUR), turn="turn-5")
    await store.leases.release(lease)
