"""What goes to stdout and what to stderr, on a terminal and into a pipe."""

from io import StringIO

import pytest

from hermes.cli.screen import Screen


class Tty(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Seen:
    """A screen and what was written on it."""

    def __init__(self, *, terminal: bool, **environ: str) -> None:
        kind = Tty if terminal else StringIO
        self.out, self.err = kind(), kind()
        self.screen = Screen(environ, out=self.out, err=self.err)


def test_on_a_terminal_words_appear_as_they_come_and_once() -> None:
    seen = Seen(terminal=True)
    for words in ("one ", "two"):
        seen.screen.words(words)
    assert seen.out.getvalue() == "one two"
    seen.screen.answer("one two three", well=True)
    assert seen.out.getvalue() == "one two three\n"
    assert seen.err.getvalue() == ""


def test_a_pipe_gets_the_answer_whole_and_nothing_else() -> None:
    seen = Seen(terminal=False)
    seen.screen.words("thinking aloud")
    seen.screen.tool("memory")
    seen.screen.words("the an")
    seen.screen.answer("the answer", well=True)
    assert seen.out.getvalue() == "the answer\n"
    assert seen.err.getvalue() == "[memory]\n"


def test_what_failed_is_no_answer_for_a_script() -> None:
    seen = Seen(terminal=False)
    seen.screen.answer("⚠ The model cannot be reached.", well=False)
    assert seen.out.getvalue() == ""
    assert seen.err.getvalue() == "⚠ The model cannot be reached.\n"


def test_a_stopped_answer_keeps_its_words_and_says_that_it_was_stopped() -> None:
    seen = Seen(terminal=True, NO_COLOR="1")
    seen.screen.words("half a ")
    seen.screen.answer("half a\n\n⏹ Stopped.", well=False)
    assert seen.out.getvalue() == "half a \n"
    assert seen.err.getvalue() == "⏹ Stopped.\n"


def test_an_answer_that_differs_from_its_glimpses_is_shown_whole() -> None:
    seen = Seen(terminal=True)
    seen.screen.words("a first try")
    seen.screen.answer("the answer", well=True)
    assert seen.out.getvalue() == "a first try\nthe answer\n"


@pytest.mark.parametrize(
    ("terminal", "environ", "shown"),
    [
        (True, {}, "\x1b[2mnote\x1b[0m\n"),
        (True, {"NO_COLOR": "1"}, "note\n"),
        (True, {"NO_COLOR": ""}, "\x1b[2mnote\x1b[0m\n"),
        (False, {}, "note\n"),
    ],
)
def test_notes_are_dim_where_colour_is_wanted(terminal: bool, environ: dict[str, str], shown: str) -> None:
    seen = Seen(terminal=terminal, **environ)
    seen.screen.note("note")
    assert seen.err.getvalue() == shown


def test_words_of_others_do_not_steer_the_terminal() -> None:
    seen = Seen(terminal=True, NO_COLOR="1")
    seen.screen.words("\x1b[2Jgone\x07")
    seen.screen.note("\x9b31mred\ttab\nline")
    assert seen.out.getvalue() == "[2Jgone"
    assert seen.err.getvalue() == "31mred\ttab\nline\n"
