"""Titles in the store: unique over all sessions, numbered where they clash, never taken from a person."""

from datetime import UTC, datetime

from hermes.errors import TitleTaken
from hermes.sessions import titles
from hermes.sessions.dbapi import Connection
from hermes.sessions.lookup import get, tip_of
from hermes.sessions.model import OWNER, Session, SessionId


def rename(connection: Connection, session_id: SessionId, title: str | None, *, by_person: bool) -> Session:
    """Set the title of the conversation's tip.

    A person's clash is refused, a made title is numbered; a made title never replaces a person's.
    """
    tip = tip_of(connection, get(connection, session_id, OWNER).conversation)
    if tip.title_by_person and not by_person:
        return tip
    wanted = title
    if title is not None and title != tip.title:
        if by_person:
            refuse_if_taken(connection, title, but_for=tip)
        else:
            wanted = free(connection, title)
    connection.execute(
        "UPDATE sessions SET title = ?, title_by_person = ? WHERE id = ?",
        (wanted, by_person and wanted is not None, tip.id),
    )
    return tip_of(connection, tip.conversation)


def free(connection: Connection, title: str) -> str:
    """`title`, or the first of its numbers that nobody has."""
    return titles.next_free(title, lambda candidate: _holder(connection, candidate) is not None)


def refuse_if_taken(connection: Connection, title: str, *, but_for: Session | None) -> None:
    """Raises TitleTaken when another conversation has the title; an older segment of the same gives it up."""
    holder = _holder(connection, title)
    if holder is None:
        return
    if but_for is not None and holder.conversation == but_for.conversation:
        connection.execute("UPDATE sessions SET title = NULL WHERE id = ?", (holder.id,))
        return
    spoken = datetime.fromtimestamp(holder.last_active, UTC)
    where = f"{holder.source}{', archived' if holder.archived else ''}, last active {spoken:%Y-%m-%d}"
    raise TitleTaken(title, holder.id, where)


def _holder(connection: Connection, title: str) -> Session | None:
    found = connection.execute("SELECT id FROM sessions WHERE title = ?", (title,)).fetchone()
    return None if found is None else get(connection, found[0], OWNER)
