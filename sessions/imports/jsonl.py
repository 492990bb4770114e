"""Reading an export of another Hermes store, checked to its last line before anything is written."""

from collections.abc import Iterator
from pathlib import Path

from hermes.errors import UserError
from hermes.sessions.imports.arrival import Parcel
from hermes.sessions.model import Message
from hermes.sessions.records import Record, read


def parcels(path: Path) -> Iterator[Parcel]:
    """The conversations of a file, one at a time. Raises UserError that names the line."""
    segments: list[tuple[Record, tuple[Message, ...]]] = []
    for segment in _segments(path):
        if segments and segments[0][0].session.conversation != segment[0].session.conversation:
            yield Parcel(tuple(segments))
            segments = []
        segments.append(segment)
    if segments:
        yield Parcel(tuple(segments))


def _segments(path: Path) -> Iterator[tuple[Record, tuple[Message, ...]]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    if line.strip():
                        yield read(line)
                except UserError as error:
                    raise UserError(f"{path}, line {number}: {error}. Nothing was imported.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8, so it is no export. Nothing was imported.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
