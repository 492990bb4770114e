"""The door of the command: what it knows, what it refuses, and how fast it is."""

import argparse

import pytest

from hermes import __version__
from hermes.cli.commands import COMMANDS, parse, parser


@pytest.mark.parametrize(
    ("line", "resume", "go_on"),
    [
        ("", None, None),
        ("-c", None, ""),
        ("--continue", None, ""),
        ("-c|my project", None, "my project"),
        ("-c|chat", None, ""),
        ("-c=chat|chat", None, "chat"),
        ("chat|-c", None, ""),
        ("chat|-c|my project", None, "my project"),
        ("-r|2025", "2025", None),
        ("--resume|refactoring auth|chat", "refactoring auth", None),
        ("chat|-r|latest", "latest", None),
        ("-r|one|chat|-r|two", "two", None),
    ],
)
def test_a_session_is_named_before_or_behind_the_word_chat(line: str, resume: str | None, go_on: str | None) -> None:
    found = parse([word for word in line.split("|") if word])
    assert (found.resume, found.go_on, found.question) == (resume, go_on, None)
    assert found.run is parse(["chat"]).run


def test_what_chat_is_told_arrives() -> None:
    found = parse(["chat", "-q", "Hi", "-m", "small", "--source", "notes", "--in", "."])
    assert (found.question, found.model, found.source, str(found.folder)) == ("Hi", "small", "notes", ".")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sessions", "COMMAND"),
        ("nonsense", "invalid choice: 'nonsense'"),
        ("sessions list --limit x", "found 'x', expected a whole number from 1 to 10000"),
        ("sessions list --limit 0", "expected a whole number"),
        ("sessions list --lim 3", "--lim"),
        ("chat -q", "expected one argument"),
        ("chat --in /no/such/folder", "there is no folder '/no/such/folder'"),
        ("pairing approve telegram", "CODE"),
        ("pairing approve telegram X --role king", "'king'"),
    ],
)
def test_a_command_that_makes_no_sense_gets_one_line_and_code_2(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert words in said
    assert said.count("\n") == 1
    assert "--help" in said


@pytest.mark.parametrize("path", ["", *(command.path for command in COMMANDS)])
def test_every_command_has_help(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*path.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: hermes {path}".rstrip() in capsys.readouterr().out


def test_the_version_is_told_by_the_long_way_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["-c", "--version"])
    assert capsys.readouterr().out == f"hermes {__version__}\n"


def test_every_option_is_explained() -> None:
    parsers: list[argparse.ArgumentParser] = [parser()]
    for one in parsers:
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
            else:
                assert action.help
    assert len(parsers) > len(COMMANDS)
