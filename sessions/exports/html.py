"""Conversations as one page that needs nothing else: no server, no network, no other file.

What people and models said is rendered without raw HTML, without images and with links to http, https and mailto
alone; the page's own script and style are allowed by their hashes, and everything else is forbidden to it.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import cache
from html import escape
from importlib import resources

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hermes.sessions.exports.document import Document
from hermes.sessions.exports.when import local, utc
from hermes.sessions.model import Message, Role, ToolCall

SCHEMES = ("http://", "https://", "mailto:")
FIRST_LINE = 80
"""Characters of a tool's output that are seen while it is folded."""

ROLES = {Role.USER: "user", Role.ASSISTANT: "assistant", Role.TOOL: "tool"}


def page(documents: Sequence[Document], *, exported_at: float, zone: tzinfo | None) -> Iterator[str]:
    """The page in pieces: a sidebar where there are several conversations, then each of them."""
    names = [_name(one) for one in documents]
    title = names[0] if len(names) == 1 else f"{len(names)} conversations"
    yield _opening(title, single=len(names) == 1)
    yield from _sidebar(documents, names, zone)
    yield "<main>\n"
    if not documents:
        yield '<p class="empty">No conversation matched.</p>\n'
    for number, (one, name) in enumerate(zip(documents, names, strict=True), start=1):
        yield from _section(number, one, name, zone)
    yield f"<footer>Exported {escape(local(exported_at, zone))}</footer>\n</main>\n"
    yield f"<script>{_asset('page.js')}</script>\n</body>\n</html>\n"


def _opening(title: str, *, single: bool) -> str:
    policy = f"default-src 'none'; style-src '{_hash('page.css')}'; script-src '{_hash('page.js')}'; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{_asset('page.css')}</style>\n</head>\n"
        f'<body class="{"single" if single else "several"}">\n'
        '<header><label for="find">Search</label>'
        '<input id="find" type="search" autocomplete="off" placeholder="Search these conversations ( / )">'
        '<output id="found" aria-live="polite"></output></header>\n'
    )


def _sidebar(documents: Sequence[Document], names: Sequence[str], zone: tzinfo | None) -> Iterator[str]:
    if len(documents) < 2:
        return
    yield '<nav aria-label="Conversations">\n<ol>\n'
    for number, (one, name) in enumerate(zip(documents, names, strict=True), start=1):
        facts = f"{one.session.source} · {local(one.session.last_active, zone)[:16]}"
        yield f'<li><a href="#s{number}" dir="auto">{escape(name)}</a><small>{escape(facts)}</small></li>\n'
    yield "</ol>\n</nav>\n"


def _section(number: int, shown: Document, name: str, zone: tzinfo | None) -> Iterator[str]:
    session = shown.session
    began = f"began {local(session.started_at, zone)}"
    facts = [session.id, session.source, session.model or "", f"{session.message_count} messages", began]
    yield f'<section id="s{number}">\n<h1 dir="auto">{escape(name)}</h1>\n'
    yield f'<p class="facts">{escape(" · ".join(fact for fact in facts if fact))}</p>\n'
    for row in shown.pages():
        yield from _bubble(row, zone)
    yield "</section>\n"


def _bubble(row: Message, zone: tzinfo | None) -> Iterator[str]:
    who = row.sender.name if row.sender is not None and row.sender.name else ROLES[row.role]
    yield f'<article class="{ROLES[row.role]}">'
    when = f'<time datetime="{utc(row.at)}">{escape(local(row.at, zone))}</time>'
    yield f'<div class="who"><b dir="auto">{escape(who)}</b> {when}</div>'
    if row.role is Role.TOOL:
        yield _folded(row.tool_name or "result", row.content)
    elif row.content:
        yield f'<div class="words" dir="auto">{_renderer().render(row.content)}</div>'
    yield from (_call(call) for call in row.tool_calls)
    yield "</article>\n"


def _call(call: ToolCall) -> str:
    return _folded(f"→ {call.name}", call.arguments)


def _folded(name: str, text: str) -> str:
    first = " ".join(text[: 4 * FIRST_LINE].split())[:FIRST_LINE]
    summary = f"<summary><code>{escape(name)}</code> <span>{escape(first)}</span></summary>"
    return f"<details>{summary}<pre>{escape(text)}</pre></details>"


def _name(shown: Document) -> str:
    return shown.session.title or shown.session.preview or shown.session.id


@cache
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
    made.enable(["table", "strikethrough"])
    made.validateLink = lambda url: url.lower().startswith(SCHEMES)  # type: ignore[method-assign]
    made.add_render_rule("link_open", _link)
    made.add_render_rule("image", _image)
    return made


def _link(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    return _anchor(str(tokens[index].attrs.get("href", "")))


def _image(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A picture elsewhere is a link: looking at an export tells nobody that it is looked at."""
    address = str(tokens[index].attrs.get("src", ""))
    return f"{_anchor(address)}{escape(tokens[index].content or address)}</a>"


def _anchor(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noopener noreferrer" target="_blank">'


@cache
def _asset(name: str) -> str:
    folder = resources.files("hermes.sessions.exports") / "page"
    return (folder / name).read_text(encoding="utf-8")


def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()
