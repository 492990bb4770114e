"""Writing a conversation that comes from elsewhere: whole or not at all, and never twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from hermes.sessions import naming
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import Indexer
from hermes.sessions.model import ConversationId, Message, Session, SessionKey, Usage
from hermes.sessions.records import Record
from hermes.sessions.rows import marks
from hermes.sessions.turns import insert

SEGMENT = tuple(fact.name for fact in fields(Session) if fact.name not in {"usage", "archived"})
SPENT = tuple(fact.name for fact in fields(Usage))
ID_PAGE = 500


@dataclass(frozen=True, slots=True)
class Source:
    """Where a conversation comes from: a program, and its name there."""

    program: str
    name: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """One conversation: its segments, oldest first, each with its rows. `source` None: another Hermes store."""

    segments: tuple[tuple[Record, tuple[Message, ...]], ...]
    source: Source | None = None
    route: tuple[SessionKey, str] | None = None
    """The key that led to it there, and its origin as JSON: it leads here too, unless it leads somewhere already."""

    @property
    def conversation(self) -> ConversationId:
        return self.segments[0][0].session.conversation


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a parcel."""

    conversation: ConversationId
    fresh: bool
    """False: it was here already, and nothing was changed."""
    messages: int = 0
    renamed: tuple[tuple[str, str], ...] = ()
    """Titles that somebody else here has, and what they became."""


def take_in(connection: Connection, indexer: Indexer, parcel: Parcel, ids: dict[int, int], at: float) -> Receipt:
    """Write a parcel. `ids` maps ids of rows in the parcels so far to theirs here, and is added to.

    Rows keep their ids where those are free, so that an empty store becomes an equal one.
    """
    known = _known(connection, parcel)
    if known is not None:
        ids.update(_same(connection, parcel))
        return Receipt(known, fresh=False)
    first = parcel.segments[0][0]
    connection.execute(
        "INSERT INTO conversations (id, tip, predecessor, goal, model_override, pins, archived, cooldowns)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(parcel.conversation, first.tip, first.predecessor, first.goal, first.model_override, first.pins),
            *(first.session.archived, first.cooldowns),
        ),
    )
    renamed = [change for record, _ in parcel.segments if (change := _segment(connection, record)) is not None]
    _rows(connection, indexer, parcel, ids)
    for record, _ in parcel.segments:
        _view(connection, record, ids)
    if parcel.route is not None:
        connection.execute(
            "INSERT OR IGNORE INTO routes VALUES (?, ?, ?, ?)",
            (parcel.route[0], parcel.conversation, parcel.route[1], first.session.last_active),
        )
    if parcel.source is not None:
        connection.execute(
            "INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?)",
            (parcel.source.program, parcel.source.name, parcel.conversation, at),
        )
    return Receipt(parcel.conversation, True, sum(len(rows) for _, rows in parcel.segments), tuple(renamed))


def _known(connection: Connection, parcel: Parcel) -> ConversationId | None:
    """The conversation here that the parcel is, whole or in part."""
    if parcel.source is not None:
        found = connection.execute(
            "SELECT conversation FROM imports WHERE origin = ? AND foreign_id = ?",
            (parcel.source.program, parcel.source.name),
        ).fetchone()
        if found is not None:
            return ConversationId(found[0])
    names = [record.session.id for record, _ in parcel.segments]
    found = connection.execute(
        f"SELECT conversation FROM sessions WHERE id IN ({marks(names)}) LIMIT 1", names
    ).fetchone()
    return None if found is None else ConversationId(found[0])


def _same(connection: Connection, parcel: Parcel) -> Mapping[int, int]:
    """Rows that are here under their own ids already."""
    same: dict[int, int] = {}
    for record, rows in parcel.segments:
        here = {
            row[0] for row in connection.execute("SELECT id FROM messages WHERE session_id = ?", (record.session.id,))
        }
        same |= {row.id: row.id for row in rows if row.id in here}
    return same


def _segment(connection: Connection, record: Record) -> tuple[str, str] | None:
    """Write the session's own row; gives its title and what that became, where it had to change."""
    session = record.session
    title = None if session.title is None else naming.free(connection, session.title)
    facts = {name: getattr(session, name) for name in SEGMENT} | {"title": title, "api_calls": record.api_calls}
    facts |= {name: getattr(session.usage, name) for name in SPENT}
    connection.execute(
        f"INSERT INTO sessions ({', '.join(facts)}) VALUES ({marks(facts)})",
        tuple(facts.values()),
    )
    return None if title is None or session.title is None or title == session.title else (session.title, title)


def _rows(connection: Connection, indexer: Indexer, parcel: Parcel, ids: dict[int, int]) -> None:
    """All segments' rows in the order of their ids: that is the order in which they were said."""
    rows = sorted((row for _, rows in parcel.segments for row in rows), key=lambda row: row.id)
    keep = _are_free(connection, [row.id for row in rows])
    for row in rows:
        ids[row.id] = insert(connection, indexer, row.session_id, row.turn, row, row_id=row.id if keep else None)
    connection.executemany(
        "UPDATE messages SET undone_by = ? WHERE id = ?",
        [(ids.get(row.undone_by, row.undone_by), ids[row.id]) for row in rows if row.undone_by is not None],
    )


def _view(connection: Connection, record: Record, ids: Mapping[int, int]) -> None:
    """What the session shows; entries whose row never came show nothing."""
    entries = [entry for entry in record.view if entry.message_id in ids]
    connection.executemany(
        "INSERT INTO views VALUES (?, ?, ?, ?)",
        [
            (record.session.id, position, ids[entry.message_id], entry.replacement)
            for position, entry in enumerate(entries)
        ],
    )


def _are_free(connection: Connection, ids: Sequence[int]) -> bool:
    pages = (ids[start : start + ID_PAGE] for start in range(0, len(ids), ID_PAGE))
    return not any(
        connection.execute(f"SELECT 1 FROM messages WHERE id IN ({marks(page)}) LIMIT 1", page).fetchone()
        for page in pages
    )
