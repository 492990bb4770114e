"""Reading the log of the Codex CLI as a conversation: one JSON object a line.

Newer versions wrap each line as `{timestamp, type, payload}`, older ones wrote the bare items after a first line about
the session. What that program tells its model by itself stays out, and so do events, which repeat the items.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.sessions.imports.arrival import Parcel, Source
from hermes.sessions.imports.building import Calls, flat, mapping, modified, moment, name, records, single
from hermes.sessions.model import Kind, NewMessage, Role, ToolCall

PROGRAM = "codex"

_WRAPPERS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""Items that call a tool, and what holds the arguments."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_ITEMS = frozenset({"message", "reasoning", *_CALLS, *_RESULTS})
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<recommended_plugins>",
    "<turn_aborted>",
)
"""How text starts that the program puts into the mouth of its user."""

Facts = Mapping[str, Any]


def parcels(path: Path) -> Iterator[Parcel]:
    """The conversation of a log, if it has words in it.

    Raises UserError when the file cannot be read, or has lines of which none is the Codex CLI's.
    """
    talk = _Talk(modified(path))
    for facts in records(path, _is_known, "the Codex CLI"):
        talk.take(facts)
    if talk.rows:
        yield talk.parcel(name(path.stem) or PROGRAM)


def _is_known(facts: Facts) -> bool:
    kind = name(facts.get("type"))
    if isinstance(facts.get("payload"), dict):
        return kind in _WRAPPERS
    return kind in _ITEMS or _is_first(facts)


def _is_first(facts: Facts) -> bool:
    """Whether it is the line about the session that older logs begin with."""
    return "type" not in facts and name(facts.get("id")) is not None and moment(facts.get("timestamp")) is not None


@dataclass(slots=True)
class _Talk:
    """What the lines have said so far."""

    at: float
    rows: list[NewMessage] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    id: str | None = None
    started_at: float | None = None
    model: str | None = None
    provider: str | None = None
    cwd: str | None = None
    git_branch: str | None = None

    def take(self, facts: Facts) -> None:
        """Add what a line says."""
        self.at = moment(facts.get("timestamp")) or self.at
        wrapped = isinstance(facts.get("payload"), dict)
        kind, payload = (facts["type"], facts["payload"]) if wrapped else (None, facts)
        if kind == "session_meta" or (kind is None and _is_first(facts)):
            self._meet(payload)
        elif kind == "turn_context":
            self.model = name(payload.get("model")) or self.model
            self.cwd = self.cwd or name(payload.get("cwd"))
        elif kind == "compacted":
            self._say(Role.USER, flat(payload.get("message")), Kind.SUMMARY)
        elif kind in {None, "response_item"}:
            self._add(payload)

    def parcel(self, fallback: str) -> Parcel:
        """The whole; `fallback` is its name where the log does not say one."""
        first = min(row.at for row in self.rows)
        return single(
            Source(PROGRAM, self.id or fallback),
            self.rows,
            first if self.started_at is None else self.started_at,
            model=self.model,
            provider=self.provider,
            cwd=self.cwd,
            git_branch=self.git_branch,
        )

    def _meet(self, meta: Facts) -> None:
        """The first line about a session is about this one; a fork has those of its ancestors after it."""
        if self.id is None:
            self.id = name(meta.get("id"))
            self.started_at = moment(meta.get("timestamp"))
            self.cwd = name(meta.get("cwd")) or self.cwd
            self.provider = name(meta.get("model_provider"))
            self.git_branch = name(mapping(meta.get("git")).get("branch"))

    def _add(self, item: Facts) -> None:
        kind, role = name(item.get("type")), name(item.get("role"))
        if kind == "message" and role in _ROLES:
            self._say(_ROLES[role], _words(item), Kind.TALK)
        elif kind in _CALLS:
            self._say(Role.ASSISTANT, "", Kind.TALK, self._call(item))
        elif kind in _RESULTS:
            call, tool = self.calls.answered(item.get("call_id") or item.get("id"))
            self.rows.append(
                NewMessage(
                    role=Role.TOOL,
                    kind=Kind.TOOL,
                    content=flat(item.get("output")),
                    at=self.at,
                    tool_call_id=call,
                    tool_name=tool,
                )
            )

    def _call(self, item: Facts) -> ToolCall:
        kind = item["type"]
        arguments = item.get(_CALLS[kind])
        if kind == "custom_tool_call":
            arguments = {"input": arguments}  # a text in a language of the tool's own, and arguments are JSON here
        tool = "local_shell" if kind == "local_shell_call" else item.get("name")
        return self.calls.asked(item.get("call_id") or item.get("id"), tool, arguments)

    def _say(self, role: Role, words: str, kind: Kind, *calls: ToolCall) -> None:
        if words or calls:
            self.rows.append(NewMessage(role=role, kind=kind, content=words, at=self.at, tool_calls=calls))


def _words(item: Facts) -> str:
    """The words of a message, without the parts that are the program's own."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [content]
    return flat([part for part in parts if item["role"] != "user" or not flat([part]).lstrip().startswith(_CONTEXT)])
