"""What the readers of other programs' logs share: values that may be missing or strange, and the counters of a session.

Nothing here raises for what a line holds. A log is damaged where its program was killed, and other versions write
other things; what cannot be read counts as not being there.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from hermes.errors import UserError
from hermes.sessions import titles
from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.model import (
    ConversationId,
    Kind,
    Message,
    NewMessage,
    Role,
    Session,
    SessionId,
    ToolCall,
)
from hermes.sessions.records import Record
from hermes.sessions.rows import appended
from hermes.sessions.turns import PREVIEW
from hermes.text import one_line, repair

IMPORTED = "imported"
"""Why a conversation ended for which its own program gave no reason."""

_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_LARGEST = 2**63 - 1
_UNNAMED = "unknown"
_LABEL = 30
_PICTURES = frozenset({"image", "image_url", "input_image"})
_HIDDEN = frozenset({"thinking", "redacted_thinking", "reasoning"})


def records(path: Path, understood: Callable[[Mapping[str, Any]], bool], program: str) -> Iterator[Mapping[str, Any]]:
    """The lines of a log that are `understood`, each a JSON object; all others are passed over.

    Raises UserError when the file cannot be read, and when it has lines but none of them is `program`'s.
    """
    strange = known = False
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            for line in filter(str.strip, lines):
                facts = from_json(line)
                if isinstance(facts, dict) and understood(facts):
                    known = True
                    yield facts
                else:
                    strange = True
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if strange and not known:
        raise UserError(f"{path} is no log of {program}: not one of its lines is. Nothing of it was imported.")


def modified(path: Path) -> float:
    """When a file was last written: the time of rows that bear none. Raises UserError when it cannot be read."""
    try:
        return moment(path.stat().st_mtime) or 0.0
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def from_json(text: str) -> Any:
    """What the JSON says; None where it is none, or nested deeper than Python goes."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def to_json(value: object) -> str:
    """`value` as JSON; `{}` where it is nested deeper than Python goes."""
    try:
        return repair(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "{}"


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object of JSON; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def name(value: object) -> str | None:
    """`value` as a name: a text that is not empty, or a whole number in digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return repair(value) if isinstance(value, str) and value else None


def number(value: object) -> int:
    """`value` as a count that a database holds; 0 for everything else."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= _LARGEST else 0


def amount(value: object) -> float:
    """`value` as a sum of money; 0 for everything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < math.inf else 0.0


def moment(value: object) -> float | None:
    """A time in ISO (UTC where no zone is given) or in seconds; None for what is none between 1970 and 9999."""
    if isinstance(value, str):
        try:
            said = datetime.fromisoformat(value)
        except ValueError:
            return None
        value = (said if said.tzinfo is not None else said.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) and 0 <= value <= _LAST_MOMENT:
        return float(value)
    return None


def flat(content: object) -> str:
    """Content as plain text: the parts of a list one below the other, those that are no text as `[image]` and such."""
    inner = content.get("content") if isinstance(content, dict) else None
    parts = content if inner is None else inner
    if isinstance(parts, list):
        return "\n".join(filter(None, map(_part, parts)))
    return _part(parts)


def title(text: object) -> str | None:
    """`text` as a title, shortened where it is too long; None when nothing is left."""
    if not isinstance(text, str):
        return None
    try:
        return titles.clean(text)
    except UserError:  # its advice is for a person who types a title
        return titles.clean(one_line(text, titles.LIMIT))


def numbered(session: SessionId, rows: Sequence[NewMessage], numbers: Iterator[int]) -> tuple[Message, ...]:
    """The rows of a session under the next numbers."""
    return tuple(appended(row, next(numbers), session, None) for row in rows)


def counted(session: Session, rows: Sequence[Message]) -> Session:
    """The session with the counters, the preview and the last activity that its rows make."""
    said = [row for row in rows if row.kind in {Kind.TALK, Kind.TOOL}]
    first = next((row.content for row in said if row.role is Role.USER), "")
    return replace(
        session,
        message_count=len(said),
        tool_call_count=sum(len(row.tool_calls) for row in said),
        preview=one_line(first, PREVIEW),
        last_active=max([session.started_at, *(row.at for row in said)]),
    )


def single(
    source: Source, rows: Sequence[NewMessage], started_at: float, *, api_calls: int = 0, **facts: Any
) -> Parcel:
    """A conversation of one segment that has ended; `facts` are what is known of its session.

    Its id is the same whenever it is imported: the start in UTC, and a hash of its name there.
    """
    stamp = datetime.fromtimestamp(started_at, UTC).strftime("%Y%m%d_%H%M%S")
    identity = SessionId(f"{stamp}_{hashlib.sha256(source.name.encode()).hexdigest()[:8]}")
    session = Session(
        id=identity,
        conversation=ConversationId(identity),
        source=source.program,
        started_at=started_at,
        last_active=started_at,
        **facts,
    )
    messages = numbered(identity, rows, count(1))
    session = counted(session, messages)
    session = replace(session, ended_at=session.last_active, end_reason=IMPORTED)
    return Parcel(((Record(session=session, tip=identity, api_calls=api_calls), messages),), source)


class Calls:
    """The tool calls of a conversation so far: each gets an id, and each result the id and the name of its call."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._names: dict[str, str | None] = {}
        self._open: dict[str, None] = {}

    def asked(self, call: object, tool: object, arguments: object) -> ToolCall:
        """A call; `call` is its id, and where that is missing one is made up."""
        identity = name(call) or self._made_up()
        self._names[identity] = name(tool) or _UNNAMED
        self._open[identity] = None
        written = "{}" if arguments is None else arguments
        return ToolCall(
            id=identity,
            name=name(tool) or _UNNAMED,
            arguments=repair(written) if isinstance(written, str) else to_json(written),
        )

    def answered(self, call: object) -> tuple[str, str | None]:
        """The id of the call that a result answers, and the name of its tool.

        A result without an id answers the oldest open call; without one, it gets an id that no call has.
        """
        identity = name(call) or next(iter(self._open), None) or self._made_up()
        self._open.pop(identity, None)
        return identity, self._names.setdefault(identity, None)

    def _made_up(self) -> str:
        return next(made for n in self._numbers if (made := f"call_{n}") not in self._names)


def _part(part: object) -> str:
    if part is None:
        return ""
    if isinstance(part, str):
        return repair(part)
    if not isinstance(part, dict):
        return to_json(part)
    kind = name(part.get("type"))
    if kind in _HIDDEN:
        return ""
    if isinstance(part.get("text"), str):
        return repair(part["text"])
    if kind is None:
        return to_json(part)
    return "[image]" if kind in _PICTURES else f"[{one_line(kind, _LABEL)}]"
