"""A session as Markdown, or as Quarto's kind of it: front matter, what was said in order, and figures to verify by."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import tzinfo

from hermes import __version__
from hermes.sessions.exports.document import Document
from hermes.sessions.exports.files import plain
from hermes.sessions.exports.when import local, utc
from hermes.sessions.model import Message, Role, Session

SLUG = 60
"""Characters of the name in a file's name."""

SLUG_BYTES = 150
"""And bytes of it: file systems count those, and know 255 in all."""

ROLES = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool"}

_NO_WORD = re.compile(r"[\W_]+")
_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<rest>[^\n]*)$", re.MULTILINE)
_BACKTICKS = re.compile(r"`{3,}")
_RULE = re.compile(r"^(-{3,}|\.{3})(?=[ \t]*$)", re.MULTILINE)


def file_name(session: Session, suffix: str) -> str:
    """`<id>-<words>.<suffix>`, of characters that every file system takes."""
    words = _NO_WORD.sub("-", (session.title or session.preview).casefold()).strip("-")[:SLUG]
    slug = words.encode()[:SLUG_BYTES].decode(errors="ignore").rstrip("-")
    return f"{plain(session.id)}-{slug}.{suffix}" if slug else f"{plain(session.id)}.{suffix}"


def markdown(shown: Document, *, exported_at: float, zone: tzinfo | None) -> Iterator[str]:
    """The document in pieces."""
    return _verifiable(shown, _pieces(shown, {"format": "md"}, exported_at, zone, _closed))


def quarto(shown: Document, *, exported_at: float, zone: tzinfo | None) -> Iterator[str]:
    """The same for Quarto, in which nothing that somebody said is run, included or taken for a setting."""
    own = {"format": "html", "engine": "markdown", "from": "markdown-raw_html-raw_attribute-raw_tex"}
    return _verifiable(shown, _pieces(_tamed(shown), own, exported_at, zone, _closed))


def _tamed(shown: Document) -> Document:
    """The document with every text tamed, arguments, results and names among them."""
    session = replace(shown.session, title=shown.session.title and _tame(shown.session.title))
    session = replace(session, preview=_tame(session.preview))
    return Document(session, shown.lineage, lambda: map(_tame_row, shown.pages()))


def _tame_row(row: Message) -> Message:
    calls = tuple(replace(call, name=_tame(call.name), arguments=_tame(call.arguments)) for call in row.tool_calls)
    sender = None if row.sender is None else replace(row.sender, name=_tame(row.sender.name))
    tool = row.tool_name and _tame(row.tool_name)
    return replace(row, content=_tame(row.content), tool_calls=calls, sender=sender, tool_name=tool)


def _pieces(
    shown: Document,
    own: Mapping[str, str],
    exported_at: float,
    zone: tzinfo | None,
    words: Callable[[str], str],
) -> Iterator[str]:
    yield from _front_matter(shown, own, exported_at)
    yield f"\n# {_heading(words(shown.session.title or shown.session.preview))}\n\n## Messages\n"
    for row in shown.pages():
        yield f"\n### {ROLES[row.role]} — {local(row.at, zone)}\n\n"
        yield "".join(f"{piece}\n" for piece in _message(row, words))


def _front_matter(shown: Document, own: Mapping[str, str], exported_at: float) -> Iterator[str]:
    session = shown.session
    facts = {
        "title": session.title or session.preview or session.id,
        "session_id": session.id,
        "source": session.source,
        "created_at": utc(session.started_at),
        "updated_at": utc(session.last_active),
        "ended_at": None if session.ended_at is None else utc(session.ended_at),
        "model": session.model,
        "provider": session.provider,
        "cwd": session.cwd,
        "archived": session.archived,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "lineage_session_ids": list(shown.lineage),
        "exported_at": utc(exported_at),
        "exporter": f"hermes {__version__}",
        **own,
    }
    yield "---\n"
    yield from (f"{name}: {json.dumps(fact, ensure_ascii=False)}\n" for name, fact in facts.items() if fact is not None)
    yield "---\n"


def _message(row: Message, words: Callable[[str], str]) -> Iterator[str]:
    if row.sender is not None and row.sender.name:
        yield f"*{_heading(words(row.sender.name))}:*\n"
    if row.role is Role.TOOL:
        yield f"*Result of {_heading(row.tool_name or 'a tool')}*\n"
        yield _block(row.content, "")
    elif row.content:
        yield words(row.content)
    for call in row.tool_calls:
        yield f"\n*Calls {_heading(call.name)}*\n"
        yield _block(call.arguments, "json")


def _block(text: str, language: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _closed(text: str) -> str:
    """`text` with its last fence and comment closed: what follows is another's words."""
    if "<!--" in text and "-->" not in text.rpartition("<!--")[2]:
        text = text.replace("<!--", r"<\!--")
    fence = ""
    for found in _FENCE.finditer(text):
        if not fence:
            fence = found["fence"]
        elif found["fence"].startswith(fence) and not found["rest"].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _tame(text: str) -> str:
    """Short codes are shown instead of followed, and no rule opens a block of settings."""
    return _RULE.sub(r"\\\1", text.replace("{{<", "{{{<").replace(">}}", ">}}}"))


def _heading(text: str) -> str:
    return " ".join(text.split()).replace("#", r"\#")


def _verifiable(shown: Document, pieces: Iterator[str]) -> Iterator[str]:
    """The pieces, then a footer with what they come to."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode())
        yield piece
    yield (
        f"\n---\n\n## Export verification\n\n- Session: {shown.session.id}\n- Messages: {shown.session.message_count}\n"
        f"- SHA-256 of what stands above this section's rule: {digest.hexdigest()}\n"
    )
