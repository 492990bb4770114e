"""Commands as they are read: what is one, which ones there are, and which do not wait. Pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.commands import COMMANDS, Command, is_urgent, parse
from hermes.texts import LANGUAGES, catalogue


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("/new", ("new", "")),
        ("  /new  ", ("new", "")),
        ("/NEW Trip", ("new", "Trip")),
        ("/new@hermes_bot Trip to Rome", ("new", "Trip to Rome")),
        ("/title two\nlines", ("title", "two\nlines")),
        ("/title\n北京", ("title", "北京")),
        ("/no-such_thing 1", ("no-such_thing", "1")),
        ("/etc/hosts is a file", None),
        ("/ new", None),
        ("//new", None),
        ("/", None),
        ("", None),
        ("/1", None),
        ("/新", None),
        ("say /new", None),
        ("/new.", None),
        ("/usr", ("usr", "")),
    ],
)
def test_what_is_a_command(text: str, read: tuple[str, str] | None) -> None:
    assert parse(text) == read


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    read = parse(text)
    assert read is None or (read[0] and text.strip().startswith("/"))


@given(st.sampled_from(sorted(COMMANDS)), st.text(st.characters(exclude_categories=["C"])))
def test_every_command_is_read_with_its_words(name: str, words: str) -> None:
    assert parse(f"/{name} {words}") == (name, words.strip())


def test_talk_is_never_urgent() -> None:
    assert not is_urgent("stop")
    assert not is_urgent("/etc/hosts")
    assert not is_urgent("/nothing")
    assert not is_urgent("/title x")


@pytest.mark.parametrize("name", ["new", "reset", "status", "stop"])
def test_these_never_wait_for_a_running_turn(name: str) -> None:
    assert is_urgent(f"/{name}")
    assert is_urgent(f"/{name.upper()}@bot now")


@pytest.mark.parametrize("command", [one for one in COMMANDS.values() if not one.hidden], ids=lambda one: one.name)
def test_each_has_a_line_of_help_in_every_language(command: Command) -> None:
    name = command.name
    lines = catalogue()[f"help.{name}"]
    for language in LANGUAGES:
        assert lines[language].startswith(f"/{name}")
