"""Pieces of streamed text, made of whole characters. Pure."""

from hermes.text import repair


class WholeCharacters:
    """Holds back half a character until its other half comes.

    Servers that count text in UTF-16 units cut an emoji into two surrogates and send them in two deltas; shown
    one by one, neither can be encoded.
    """

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """`piece` after what was held back, up to its last whole character; it may be empty."""
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return repair(text.removesuffix(self._half))

    def rest(self) -> str:
        """What is still held back when the stream is over: U+FFFD for half a character, else nothing."""
        half, self._half = self._half, ""
        return repair(half)
