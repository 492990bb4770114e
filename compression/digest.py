"""What is left of the middle when no model can sum it up: the facts that can be read off the rows.

Deterministic and bounded. It is a poor summary, and better than a hole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from hermes.compression.summary import SummaryRequest, compose, sections
from hermes.compression.tokens import clip, estimate_text
from hermes.sessions.model import Message, Role
from hermes.text import one_line

LAST_REQUESTS = 5
QUOTED = 600
"""Characters of each message that is quoted."""
PATHS = 40
SCANNED_CHARACTERS = 20_000
"""How much of a text is looked through for paths."""

PATH = re.compile(
    r"""(?<![\w.@+/:~-])(?:
        (?:~|\.{1,2})?/(?:[\w.@+-]+/)+[\w.@+-]*\w                  # /etc/hosts  ~/notes/a  ./src/main
      | (?:[\w.@+-]+/)+[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,4}\b         # src/main.py
      | [\w-]+\.(?:c|css|go|h|html|js|json|md|py|rs|sh|sql|toml|ts|txt|ya?ml)\b
    )""",
    re.ASCII | re.VERBOSE,
)

SHARES = {"Goal": 0.25, "Progress": 0.2, "Key Decisions": 0.2, "Files Modified": 0.15, "Next Steps": 0.2}
"""Of the budget, for each heading."""


def digest(request: SummaryRequest) -> str:
    """The five headings over facts from the rows, in about `request.budget` tokens; older notes keep up to half."""
    old = {heading: body for heading, body in sections(request.previous).items() if body != "None."}
    new = _facts(request.rows)
    if "Goal" in old:
        new["Goal"] = ""
    return compose(
        {
            heading: _joined(old.get(heading, ""), new[heading], int(share * request.budget))
            for heading, share in SHARES.items()
        }
    )


def _facts(rows: Sequence[Message]) -> dict[str, str]:
    asked = [row for row in rows if row.role is Role.USER and row.content]
    said = [row for row in rows if row.role is Role.ASSISTANT and row.content]
    used = Counter(call.name for row in rows for call in row.tool_calls)
    tools = ", ".join(f"{one_line(name, 64)} ({times})" for name, times in used.most_common())
    latest = [f"- {_quoted(row)}" for row in reversed(asked[-LAST_REQUESTS:])]
    return {
        "Goal": f"The first request was: {_quoted(asked[0])}" if asked else "",
        "Progress": f"{len(rows)} messages were exchanged. Tools used: {tools or 'none'}.",
        "Key Decisions": f"The assistant had last said: {_quoted(said[-1])}" if said else "",
        "Files Modified": "\n".join(f"{path} (mentioned)" for path in islice(_paths(rows), PATHS)),
        "Next Steps": "\n".join(["The last requests had been, the latest first:", *latest]) if asked else "",
    }


def _quoted(row: Message) -> str:
    return one_line(row.content[: 2 * QUOTED], QUOTED)


def _paths(rows: Sequence[Message]) -> Iterator[str]:
    """Paths in words and arguments, the latest first. Results of tools are full of paths that nobody touched."""
    seen: set[str] = set()
    for text in chain.from_iterable(map(_own_words, reversed(rows))):
        if "/" in text or "." in text:
            fresh = [path for path in PATH.findall(text[:SCANNED_CHARACTERS]) if path not in seen]
            seen.update(fresh)
            yield from dict.fromkeys(fresh)


def _own_words(row: Message) -> Iterable[str]:
    arguments = [call.arguments for call in row.tool_calls]
    return arguments if row.role is Role.TOOL else [*arguments, row.content]


def _joined(old: str, new: str, tokens: int) -> str:
    kept = clip(old, tokens // 2 if new else tokens)
    fresh = clip(new, tokens - estimate_text(kept) - 1)
    return "\n".join(filter(None, (kept.strip(), fresh.strip())))
