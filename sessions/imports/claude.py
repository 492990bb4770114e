"""Reading the log of Claude Code as conversations: one JSON object a line, most of them a piece of a message.

What that program says to itself stays out: side chains of its agents, meta lines, thinking, the echo of its own
commands.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.imports.building import (
    Calls,
    flat,
    mapping,
    modified,
    moment,
    name,
    number,
    records,
    single,
    title,
)
from hermes.sessions.model import Kind, NewMessage, Role, Usage

PROGRAM = "claude"

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Lines that hold a title and where in them; a later kind counts more."""
_BY_PERSON = list(_TITLES).index("custom-title")
_KINDS = frozenset({"user", "assistant", "system", "file-history-snapshot", "queue-operation", "progress", *_TITLES})
_SYNTHETIC = "<synthetic>"
"""The model of what that program says in a model's place."""
_ECHO = "<local-command-"
_COMMAND = re.compile(
    r"\s*(?:<command-message>.*?</command-message>\s*)?<command-name>\s*(?P<name>[^<\s]+)\s*</command-name>", re.DOTALL
)
_ARGUMENTS = re.compile(r"<command-args>(?P<arguments>.*?)</command-args>", re.DOTALL)

Facts = Mapping[str, Any]


def parcels(path: Path) -> Iterator[Parcel]:
    """The conversations of a log, one for each session that has words in it; a line that comes again counts once.

    Raises UserError when the file cannot be read, or has lines of which none is Claude Code's.
    """
    talks: dict[str, _Talk] = {}
    homes: dict[str, str] = {}
    titles: list[Facts] = []
    since = modified(path)
    for facts in records(path, _is_known, "Claude Code"):
        uuid, session = name(facts.get("uuid")), name(facts.get("sessionId")) or name(path.stem) or PROGRAM
        if facts["type"] in _TITLES:
            titles.append(facts)
        elif facts["type"] in {"user", "assistant"} and (uuid is None or uuid not in homes):
            homes |= {} if uuid is None else {uuid: session}
            talks.setdefault(session, _Talk(since)).take(facts)
    _give_titles(talks, homes, titles)
    yield from (talk.parcel(session) for session, talk in talks.items() if talk.rows)


def _is_known(facts: Facts) -> bool:
    kind = facts.get("type")
    return isinstance(kind, str) and (kind in _KINDS or "sessionId" in facts)


@dataclass(slots=True)
class _Talk:
    """What the lines of one session have said so far."""

    at: float
    rows: list[NewMessage] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    usage: dict[str, Usage] = field(default_factory=dict)
    """By message of the model: its pieces repeat the figures, and the last one has them whole."""
    title: str | None = None
    rank: int = -1
    model: str | None = None
    cwd: str | None = None
    git_branch: str | None = None

    def take(self, facts: Facts) -> None:
        """Add what a line says."""
        if facts.get("isSidechain") or facts.get("isMeta"):
            return
        said = facts.get("message")
        message = mapping({"content": said} if isinstance(said, str) else said)
        self.at = moment(facts.get("timestamp")) or self.at
        self.cwd = self.cwd or name(facts.get("cwd"))
        self.git_branch = self.git_branch or name(facts.get("gitBranch"))
        if facts["type"] == "assistant":
            self._account(message)
            self.rows += _answer(message, self.calls, self.at)
        elif facts.get("isCompactSummary"):
            summary = flat(message.get("content"))
            self.rows.append(NewMessage(role=Role.USER, kind=Kind.SUMMARY, content=summary, at=self.at))
        else:
            self.rows += _question(message, self.calls, self.at)

    def call_it(self, text: object, rank: int) -> None:
        """Take a title, unless there is a better one."""
        called = title(text)
        if called is not None and rank >= self.rank:
            self.title, self.rank = called, rank

    def parcel(self, session: str) -> Parcel:
        return single(
            Source(PROGRAM, session),
            self.rows,
            min(row.at for row in self.rows),
            api_calls=len(self.usage),
            title=self.title,
            title_by_person=self.rank == _BY_PERSON,
            model=self.model,
            usage=sum(self.usage.values(), Usage()),
            cwd=self.cwd,
            git_branch=self.git_branch,
        )

    def _account(self, message: Facts) -> None:
        model, identity = name(message.get("model")), name(message.get("id"))
        if model is not None and model != _SYNTHETIC:
            self.model = model
        if identity is not None:
            spent = mapping(message.get("usage"))
            self.usage[identity] = Usage(
                input_tokens=number(spent.get("input_tokens")),
                output_tokens=number(spent.get("output_tokens")),
                cache_read_tokens=number(spent.get("cache_read_input_tokens")),
                cache_write_tokens=number(spent.get("cache_creation_input_tokens")),
            )


def _give_titles(talks: Mapping[str, _Talk], homes: Mapping[str, str], titles: list[Facts]) -> None:
    """A summary names the line that it ends with; where that is not here, it is about how this log begins."""
    for facts in titles:
        kind = facts["type"]
        home = name(facts.get("sessionId")) or homes.get(name(facts.get("leafUuid")) or "")
        talk = talks.get(home or next(iter(talks), ""))
        if talk is not None:
            talk.call_it(facts.get(_TITLES[kind]), -1 if home is None else list(_TITLES).index(kind))


def _answer(message: Facts, calls: Calls, at: float) -> Iterator[NewMessage]:
    words, uses = _apart(message.get("content"), "tool_use")
    asked = tuple(calls.asked(one.get("id"), one.get("name"), one.get("input")) for one in uses)
    if words or asked:
        yield NewMessage(role=Role.ASSISTANT, content=words, at=at, tool_calls=asked)


def _question(message: Facts, calls: Calls, at: float) -> Iterator[NewMessage]:
    words, results = _apart(message.get("content"), "tool_result")
    for one in results:
        call, tool = calls.answered(one.get("tool_use_id"))
        yield NewMessage(
            role=Role.TOOL, kind=Kind.TOOL, content=flat(one.get("content")), at=at, tool_call_id=call, tool_name=tool
        )
    typed = _typed(words)
    if typed:
        yield NewMessage(role=Role.USER, content=typed, at=at)


def _apart(content: object, kind: str) -> tuple[str, list[Facts]]:
    """The words of some content, and its blocks of one kind."""
    blocks = content if isinstance(content, list) else [content]
    of_kind = [mapping(block).get("type") == kind for block in blocks]
    words = flat([block for block, is_one in zip(blocks, of_kind, strict=True) if not is_one])
    return words, [block for block, is_one in zip(blocks, of_kind, strict=True) if is_one]


def _typed(words: str) -> str:
    """What a person typed: a command as they wrote it, and nothing of what it echoed."""
    if words.lstrip().startswith(_ECHO):
        return ""
    command, arguments = _COMMAND.match(words), _ARGUMENTS.search(words)
    if command is None:
        return words
    return f"{command['name']} {'' if arguments is None else arguments['arguments'].strip()}".strip()
