"""A conversation in a few lines."""

from dataclasses import replace

from hermes.cli.recap import recap
from hermes.sessions.model import Kind, NewMessage, Person, Role
from worlds.histories import AT, assistant, call, numbered, result, user


def test_people_and_answers_are_told_apart_and_tools_are_counted() -> None:
    rows = numbered(
        [
            replace(user("Fix\nthe build"), sender=Person(id="7", name="Ann")),
            assistant("", call("a", "terminal"), call("b", "read_file"), call("c", "terminal")),
            result("a", "secret output"),
            NewMessage(role=Role.USER, kind=Kind.SUMMARY, content="a summary", at=AT),
            assistant("Done."),
        ]
    )
    assert recap(rows) == [
        "● Ann: Fix the build",
        "  [3 tool calls: terminal, read_file]",
        "◆ Done.",
    ]


def test_long_words_are_cut_a_question_at_300_and_an_answer_at_200_or_three_lines() -> None:
    question, answer = recap(numbered([user("q" * 400), assistant("a" * 400)]))
    assert len(question) == len("● ") + 300
    assert len(answer) == len("◆ ") + 200
    assert recap(numbered([assistant("one\n\ntwo\nthree\nfour")])) == ["◆ one", "  two", "  three …"]


def test_only_the_last_ten_messages_are_told_and_the_others_counted() -> None:
    told = recap(numbered([user(f"line {number}") for number in range(14)]))
    assert told[0] == "… 4 earlier messages …"
    assert told[1:] == [f"● line {number}" for number in range(4, 14)]


def test_nothing_said_is_nothing_told() -> None:
    assert recap(()) == []
