"""_Rows that do not agree with other rows: conversations, sessions, counters, and what points nowhere."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hermes.sessions import removal
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.trouble import Check, Fault, Watch, number, rest
from hermes.sessions.model import SessionId
from hermes.sessions.optimise import writing
from hermes.sessions.rows import marks
from hermes.sessions.turns import PREVIEW
from hermes.text import one_line

CHUNK = 50
"""_Rows that are put right in one transaction: a long session is counted in 5 ms."""
SOURCE = "repair"
"""Where sessions that had to be made up for their messages come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """_Rows that a question finds by id, and that a statement puts right; it looks again at those `{these}`."""

    what: str
    wrong: str
    fix: str
    done: str

    def find(self, connection: Connection) -> str | None:
        ids = self._ids(connection)
        return f"{self.what}: {len(ids)} (such as {ids[0]})." if ids else None

    def mend(self, connection: Connection, _watch: Watch) -> Iterator[str]:
        ids = self._ids(connection)
        for start in range(0, len(ids), CHUNK):
            these = ids[start : start + CHUNK]
            with writing(connection):
                connection.execute(self.fix.replace("{these}", marks(these)), these)
            rest()
        yield f"{self.done}: {len(ids)}."

    def _ids(self, connection: Connection) -> list[str]:
        return [row[0] for row in connection.execute(self.wrong)]


_KEPT = "NOT IN (SELECT conversation FROM doomed)"
_CHILD = (
    "SELECT 1 FROM sessions k WHERE k.parent = {0}.id AND k.link = 'compression' AND k.conversation = {0}.conversation"
)

_EMPTY = _Rows(
    what="Conversations without any session",
    wrong=f"SELECT c.id FROM conversations c WHERE c.id {_KEPT}"
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = c.id)",
    fix="DELETE FROM conversations WHERE id IN ({these})"
    " AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = conversations.id)",
    done="Conversations without any session were removed, and the routes that led to them",
)
_TIP = _Rows(
    what="Conversations that do not lead to their newest session",
    wrong="SELECT c.id FROM conversations c LEFT JOIN sessions t ON t.id = c.tip"
    f" WHERE c.id {_KEPT} AND EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = c.id)"
    f" AND (t.conversation IS NOT c.id OR t.end_reason IS 'compression' AND EXISTS ({_CHILD.format('t')}))",
    fix="UPDATE conversations SET tip = (SELECT s.id FROM sessions s WHERE s.conversation = conversations.id"
    f" ORDER BY EXISTS ({_CHILD.format('s')}), s.started_at DESC, s.rowid DESC LIMIT 1)"
    " WHERE id IN ({these}) AND EXISTS (SELECT 1 FROM sessions s WHERE s.conversation = conversations.id)",
    done="Conversations lead to their newest session again",
)
_CLOSED = "ended_at IS NOT NULL AND {0}.end_reason = 'compression' AND NOT EXISTS (" + _CHILD + ")"
_COMPACTED = _Rows(
    what="Sessions that a compression has closed without one that goes on",
    wrong="SELECT t.id FROM conversations c JOIN sessions t ON t.id = c.tip AND t.conversation = c.id"
    f" WHERE c.id {_KEPT} AND t.{_CLOSED.format('t')}",
    fix=f"UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id IN ({{these}})"
    f" AND {_CLOSED.format('sessions')}",
    done="Sessions that a compression had closed are open again",
)
_COUNTED = "SELECT count(*) FROM messages m WHERE m.session_id = {}.id AND m.kind IN ('talk', 'tool')"
_COUNTERS = _Rows(
    what="Sessions that count their messages wrongly",
    wrong=f"SELECT s.id FROM sessions s WHERE s.conversation {_KEPT} AND s.message_count <> ({_COUNTED.format('s')})",
    fix=f"UPDATE sessions SET message_count = ({_COUNTED.format('sessions')}) WHERE id IN ({{these}})",
    done="Messages of sessions were counted again",
)

