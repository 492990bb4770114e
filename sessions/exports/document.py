"""What an export prints: sessions with their messages, read in short pages: no writer waits for a long export."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

from hermes.errors import SessionNotFound
from hermes.sessions.dbapi import Connection
from hermes.sessions.filters import Lineage
from hermes.sessions.lookup import SPOKEN, get
from hermes.sessions.model import OWNER, Message, Session, SessionId, ViewEntry
from hermes.sessions.records import Record
from hermes.sessions.rows import SELECT_MESSAGES, marks, message
from hermes.sessions.selecting import segments

T = TypeVar("T")

PAGE = 500
"""Messages of one read."""


@dataclass(frozen=True, slots=True)
class Document:
    """One piece of reading: a session, or a whole lineage under the name of its live one."""

    session: Session
    lineage: tuple[SessionId, ...]
    """The ids of all segments of the conversation, oldest first."""
    pages: Callable[[], Iterator[Message]]
    """What was said and done, from the beginning, each time anew; nothing that was undone, and no summaries."""


class Reading:
    """A snapshot for as long as each read takes, and none between them."""

    def __init__(self, snapshot: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._snapshot = snapshot

    def whole(self, lineage: Lineage) -> Document:
        """The conversation over all its segments."""
        ids = tuple(one.id for one in lineage.segments)
        session = replace(
            self._shown(lineage.tip.id, ids),
            started_at=lineage.started_at,
            tool_call_count=lineage.tool_call_count,
            usage=lineage.usage,
        )
        return Document(session, ids, lambda: self._rows(ids, SPOKEN))

    def single(self, session: Session, lineage: Lineage) -> Document:
        """One segment alone."""
        ids = tuple(one.id for one in lineage.segments)
        return Document(self._shown(session.id, (session.id,)), ids, lambda: self._rows((session.id,), SPOKEN))

    def records(self, lineage: Lineage) -> Iterator[tuple[Record, Iterator[Message]]]:
        """Each segment with every fact and every row, as the conversation is now: it may have grown since.

        All segments are read at one moment, so that the live one is always among them.
        """
        with self._snapshot() as connection:
            heads = [_record(connection, one.id) for one in segments(connection, lineage.conversation)]
        for head in heads:
            yield head, self._rows((head.session.id,), "TRUE")

    def _shown(self, session: SessionId, sessions: Sequence[SessionId]) -> Session:
        """The session with the number of messages that are shown of `sessions`: what was undone is not counted."""
        with self._snapshot() as connection:
            (shown,) = connection.execute(
                f"SELECT count(*) FROM messages m WHERE m.session_id IN ({marks(sessions)}) AND {SPOKEN}",
                tuple(sessions),
            ).fetchone()
            return replace(get(connection, session, OWNER), message_count=shown)

    def _rows(self, sessions: Sequence[SessionId], shown: str) -> Iterator[Message]:
        after, page = -(2**63), PAGE
        while page == PAGE:
            with self._snapshot() as connection:
                found = connection.execute(
                    f"{SELECT_MESSAGES} WHERE m.session_id IN ({marks(sessions)}) AND m.id > ? AND {shown}"
                    " ORDER BY m.id LIMIT ?",
                    (*sessions, after, PAGE),
                ).fetchall()
                if not found:
                    get(connection, sessions[-1], OWNER)  # gone is not the same as read to the end
            rows = tuple(map(message, found))
            yield from rows
            page = len(rows)
            after = rows[-1].id if rows else after


def _record(connection: Connection, session: SessionId) -> Record:
    found = connection.execute(
        "SELECT c.tip, s.api_calls, c.predecessor, c.goal, c.model_override, c.pins, c.cooldowns"
        " FROM sessions s JOIN conversations c ON c.id = s.conversation WHERE s.id = ?",
        (session,),
    ).fetchone()
    if found is None:
        raise SessionNotFound(session)
    tip, api_calls, predecessor, goal, model_override, pins, cooldowns = found
    view = connection.execute(
        "SELECT message_id, replacement FROM views WHERE session_id = ? ORDER BY position", (session,)
    )
    return Record(
        session=get(connection, session, OWNER),
        tip=tip,
        api_calls=api_calls,
        predecessor=predecessor,
        goal=goal,
        model_override=model_override,
        pins=pins,
        cooldowns=cooldowns,
        view=tuple(ViewEntry(message_id=row, replacement=instead) for row, instead in view),
    )
