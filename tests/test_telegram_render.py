"""Markdown as Telegram shows it: nothing is lost, what is marked is marked where it stands, and it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import Limits, Origin, Outbound
from hermes.adapters.split import split, utf16
from hermes.adapters.telegram.render import measure, render

ORIGIN = Origin(platform="telegram", chat_id="1")

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
MARKED = st.one_of(
    WORDS,
    WORDS.map(lambda words: f"**{words}**"),
    WORDS.map(lambda words: f"`{words}`"),
    WORDS.map(lambda words: f"# {words}\n"),
    WORDS.map(lambda words: f"- {words}\n"),
    WORDS.map(lambda words: f"\n```py\n{words}\n```\n"),
    WORDS.map(lambda words: f"[{words}](https://example.org)"),
    WORDS.map(lambda words: f"\n| a | {words} |\n|---|---|\n| 你 | b |\n\n"),
    st.sampled_from(["---\n", "👩‍👩‍👧", "> q\n", "<b>", "||", "\n\n", "1. ", "- [ ] x\n", "$x$", "<!-- -->"]),
)
MARKDOWN = st.lists(MARKED, min_size=1, max_size=12).map("".join)


def shown(markdown: str, *, plain: bool = False) -> tuple[str, dict[str, str]]:
    """The words, and what each kind of entity covers first."""
    text, entities = render(Outbound(key="k", origin=ORIGIN, markdown=markdown, plain=plain))
    units = text.encode("utf-16-le")
    covered = {
        each.type: units[2 * each.offset : 2 * (each.offset + each.length)].decode("utf-16-le") for each in entities
    }
    return text, covered


def test_marks_become_entities_where_the_words_stand() -> None:
    text, covered = shown("😀 **bold** _slanted_ `code` ~~gone~~ [你好](https://example.org)")
    assert text == "😀 bold slanted code gone 你好"
    assert covered == {
        "bold": "bold",
        "italic": "slanted",
        "code": "code",
        "strikethrough": "gone",
        "text_link": "你好",
    }


def test_code_keeps_its_language_and_its_blanks() -> None:
    text, entities = render(Outbound(key="k", origin=ORIGIN, markdown="```python\nif x:\n    y = '**'\n```"))
    assert text.strip() == "if x:\n    y = '**'"
    assert [(each.type, each.language) for each in entities] == [("pre", "python")]


def test_headings_lists_and_rules_are_readable_without_pictures() -> None:
    text, covered = shown("# Plan\n\n- one\n- two\n\n---\n\n1. first\n2. second\n")
    assert text.strip() == "Plan\n\n• one\n• two\n\n———\n\n1. first\n2. second"
    assert covered["bold"] == "Plan"


def test_tables_stand_in_columns_of_one_width() -> None:
    text, covered = shown("| name | 数量 |\n|---|---|\n| tea | 2 |\n")
    head, _, row = covered["pre"].splitlines()
    assert head.index("|") == row.index("|")
    assert "数量" in text


@pytest.mark.parametrize("markdown", ["<!-- nothing to see -->", "[]()", "   x"])
def test_something_is_always_left_to_read(markdown: str) -> None:
    assert shown(markdown)[0].strip()


def test_plain_words_are_left_alone() -> None:
    assert shown("**x** <b>", plain=True) == ("**x** <b>", {})


@given(MARKDOWN)
def test_entities_lie_within_the_words_and_on_whole_characters(markdown: str) -> None:
    text, entities = render(Outbound(key="k", origin=ORIGIN, markdown=markdown))
    units = text.encode("utf-16-le")
    for each in entities:
        assert 0 <= each.offset < each.offset + each.length <= utf16(text)
        units[2 * each.offset : 2 * (each.offset + each.length)].decode("utf-16-le")


@given(MARKDOWN)
def test_what_is_sent_is_never_longer_than_what_was_measured(markdown: str) -> None:
    text, _ = render(Outbound(key="k", origin=ORIGIN, markdown=markdown), longest=measure(markdown))
    assert utf16(text) <= measure(markdown)


@given(MARKDOWN, st.integers(80, 200))
def test_every_piece_of_a_long_answer_fits(markdown: str, limit: int) -> None:
    for piece in split(markdown * 5, Limits(text=limit, measure=measure)):
        text, _ = render(Outbound(key="k", origin=ORIGIN, markdown=piece), longest=limit)
        assert utf16(text) <= limit
        assert text.strip()
