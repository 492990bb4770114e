"""The `Search` port of the twin: all words must occur somewhere in a row, whatever their case."""

from hermes.errors import SessionNotFound
from hermes.sessions.memory.tables import Tables
from hermes.sessions.model import (
    ConversationId,
    Found,
    Hit,
    Kind,
    Message,
    Order,
    Query,
    Scope,
    SessionId,
    Window,
)
from hermes.text import one_line

SNIPPET = 120
"""Characters of a snippet."""


class MemorySearch:
    """A plain scan."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def discover(self, query: Query, scope: Scope) -> Found:
        best = self._best_by_conversation(query, scope)
        hidden = best.pop(query.exclude, None) if query.exclude is not None else None
        hits = [self._hit(row, query) for row in best.values()]
        return Found(hits=tuple(hits[: query.limit]), hidden=0 if hidden is None else 1)

    async def scroll(self, session: SessionId, around: int, window: int, scope: Scope) -> Window:
        found = self._tables.sessions.get(session)
        if found is None or not scope.allows(found):
            raise SessionNotFound(session)
        anchor = self._tables.messages.get(around)
        if anchor is None or self._tables.sessions[anchor.session_id].conversation != found.conversation:
            raise SessionNotFound(f"{session} around {around}")
        return self._window(anchor, window)

    def _best_by_conversation(self, query: Query, scope: Scope) -> dict[ConversationId, Message]:
        """One matching row a conversation, in the order that was asked for."""
        words = query.text.casefold().split()
        best: dict[ConversationId, Message] = {}
        rows = sorted(self._tables.messages.values(), key=lambda row: row.at, reverse=query.order is not Order.OLDEST)
        for row in rows:
            session = self._tables.sessions[row.session_id]
            if words and _matches(row, words, query) and scope.allows(session):
                best.setdefault(session.conversation, row)
        return best

    def _hit(self, row: Message, query: Query) -> Hit:
        talk = [said for said in self._said(row) if said.kind is Kind.TALK]
        return Hit(
            session=self._tables.sessions[row.session_id],
            snippet=one_line(row.content, SNIPPET),
            window=self._window(row, query.window),
            bookend_start=tuple(talk[: query.bookends]),
            bookend_end=tuple(talk[-query.bookends :] if query.bookends else ()),
        )

    def _window(self, anchor: Message, size: int) -> Window:
        talk = [row for row in self._said(anchor) if row.kind is Kind.TALK and row.id != anchor.id]
        before = [row for row in talk if row.id < anchor.id][-size:] if size else []
        after = [row for row in talk if row.id > anchor.id][:size]
        return Window(
            session=self._tables.sessions[anchor.session_id],
            anchor=anchor.id,
            messages=(*before, anchor, *after),
            before=len(before),
            after=len(after),
        )

    def _said(self, row: Message) -> list[Message]:
        return self._tables.said_in(self._tables.sessions[row.session_id].conversation)


def _matches(row: Message, words: list[str], query: Query) -> bool:
    if row.kind not in {Kind.TALK, Kind.TOOL} or row.undone_by is not None or row.role not in query.roles:
        return False
    text = row.content.casefold()
    return all(word in text for word in words)
