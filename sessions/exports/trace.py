"""A conversation as the log of Claude Code, which trace viewers know: one JSON object a message, each naming the one
before it, with the moment at which it was really said.
"""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from hermes import __version__
from hermes.sessions.exports.document import Document
from hermes.sessions.exports.when import utc
from hermes.sessions.model import Message, Role, Session, ToolCall

NAMESPACE = uuid.UUID("7c1d4b1e-6f0e-5d3a-9c53-2f7f5e0f4a61")
"""Ids of lines follow from the ids of sessions and messages: the same session gives the same trace."""


def trace(shown: Document) -> Iterator[str]:
    """The lines."""
    parent: str | None = None
    for row in shown.pages():
        name = str(uuid.uuid5(NAMESPACE, f"{row.session_id}/{row.id}"))
        facts = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": shown.session.cwd or "",
            "sessionId": shown.session.id,
            "version": __version__,
            "gitBranch": shown.session.git_branch or "",
            "type": "assistant" if row.role is Role.ASSISTANT else "user",
            "message": _message(row, shown.session),
            "uuid": name,
            "timestamp": utc(row.at),
        }
        parent = name
        yield json.dumps(facts, ensure_ascii=False) + "\n"


def _message(row: Message, session: Session) -> dict[str, Any]:
    if row.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": row.tool_call_id, "content": row.content}
        return {"role": "user", "content": [result]}
    if row.role is Role.USER:
        return {"role": "user", "content": row.content}
    text = [{"type": "text", "text": row.content}] if row.content else []
    return {
        "id": f"msg_{row.id}",
        "type": "message",
        "role": "assistant",
        "model": session.model or "unknown",
        "content": [*text, *map(_call, row.tool_calls)],
        "stop_reason": "tool_use" if row.tool_calls else "end_turn",
    }


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    shown = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": shown}
