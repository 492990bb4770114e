"""How a turn can end: what is kept, what is shown, what becomes of the question. Pure."""

import pytest

from hermes.agent.loop import Reply
from hermes.agent.models.base import Stop
from hermes.errors import (
    BadTranscript,
    CompressionStuckError,
    ContextOverflow,
    ModelUnavailable,
    TurnLimit,
    UserError,
)
from hermes.gateway.endings import Ending, answered, cut_short, failed, is_expected
from hermes.redact import Redactor
from hermes.sessions.model import Outcome, Role, Usage
from hermes.texts import Texts

EN, ZH = Texts("en"), Texts("zh")
SECRET = "sk-live-0123456789abcdef0123"
REDACTOR = Redactor([SECRET])
USAGE = Usage(input_tokens=3, output_tokens=7)


def reply(text: str, stop: Stop = Stop.END) -> Reply:
    return Reply(text=text, usage=USAGE, stop=stop, model="m")


def ending(error: Exception, texts: Texts = EN) -> Ending:
    return failed(error, texts, reference="turn-42", redactor=REDACTOR)


def test_an_answer_is_kept_and_shown_as_it_is() -> None:
    given = answered(reply("  indented\n"), EN, at=5.0)
    assert (given.outcome, given.shown, given.usage) == (Outcome.ANSWERED, "  indented\n", USAGE)
    (row,) = given.kept
    assert (row.role, row.content, row.at, row.tokens, row.finish_reason) == (
        Role.ASSISTANT,
        "  indented\n",
        5.0,
        7,
        "end",
    )


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_an_answer_without_words_keeps_nothing_and_says_so(blank: str) -> None:
    given = answered(reply(blank), EN, at=5.0)
    assert (given.outcome, given.why, given.kept, given.usage) == (Outcome.DEAD, "no words: end", (), USAGE)
    assert "empty answer" in given.shown
    assert "declined" in answered(reply(blank, Stop.REFUSED), EN, at=5.0).shown


@pytest.mark.parametrize(("why", "notice"), [("stopped", "⏹"), ("interrupted", "⏸"), ("hung up", "⏹")])
def test_a_turn_that_was_cut_short_keeps_its_words(why: str, notice: str) -> None:
    given = cut_short(why, "half an ", EN, at=5.0)
    assert (given.outcome, given.why) == (Outcome.ABANDONED, why)
    assert given.shown.startswith(f"half an\n\n{notice}")
    assert [(row.content, row.finish_reason) for row in given.kept] == [("half an ", why)]


def test_before_the_first_word_only_the_notice_is_left() -> None:
    given = cut_short("stopped", " \n", EN, at=5.0)
    assert given.kept == ()
    assert given.shown.startswith("⏹")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TurnLimit("steps", 50), "after 50 steps"),
        (TurnLimit("time", 30.0), "after 30 minutes"),
        (ModelUnavailable("no route"), "cannot be reached right now: no route"),
        (ModelUnavailable("The key is refused.", retryable=False), "⚠ The key is refused."),
        (BadTranscript("roles"), "cannot be reached right now: roles"),
        (ContextOverflow("9 > 8"), "longer than the model can read"),
        (CompressionStuckError(900, 890), "900 → 890 tokens"),
        (UserError("Say it differently."), "Say it differently."),
        (ZeroDivisionError("division"), "reference turn-42"),
    ],
)
def test_a_failure_says_what_happened_and_what_to_do(error: Exception, said: str) -> None:
    given = ending(error)
    assert said in given.shown
    assert (given.outcome, given.why, given.kept) == (Outcome.DEAD, type(error).__name__, ())


def test_a_bug_tells_the_person_nothing_of_its_inside() -> None:
    assert "division" not in ending(ZeroDivisionError("division")).shown
    assert not is_expected(ZeroDivisionError())
    assert is_expected(UserError())


@pytest.mark.parametrize("retryable", [True, False])
def test_a_secret_never_gets_out_with_an_error(retryable: bool) -> None:
    shown = ending(ModelUnavailable(f"401 for {SECRET}", retryable=retryable)).shown
    assert SECRET not in shown
    assert "401" in shown


def test_it_is_said_in_the_persons_language() -> None:
    assert "50 步" in ending(TurnLimit("steps", 50), ZH).shown
