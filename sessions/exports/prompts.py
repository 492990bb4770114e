"""Only what people said, without answers, tools and contexts: for a library of prompts."""

import json
from collections.abc import Iterator
from datetime import tzinfo

from hermes.sessions.exports.document import Document
from hermes.sessions.exports.when import local, utc
from hermes.sessions.model import Kind, Message, Role


def jsonl(shown: Document) -> Iterator[str]:
    """A line each: session, number from 1, moment, text, id."""
    for index, row in _prompts(shown):
        facts = {
            "session_id": row.session_id,
            "index": index,
            "created_at": utc(row.at),
            "role": row.role.value,
            "text": row.content,
            "message_id": row.id,
        }
        yield json.dumps(facts, ensure_ascii=False) + "\n"


def markdown(shown: Document, zone: tzinfo | None) -> Iterator[str]:
    """A section each."""
    session = shown.session
    yield f"# {' '.join((session.title or session.preview or session.id).split())}\n"
    for index, row in _prompts(shown):
        yield f"\n## {index} — {local(row.at, zone)}\n\n{row.content}\n"


def _prompts(shown: Document) -> Iterator[tuple[int, Message]]:
    said = (row for row in shown.pages() if row.role is Role.USER and row.kind is Kind.TALK)
    return enumerate(said, start=1)
