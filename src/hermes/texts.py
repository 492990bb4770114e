"""What Hermes itself says to people in chats, in their language. The words are data: texts.yaml."""

import functools
import re
from importlib.resources import files
from typing import Literal, get_args

Language = Literal["en", "zh"]
"""The languages that every text exists in."""

LANGUAGES: tuple[Language, ...] = get_args(Language)
DEFAULT: Language = "en"

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_\u3040-\u9fff\uac00-\ud7af]+")


class Texts:
    """The catalogue in one language: `en`, `zh`, or `auto` for the language of whoever is spoken to."""

    def __init__(self, language: Language | Literal["auto"] = "auto") -> None:
        self._language = language

    def for_words(self, words: str) -> "Texts":
        """The catalogue in which to answer `words`: a fixed language stays, `auto` follows the person."""
        return self if self._language != "auto" else Texts(language_of(words))

    def say(self, key: str, **facts: object) -> str:
        """The text of `key` with its facts filled in. Raises KeyError for an unknown key or a missing fact."""
        language = DEFAULT if self._language == "auto" else self._language
        return catalogue()[key][language].format_map(facts)


def language_of(words: str) -> Language:
    """Chinese when `words` hold more Chinese characters than other words, else English."""
    if _KANA_OR_HANGUL.search(words):
        return DEFAULT
    return "zh" if len(_HAN.findall(words)) > len(_WORD.findall(words)) else "en"


@functools.cache
def catalogue() -> dict[str, dict[Language, str]]:
    """All texts by key and language. Read once."""
    import yaml

    words: dict[str, dict[Language, str]] = yaml.safe_load(
        files("hermes").joinpath("texts.yaml").read_text(encoding="utf-8")
    )
    return words
