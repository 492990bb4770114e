"""Where a terminal's lines come from: a person at a keyboard, or a pipe."""

import asyncio
import os
import threading
from codecs import getincrementaldecoder

CHUNK = 65_536
"""Bytes read at once."""


class Keyboard:
    """A line editor with history and input methods."""

    def __init__(self) -> None:
        from prompt_toolkit import PromptSession

        self._editor: PromptSession[str] = PromptSession()

    async def read(self) -> str | None:
        """The next line; None at Ctrl-D. Ctrl-C empties the line."""
        while True:
            try:
                return await self._editor.prompt_async("› ", handle_sigint=False)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


class Pipe:
    """Lines of another program's output, or of a file. What is no UTF-8 is shown as U+FFFD."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._ended = False

    async def read(self) -> str | None:
        """The next line; None at the end."""
        while "\n" not in self._text and not self._ended:
            chunk = await self._chunk()
            self._ended = not chunk
            self._text += self._decoder.decode(chunk, final=self._ended)
        if not self._text:
            return None
        line, _, self._text = self._text.partition("\n")
        return line.rstrip("\r")

    async def _chunk(self) -> bytes:
        """What comes next. Read by a thread that may be left behind: nothing else can end a wait for a pipe."""
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bytes] = loop.create_future()

        def work() -> None:
            chunk = os.read(self._descriptor, CHUNK)
            if not loop.is_closed():
                loop.call_soon_threadsafe(_give, came, chunk)

        threading.Thread(target=work, daemon=True).start()
        return await came


def _give(waiter: "asyncio.Future[bytes]", chunk: bytes) -> None:
    if not waiter.done():
        waiter.set_result(chunk)
