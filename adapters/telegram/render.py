"""Markdown as Telegram shows it: plain words, and entities that say which of them are bold, code or a link."""

import re

from telegram import MessageEntity
from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from hermes.adapters.base import Outbound
from hermes.adapters.split import utf16

LONGEST = 4096
"""UTF-16 units of one message, after the entities were taken out (Bot API, sendMessage)."""

MOST_ENTITIES = 100
"""Telegram ignores those beyond."""

_GROWS = re.compile(r"^[ \t]*(?:\|?[ \t]*:?-+:?[ \t]*\||(?:[-*+]|\d+[.)])[ \t]*(?:$|[-*+]|\d+[.)]))", re.MULTILINE)
"""What gets longer when it is drawn: tables, known by the line below their head, and items with no words in them."""


def _style() -> RenderConfig:
    """Headings without pictures before them, and a rule that is no longer than what was typed."""
    style = RenderConfig.isolated()
    symbol = style.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.horizontal_rule = "———"
    symbol.unordered_list_item = "•"
    return style


STYLE = _style()


def render(out: Outbound, longest: int = LONGEST) -> tuple[str, tuple[MessageEntity, ...]]:
    """What to send: the words, and what covers them.

    Where nothing would be left to read, or more than `longest` of what fits undrawn: the words as they stand.
    """
    text, found = ("", []) if out.plain else convert(out.markdown, config=STYLE)
    text = text.rstrip()
    end = utf16(text)
    if not text or end > longest >= utf16(out.markdown):
        return out.markdown, ()
    entities = (
        MessageEntity(each.type, each.offset, min(each.length, end - each.offset), url=each.url, language=each.language)
        for each in found
        if each.offset < end
    )
    return text, tuple(entities)[:MOST_ENTITIES]


def measure(markdown: str) -> int:
    """UTF-16 units of a message, at the most: as it was written, or as it is drawn where that is longer."""
    written = utf16(markdown)
    return max(written, utf16(convert(markdown, config=STYLE)[0].rstrip())) if _GROWS.search(markdown) else written
