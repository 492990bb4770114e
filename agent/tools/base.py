"""What a tool is to the loop."""

from dataclasses import dataclass
from typing import Any, Protocol

from hermes.agent.models.base import ToolSpec
from hermes.sessions.model import ConversationId, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """On whose behalf a tool runs. An argument, never ambient."""

    conversation: ConversationId
    scope: Scope
    role: str
    """owner, trusted or guest."""
    memory_owner: str
    """Whose memory files apply: a stable id of the person or the room, `owner` for the owner."""
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model is shown. `failed` marks an error that the model can react to."""

    text: str
    failed: bool = False


class Tool(Protocol):
    """Something that the model can ask for.

    Raises UserError when the arguments make no sense: its text goes to the model. Anything else that is raised
    is told to the model in one line and logged.
    """

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult: ...
