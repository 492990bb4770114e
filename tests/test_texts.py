"""The product's own words: complete in both languages, and spoken in the person's own."""

import re
import string
from pathlib import Path

import pytest

from hermes.texts import LANGUAGES, Language, Texts, catalogue, language_of

KEYS = sorted(catalogue())
ROOT = Path(__file__).parent.parent
SOURCES = [path for package in ("agent", "cli", "gateway") for path in (ROOT / package).rglob("*.py")]


def facts_of(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("key", KEYS)
def test_every_text_exists_in_every_language_with_the_same_facts(key: str) -> None:
    variants = catalogue()[key]
    assert set(variants) == set(LANGUAGES)
    assert all(text.strip() for text in variants.values())
    assert len({frozenset(facts_of(text)) for text in variants.values()}) == 1


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_can_be_said(key: str, language: Language) -> None:
    facts = {name: f"<{name}>" for name in facts_of(catalogue()[key][language])}
    said = Texts(language).say(key, **facts)
    assert all(fact in said for fact in facts.values())
    assert "{" not in said


def test_every_text_that_the_code_names_exists() -> None:
    named = {key for path in SOURCES for key in re.findall(r'\.say\(\s*"([^"]+)"', path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert named <= set(KEYS)


def test_a_missing_key_or_fact_raises() -> None:
    with pytest.raises(KeyError):
        Texts("en").say("turn.no_such_text")
    with pytest.raises(KeyError):
        Texts("en").say("turn.store_unavailable")


def test_a_fact_is_never_read_as_a_template() -> None:
    assert Texts("en").say("command.title", title="{0} {x}") == "Title: **{0} {x}**"


def test_a_pairing_answer_holds_the_command_that_lets_the_person_in() -> None:
    for language in LANGUAGES:
        said = Texts(language).say("access.pairing_code", code="ABCD2345", platform="telegram", minutes=60)
        assert "`hermes pairing approve telegram ABCD2345`" in said


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("你好", "zh"),
        ("重跑gen-itgc后50条悬空引用", "zh"),
        ("/title 部署计划", "zh"),
        ("𠀋𠀋", "zh"),
        ("hello", "en"),
        ("how do I say 你好 in French?", "en"),
        ("/new", "en"),
        ("", "en"),
        ("42 🎩", "en"),
        ("日本語で話してください", "en"),
        ("안녕하세요", "en"),
    ],
)
def test_the_language_is_the_persons(words: str, language: Language) -> None:
    assert language_of(words) == language
    assert Texts("auto").for_words(words).say("command.status_idle") == Texts(language).say("command.status_idle")


def test_a_configured_language_stays_whatever_is_written() -> None:
    assert Texts("zh").for_words("hello there").say("command.status_idle") == "空闲"


def test_auto_without_words_is_english() -> None:
    assert Texts("auto").say("command.status_idle") == "idle"
