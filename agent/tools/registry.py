"""The one door through which a model's calls reach the tools: rights, arguments, failures and size."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from hermes.agent.models.base import ToolSpec
from hermes.agent.tools.base import Tool, ToolContext, ToolResult
from hermes.errors import HermesError
from hermes.sessions.model import ToolCall
from hermes.text import one_line, repair

log = structlog.get_logger(__name__)

LONGEST = 50_000
"""Characters of one result; more would push the conversation out of the window."""
REASON = 500
"""Characters of why a tool failed."""

ANY = "*"
RIGHTS: Mapping[str, frozenset[str]] = {
    "owner": frozenset({ANY}),
    "trusted": frozenset({ANY}),
    "guest": frozenset({"session_search", "memory"}),
}
"""Which tools a role may use, ANY for all. A role that is not here may use none."""


class Toolbox:
    """The tools of one agent.

    The list in the prompt does not depend on who speaks, so that it can be cached; the right is judged at each call.
    """

    def __init__(self, tools: Sequence[Tool], rights: Mapping[str, frozenset[str]] = RIGHTS) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._rights = rights

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of."""
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """The call's result. Nothing that a tool raises gets past this; only a cancellation does."""
        try:
            tool = self._allowed(call.name, context.role)
            result = await tool(_arguments(call), context)
        except HermesError as error:
            return _failed(str(error))
        except Exception as error:
            log.exception("tool.failed", tool=call.name, call=call.id)
            return _failed(one_line(f"{call.name} failed: {type(error).__name__}: {error}", REASON))
        return ToolResult(text=_capped(repair(result.text)), failed=result.failed)

    def _allowed(self, name: str, role: str) -> Tool:
        if name not in self._tools:
            raise _Refused(f"There is no tool {name!r}. There are: {', '.join(self._tools) or 'none'}.")
        if not self._rights.get(role, frozenset()) & {name, ANY}:
            raise _Refused(f"The person you talk to is a {role} and may not use {name}. Answer without it.")
        return self._tools[name]


class _Refused(HermesError):
    """A call that reaches no tool."""


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object. Models write an empty string for none."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise _Refused(
            f"The arguments of {call.name} are not JSON: {error}. Call it again with a JSON object."
        ) from error
    if not isinstance(arguments, dict):
        raise _Refused(f"The arguments of {call.name} are not a JSON object. Send one.")
    return arguments


def _failed(text: str) -> ToolResult:
    return ToolResult(text=_capped(repair(text)), failed=True)


def _capped(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[cut: {len(text) - LONGEST} of {len(text)} characters are not shown]"
