"""Requests that wait for their answers, found by the chat and the event that they asked with."""

import asyncio
import contextlib
from collections.abc import Iterator

from hermes.adapters.base import Inbound, Outbound, Progress

LONGEST_ANSWER = 1_000_000
"""Characters that are kept for a client that reads slowly; also the platform's limit."""

_APART = "\n\n"
"""Between the words before a tool ran and those after it."""


def remainder(said: str, final: str) -> str:
    """What a client that has seen `said` must still see, so that all of `final` is on its screen.

    Glimpses normally are the beginning of the final text, but for white space at its ends. Where they are not (words
    between the steps of a turn), the final text follows whole, set apart, unless it was the last thing said.
    """
    if not said:
        return final
    seen, text = said.lstrip(), final.lstrip()
    if text.startswith(seen):
        return text[len(seen) :]
    return "" if seen.rstrip().endswith(text.rstrip()) else _APART + final


class Waiter:
    """One request. Words are put in as they come and taken out as fast as the client reads."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.ended = asyncio.Event()
        self._answer: Outbound | None = None
        self._said: list[str] = []
        self._taken = 0
        self._space = LONGEST_ANSWER
        self._apart = False
        self._news = asyncio.Event()

    def skip_glimpses(self) -> None:
        """For a request that joins late: it missed the beginning, so it gets the answer in one piece."""
        self._said.clear()
        self._space = 0

    def glimpse(self, seen: Progress) -> None:
        """Some words of the running turn. Once there is no space, all later ones are left to the final text."""
        self.session = seen.session
        if seen.text and not self.ended.is_set():
            self._say(seen.text)
        self._apart = self._apart or (seen.tool is not None and bool(self._said))
        self._news.set()

    def finish(self, out: Outbound) -> None:
        """The answer is here; what the glimpses left out of it joins the words. Only the first one counts."""
        if self.ended.is_set():
            return
        self.session = out.session or self.session
        self._said.append(remainder("".join(self._said), out.markdown))
        self._answer = out
        self.ended.set()
        self._news.set()

    async def news(self, patience: float) -> bool:
        """Wait until something can be taken; False after `patience` seconds without."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._news.wait()
        return self._news.is_set()

    def take(self) -> tuple[str, Outbound | None]:
        """The words since the last time, and the answer once these were the last."""
        self._news.clear()
        words = "".join(self._said[self._taken :])
        self._taken = len(self._said)
        return words, self._answer

    async def answer(self) -> Outbound:
        """Wait for the end alone."""
        await self.ended.wait()
        assert self._answer is not None
        return self._answer

    def _say(self, words: str) -> None:
        self._space -= len(words)
        if self._space > 0:
            self._said.append(_APART + words if self._apart else words)
            self._apart = False


class WaitingRoom:
    """Who waits for what. Several requests may wait for the same answer: repeats of one idempotency key."""

    def __init__(self) -> None:
        self._waiters: dict[tuple[str, str], list[Waiter]] = {}

    @contextlib.contextmanager
    def seat(self, question: Inbound) -> Iterator[Waiter]:
        """Wait for the answer to `question` until the block ends."""
        name = (question.origin.chat_id, question.event_id)
        waiter = Waiter()
        self._waiters.setdefault(name, []).append(waiter)
        try:
            yield waiter
        finally:
            self._waiters[name].remove(waiter)
            if not self._waiters[name]:
                del self._waiters[name]

    def of(self, chat_id: str, event_id: str | None) -> tuple[Waiter, ...]:
        """Those who wait for the answer to this event."""
        return tuple(self._waiters.get((chat_id, event_id or ""), ()))
