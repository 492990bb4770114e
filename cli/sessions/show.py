"""`hermes sessions show`: one conversation, its facts and its last messages, whole."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import tzinfo

from hermes.cli.columns import fit, printable
from hermes.cli.sessions.bulk import day
from hermes.cli.sessions.flags import zone_of
from hermes.cli.store import readable
from hermes.home import Home
from hermes.sessions.database import snapshot
from hermes.sessions.exports.markdown import ROLES
from hermes.sessions.filters import Lineage
from hermes.sessions.lookup import last_said, resolve
from hermes.sessions.model import OWNER, Message, Role, Session
from hermes.sessions.records import message_facts
from hermes.sessions.selecting import lineage


def show(home: Home, reference: str, *, limit: int, as_json: bool) -> None:
    """Print the conversation. Raises UserError without a store, SessionNotFound, AmbiguousSession."""
    with readable(home) as connection, snapshot(connection):
        found = lineage(connection, resolve(connection, reference, OWNER).conversation, OWNER)
        rows = last_said(connection, found.conversation, limit)
    if as_json:
        print(json.dumps(_facts(found, rows), ensure_ascii=False, indent=1))
        return
    zone = zone_of(home)
    print("\n".join(_heading(found, zone)))
    if earlier := found.message_count - len(rows):
        print(f"\n… {earlier} earlier messages. Show more with --limit, or all with: hermes sessions export")
    for row in rows:
        print(f"\n{ROLES[row.role]} · {day(row.at, zone)} · {row.id}\n{printable(_words(row))}")


def _heading(found: Lineage, zone: tzinfo | None) -> list[str]:
    tip = found.tip
    state = "open" if tip.ended_at is None else f"ended {day(tip.ended_at, zone)} ({tip.end_reason})"
    cost = f", ${found.usage.cost_usd:.4f}" if found.usage.cost_usd else ""
    facts = {
        "Title": tip.title or "—",
        "Session": tip.id,
        "Lineage": " → ".join(one.id for one in found.segments) if len(found.segments) > 1 else "",
        "Source": tip.source,
        "Model": " · ".join(part for part in (tip.model, tip.provider) if part),
        "Began": day(found.started_at, zone),
        "Last active": f"{day(found.last_active, zone)}, {state}{', archived' if tip.archived else ''}",
        "Messages": f"{found.message_count}, {found.tool_call_count} calls of tools",
        "Tokens": f"{found.usage.input_tokens} read, {found.usage.output_tokens} written{cost}",
        "Folder": " · ".join(part for part in (tip.cwd, tip.git_branch) if part),
    }
    return [f"{fit(name, 12)} {printable(fact)}" for name, fact in facts.items() if fact]


def _words(row: Message) -> str:
    calls = [f"→ {call.name} {call.arguments}" for call in row.tool_calls]
    name = [f"[{row.tool_name}]"] if row.role is Role.TOOL and row.tool_name else []
    return "\n".join(part for part in (*name, row.content, *calls) if part)


def _facts(found: Lineage, rows: Sequence[Message]) -> dict[str, object]:
    return {
        "session": _slim(found.tip),
        "lineage": [one.id for one in found.segments],
        "message_count": found.message_count,
        "messages": [message_facts(row) for row in rows],
    }


def _slim(session: Session) -> dict[str, object]:
    return {name: fact for name, fact in asdict(session).items() if name not in {"system_prompt", "tools"}}
