"""A task group whose members can all be sent home at once: what a stop does with those that did not end in time."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Crew(asyncio.TaskGroup):
    """Owns every task of a process. Leaving the block waits for all that have not been dismissed."""

    def __init__(self) -> None:
        super().__init__()
        self._members: set[asyncio.Task[Any]] = set()

    def create_task(self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **facts: Any) -> asyncio.Task[T]:
        """See asyncio.TaskGroup."""
        task: asyncio.Task[T] = super().create_task(coro, **facts)
        self._members.add(task)
        task.add_done_callback(self._members.discard)
        return task

    def dismiss(self) -> None:
        """Cancel every member that still runs."""
        for task in tuple(self._members):
            task.cancel()
