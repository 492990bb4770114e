"""A conversation in a few lines, for who comes back to it. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from hermes.sessions.model import Kind, Message, Role
from hermes.text import one_line

SHOWN = 10
"""Messages; the earlier ones are counted."""
QUESTION_CAP = 300
ANSWER_CAP = 200
ANSWER_LINES = 3


def recap(rows: Sequence[Message]) -> list[str]:
    """The last messages, a line each or a few: ● a person, ◆ the agent. Results and summaries are left out."""
    told = [line for row in rows if (line := _told(row))]
    earlier = len(told) - SHOWN
    opening = [f"… {earlier} earlier messages …"] if earlier > 0 else []
    return [*opening, *(line for lines in told[-SHOWN:] for line in lines)]


def _told(row: Message) -> list[str]:
    if row.kind not in {Kind.TALK, Kind.TOOL}:
        return []
    if row.role is Role.USER:
        name = f"{one_line(row.sender.name, 40)}: " if row.sender and row.sender.name else ""
        return [f"● {name}{one_line(row.content, QUESTION_CAP)}"]
    if row.role is Role.ASSISTANT:
        return [*_answer(row.content), *_calls(call.name for call in row.tool_calls)]
    return []


def _answer(text: str) -> list[str]:
    lines = [one_line(line, ANSWER_CAP) for line in text[: ANSWER_CAP + 1].splitlines() if line.strip()]
    kept = lines[:ANSWER_LINES]
    if kept and (len(lines) > len(kept) or len(text) > ANSWER_CAP) and not kept[-1].endswith("…"):
        kept[-1] += " …"
    return [f"{'◆' if number == 0 else ' '} {line}" for number, line in enumerate(kept)]


def _calls(names: Iterable[str]) -> list[str]:
    counted = Counter(names)
    if not counted:
        return []
    number = counted.total()
    return [f"  [{number} tool call{'s' if number > 1 else ''}: {', '.join(counted)}]"]
