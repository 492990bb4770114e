"""The page, put together once at start: one document, its style and script inside, a policy that allows just those."""

import base64
import hashlib
import html
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("page")
STYLES = ("style.css",)
SCRIPTS = ("texts.js", "markdown.js", "wire.js", "talk.js", "sessions.js", "chat.js")
"""In this order they are one script: a later file uses the names of an earlier one."""


@dataclass(frozen=True, slots=True)
class Document:
    """What `GET /` answers."""

    body: bytes
    headers: dict[str, str]


def assemble(instance: str, folder: Path = FOLDER) -> Document:
    """Join the files of `folder` to one page for the platform instance `instance`. Reads files: call it off the loop.

    Raises ValueError when a file holds the tag that would end its own element early.
    """
    style = _inline("style", STYLES, folder)
    script = _inline("script", SCRIPTS, folder)
    text = (
        (folder / "index.html")
        .read_text(encoding="utf-8")
        .replace("{{instance}}", html.escape(instance))
        .replace("{{style}}", style)
        .replace("{{script}}", script)
    )
    return Document(text.encode(), _headers(style, script))


def _inline(tag: str, names: tuple[str, ...], folder: Path) -> str:
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    if f"</{tag}" in text.lower():
        raise ValueError(
            f"{', '.join(names)} in {folder}: the text </{tag} would end the element. Write it in two parts."
        )
    return text


def _headers(style: str, script: str) -> dict[str, str]:
    return {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": _policy(style, script),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def _policy(style: str, script: str) -> str:
    """Nothing loads, runs or is sent elsewhere but what the page itself holds; text can never become markup."""
    rules = (
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
    return "; ".join(rules)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
