"""A model that the test plays by hand: each request waits until the test has written its answer."""

import asyncio
import json
from collections.abc import AsyncGenerator

from hermes.agent.models.base import (
    CallTools,
    Card,
    Finished,
    ModelEvent,
    ModelRequest,
    Stop,
    TextDelta,
)
from hermes.errors import ModelError
from hermes.sessions.model import Role, ToolCall, Usage

PATIENCE = 20.0
"""Seconds of real time after which a test gives up waiting."""

CARD = Card(provider="hand", name="hand", context_length=128_000)
USAGE = Usage(input_tokens=10, output_tokens=5)


class Question:
    """One request, and the answer that is written to it."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.left = asyncio.Event()
        """Whoever asked has gone."""
        self._events: asyncio.Queue[ModelEvent | ModelError] = asyncio.Queue()

    @property
    def heard(self) -> list[str]:
        """What people said, without the headings that the gateway adds."""
        return [line.text.partition("]\n")[2] or line.text for line in self.request.lines if line.role is Role.USER]

    @property
    def results(self) -> list[str]:
        """What tools gave."""
        return [line.text for line in self.request.lines if line.role is Role.TOOL]

    def say(self, text: str) -> None:
        """Some words, and the answer goes on."""
        self._events.put_nowait(TextDelta(text))

    def answer(self, text: str = "", stop: Stop = Stop.END) -> None:
        """The last words."""
        if text:
            self.say(text)
        self._events.put_nowait(Finished(usage=USAGE, stop=stop, model=CARD.name))

    def call(self, *tools: str, **arguments: object) -> None:
        """Ask for these tools, each with the same arguments."""
        self.call_raw(*tools, arguments=json.dumps(arguments, ensure_ascii=False))

    def call_raw(self, *tools: str, arguments: str) -> None:
        """The same with the text that stands for the arguments."""
        calls = tuple(ToolCall(id=f"call_{n}", name=name, arguments=arguments) for n, name in enumerate(tools, 1))
        self._events.put_nowait(CallTools(calls))
        self.answer(stop=Stop.TOOLS)

    def fail(self, error: ModelError) -> None:
        """End the answer with an error."""
        self._events.put_nowait(error)

    async def taken(self) -> None:
        """Everything that was written so far has been read."""
        async with asyncio.timeout(PATIENCE):
            await self._events.join()

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        try:
            while True:
                event = await self._events.get()
                if isinstance(event, ModelError):
                    raise event
                yield event
                self._events.task_done()
                if isinstance(event, Finished):
                    return
        finally:
            self.left.set()


class HandModel:
    """The `ChatModel`."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card
        self._asked: asyncio.Queue[Question] = asyncio.Queue()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        question = Question(request)
        self._asked.put_nowait(question)
        async for event in question.events():
            yield event

    async def question(self) -> Question:
        """The next request; waits for one."""
        return await asyncio.wait_for(self._asked.get(), PATIENCE)

    @property
    def is_unasked(self) -> bool:
        """Nobody waits for an answer that the test has not looked at."""
        return self._asked.empty()

    async def close(self) -> None:
        """There is nothing to give back."""