_LEAVES = (
    ("views", "session_id", "sessions"),
    ("views", "message_id", "messages"),
    ("routes", "conversation", "conversations"),
    ("handoffs", "conversation", "conversations"),
    ("approvals", "conversation", "conversations"),
)
"""_Rows that mean nothing without the row that they name."""


def _find_strays(connection: Connection) -> str | None:
    found = Counter(row[0] for row in connection.execute("PRAGMA foreign_key_check"))
    if not found:
        return None
    return f"_Rows that belong to rows which are not there: {', '.join(f'{n} {table}' for table, n in found.items())}."


def _mend_strays(connection: Connection, _watch: Watch) -> Iterator[str]:
    """Messages get a session, sessions a conversation, so that no word is lost; what only points somewhere goes."""
    homeless = connection.execute(
        "SELECT DISTINCT session_id FROM messages m"
        " WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.session_id)"
    ).fetchall()
    for (session,) in homeless:
        with writing(connection):
            _adopt(connection, session)
        rest()
    if homeless:
        yield f"Messages had lost their session; new ones hold them, of the source {SOURCE!r}: {len(homeless)}."
    with writing(connection):  # which of the sessions is the live one is seen to afterwards
        made = connection.execute(
            "INSERT INTO conversations (id, tip) SELECT DISTINCT s.conversation, '' FROM sessions s"
            " WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE c.id = s.conversation)"
        ).rowcount
    if made:
        yield f"Conversations of sessions were made again: {made}."
    for table, column, owner in _LEAVES:
        with writing(connection):
            gone = connection.execute(
                f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = {table}.{column})"
            ).rowcount
        if gone:
            yield f"_Rows of {table} whose {owner} are not there were removed: {gone}."


def _adopt(connection: Connection, session: SessionId) -> None:
    """Make a session, of a conversation of its own, for messages that have none."""
    first = connection.execute(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'user' AND kind = 'talk' ORDER BY id LIMIT 1",
        (session,),
    ).fetchone()
    connection.execute("INSERT OR IGNORE INTO conversations (id, tip) VALUES (?1, ?1)", (session,))
    connection.execute(
        "INSERT INTO sessions (id, conversation, source, started_at, last_active, message_count, preview)"
        " SELECT ?1, ?1, ?2, min(at), max(at), sum(kind IN ('talk', 'tool')), ?3 FROM messages WHERE session_id = ?1",
        (session, SOURCE, one_line(first[0], PREVIEW) if first else ""),
    )


def _find_doomed(connection: Connection) -> str | None:
    many = number(connection, "SELECT count(*) FROM doomed")
    return f"Conversations that were deleted are not all gone yet: {many}." if many else None


def _mend_doomed(connection: Connection, _watch: Watch) -> Iterator[str]:
    while _cleared(connection):
        rest()
    yield "What was left of deleted conversations is gone."


def _cleared(connection: Connection) -> bool:
    with writing(connection):
        return removal.clear(connection)


_HOME = "`hermes sessions repair` gives messages a session again, and removes what points nowhere."
_FINISH = "`hermes sessions repair` removes the rest now; the gateway does it, too."

STRAYS = Check(Fault.STRAYS, _find_strays, _HOME, _mend_strays)
EMPTY = Check(Fault.EMPTY, _EMPTY.find, "`hermes sessions repair` removes them.", _EMPTY.mend)
TIP = Check(Fault.TIP, _TIP.find, "`hermes sessions repair` leads them there.", _TIP.mend)
COMPACTED = Check(Fault.COMPACTED, _COMPACTED.find, "`hermes sessions repair` opens them again.", _COMPACTED.mend)
COUNTERS = Check(Fault.COUNTERS, _COUNTERS.find, "`hermes sessions repair` counts again.", _COUNTERS.mend)
DOOMED = Check(Fault.DOOMED, _find_doomed, _FINISH, _mend_doomed)
