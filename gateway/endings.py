"""How a turn can end, and what is said then. Pure: an exception or a reply becomes an Ending."""

from dataclasses import dataclass

from hermes.agent.loop import Reply
from hermes.agent.models.base import Stop
from hermes.errors import (
    CompressionStuckError,
    ContextOverflow,
    HermesError,
    ModelError,
    ModelUnavailable,
    TurnLimit,
    UserError,
)
from hermes.redact import Redactor
from hermes.sessions.model import NewMessage, Outcome, Role, Usage
from hermes.texts import Texts

NOTHING = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The last write of a turn: what is kept, what is shown, and what becomes of the question."""

    outcome: Outcome
    why: str = ""
    shown: str = ""
    """Empty: nothing is shown."""
    kept: tuple[NewMessage, ...] = ()
    usage: Usage = NOTHING


def answered(reply: Reply, texts: Texts, at: float) -> Ending:
    """The model ended its answer."""
    text = reply.text.strip()
    if not text:
        key = "turn.refused" if reply.stop is Stop.REFUSED else "turn.empty_answer"
        return Ending(outcome=Outcome.DEAD, why=f"no words: {reply.stop}", shown=texts.say(key), usage=reply.usage)
    row = NewMessage(
        role=Role.ASSISTANT,
        content=reply.text,
        at=at,
        tokens=reply.usage.output_tokens or None,
        finish_reason=reply.stop.value,
    )
    return Ending(outcome=Outcome.ANSWERED, shown=reply.text, kept=(row,), usage=reply.usage)


def cut_short(why: str, text_so_far: str, texts: Texts, at: float) -> Ending:
    """A person (or a hang-up) stopped the turn: what was written so far is kept."""
    words = text_so_far.strip()
    row = NewMessage(role=Role.ASSISTANT, content=text_so_far, at=at, finish_reason=why)
    notice = texts.say("turn.interrupted" if why == "interrupted" else "turn.stopped")
    return Ending(
        outcome=Outcome.ABANDONED,
        why=why,
        shown=f"{words}\n\n{notice}".strip(),
        kept=(row,) if words else (),
    )


def is_expected(error: Exception) -> bool:
    """Whether Hermes raises it on purpose; anything else is a bug and goes to the log with its traceback."""
    return isinstance(error, HermesError)


def failed(error: Exception, texts: Texts, *, reference: str, redactor: Redactor) -> Ending:
    """The turn could not be finished; the person is told why and what to do."""
    match error:
        case TurnLimit(bound=bound, limit=limit):
            shown = texts.say(f"turn.limit.{bound}", limit=f"{limit:g}")
        case ModelUnavailable() if not error.retryable:
            shown = f"⚠ {redactor.text(str(error))}"
        case ModelError() if not isinstance(error, ContextOverflow):
            shown = texts.say("turn.model_unavailable", detail=redactor.text(str(error)))
        case ContextOverflow():
            shown = texts.say("turn.context_full")
        case CompressionStuckError(before=before, after=after):
            shown = texts.say("turn.context_stuck", before=before, after=after)
        case UserError():
            shown = str(error)
        case _:
            shown = texts.say("turn.failed", reference=reference)
    return Ending(outcome=Outcome.DEAD, why=type(error).__name__, shown=shown)
