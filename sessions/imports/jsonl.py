"""Reading an export of another Hermes store, checked to its last line before anything is written.

Lines of one conversation need not stand together: files may have been sorted or joined.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

from hermes.errors import UserError
from hermes.sessions.imports.arrival import Parcel
from hermes.sessions.model import ConversationId, Message, SessionId
from hermes.sessions.records import Record, read

Segment = tuple[Record, tuple[Message, ...]]


def parcels(path: Path) -> Iterator[Parcel]:
    """The conversations of a file, the first begun first. Raises UserError that names the line."""
    with _opened(path) as file:
        for places in _index(path, file).values():
            yield _parcel([_segment(path, file, *place) for place in places])


def _parcel(segments: list[Segment]) -> Parcel:
    """The conversation; one that was cut off while it was exported goes on at its last segment."""
    ids = {record.session.id for record, _ in segments}
    last = segments[-1][0].session.id
    whole = [(record if record.tip in ids else replace(record, tip=last), rows) for record, rows in segments]
    return Parcel(tuple(whole))


def _index(path: Path, file: BufferedReader) -> dict[ConversationId, list[tuple[int, int]]]:
    """Line number and place of each line, by conversation. Raises UserError for a line that is no session."""
    found: dict[ConversationId, list[tuple[int, int]]] = {}
    seen: dict[SessionId, int] = {}
    place = 0
    for number, line in enumerate(file, start=1):
        if line.strip():
            session = _segment(path, file, number, place, line)[0].session
            if session.id in seen:
                raise _refusal(path, number, f"it repeats session {session.id} of line {seen[session.id]}")
            seen[session.id] = number
            found.setdefault(session.conversation, []).append((number, place))
        place += len(line)
    return found


def _segment(path: Path, file: BufferedReader, number: int, place: int, line: bytes | None = None) -> Segment:
    if line is None:
        file.seek(place)
        line = file.readline()
    try:
        return read(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refusal(path, number, "it is no text in UTF-8") from error
    except UserError as error:
        raise _refusal(path, number, str(error)) from error


def _refusal(path: Path, number: int, why: str) -> UserError:
    return UserError(f"{path}, line {number}: {why}. Nothing was imported.")


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
