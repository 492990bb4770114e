"""A history that every provider takes.

Providers refuse a request whose tool calls and results do not pair up: each result has its call directly before it
(other results of the same row may stand between them), each call has exactly one result, and no id is used twice.
Stored histories break that when a turn dies between a call and its result, when results come late, or when a small
model numbers its calls afresh each turn.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hermes.sessions.model import Kind, Message, Role, ToolCall

SYNTHETIC = 0
"""The id of rows that stand in no store: ids there start at 1."""

Slot = tuple[int, int]
"""Where a call is: the position of its row, and its own position in that row."""


def validate_and_repair(messages: Iterable[Message], note: str) -> tuple[Message, ...]:
    """`messages` with calls and results paired up; a history that is sound comes back equal.

    Results move directly behind their calls, in the calls' order. Results without a call, second results of a call
    and rows that appear twice are dropped. A call without a result is answered by a row that says `note`, with the
    id SYNTHETIC. A call id that was used before gets a suffix, in the call and in its result.
    """
    rows = tuple(_each_once(messages))
    results = _match(rows)
    taken: set[str] = set()
    repaired: list[Message] = []
    for position, row in enumerate(rows):
        if row.tool_calls:
            found = [results.get((position, index)) for index in range(len(row.tool_calls))]
            repaired += _exchange(row, found, taken, note)
        elif row.role is not Role.TOOL:
            repaired.append(row)
    return tuple(repaired)


def _each_once(messages: Iterable[Message]) -> Iterator[Message]:
    seen: set[int] = set()
    for row in messages:
        if row.id == SYNTHETIC or row.id not in seen:
            seen.add(row.id)
            yield row


def _match(rows: Sequence[Message]) -> dict[Slot, Message]:
    """The first result of each call.

    A result answers the latest row before it that used its id: a new call with an old id closes the old one. A
    result that precedes every such call belongs to a call that is gone.
    """
    waiting: dict[str, deque[Slot]] = {}
    results: dict[Slot, Message] = {}
    for position, row in enumerate(rows):
        for call in row.tool_calls:
            waiting[call.id] = deque()
        for index, call in enumerate(row.tool_calls):
            waiting[call.id].append((position, index))
        if row.tool_call_id is not None and (slots := waiting.get(row.tool_call_id)):
            results[slots.popleft()] = row
    return results


def _exchange(row: Message, results: Sequence[Message | None], taken: set[str], note: str) -> Iterator[Message]:
    calls = tuple(_unique(call, taken) for call in row.tool_calls)
    yield row if calls == row.tool_calls else replace(row, tool_calls=calls)
    for call, result in zip(calls, results, strict=True):
        if result is None:
            yield _unanswered(row, call, note)
        else:
            yield result if result.tool_call_id == call.id else replace(result, tool_call_id=call.id)


def _unique(call: ToolCall, taken: set[str]) -> ToolCall:
    base = name = call.id or "call"
    times = 1
    while name in taken:
        times += 1
        name = f"{base}_{times}"
    taken.add(name)
    return call if name == call.id else replace(call, id=name)


def _unanswered(row: Message, call: ToolCall, note: str) -> Message:
    return Message(
        id=SYNTHETIC,
        session_id=row.session_id,
        turn=row.turn,
        role=Role.TOOL,
        kind=Kind.TOOL,
        content=note,
        at=row.at,
        tool_call_id=call.id,
        tool_name=call.name,
    )
