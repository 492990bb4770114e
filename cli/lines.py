"""Where a terminal's lines come from: a person at a keyboard, or a pipe."""

import asyncio
import sys


class Keyboard:
    """A line editor with history and input methods."""

    def __init__(self) -> None:
        from prompt_toolkit import PromptSession

        self._editor: PromptSession[str] = PromptSession()

    async def read(self) -> str | None:
        """The next line; None at Ctrl-D. Ctrl-C empties the line."""
        while True:
            try:
                return await self._editor.prompt_async("› ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


class Pipe:
    """Lines of another program's output."""

    async def read(self) -> str | None:
        """The next line; None at the end."""
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\n") if line else None
