"""`hermes sessions repair` and `hermes sessions optimize`: mending the store, and bringing it in order."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from hermes.cli.backup import nobody_else, size
from hermes.cli.progress import Progress
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions.faults.trouble import Fault, Trouble, Watch
from hermes.sessions.optimise import optimise
from hermes.sessions.repair import inspect, mend


def repair(home: Home, *, check_only: bool, backup: bool = True) -> int:
    """Print what is wrong with the store, mend it and print what was done; 0 when it is sound then, and 1 otherwise.

    With `check_only` it only looks. A gateway may run, unless pages are damaged. Raises UserError, StoreError.
    """
    if not home.database.exists():
        print("No store yet; the first message makes it.")
        return 0
    found = inspect(home.database)
    for trouble in found:
        print(f"✗ {trouble.what}{f' {trouble.remedy}' if check_only else ''}")
    if not found:
        print(f"Store {home.database} is sound.")
    elif not check_only:
        with _alone(home, found), _shown() as watch:
            done = mend(home.database, now=time.time(), backup=backup, watch=watch)
        print("\n".join(f"✓ {sentence}" for sentence in done))
    return 1 if found and check_only else 0


def optimize(home: Home) -> None:
    """Bring the search index in order and the file to its smallest, and print what that gave. Raises StoreError."""
    if not home.database.exists():
        raise UserError(f"There is no store yet: {home.database}. The first message makes it.")
    before, after = optimise(home.database)
    print(f"The store is in order: {size(before)} → {size(after)}.")


def _alone(home: Home, found: tuple[Trouble, ...]) -> AbstractContextManager[None]:
    """Where the file itself is replaced, nobody may have it open."""
    needed = {trouble.kind for trouble in found} & {Fault.DAMAGED, Fault.INDEXES}
    return nobody_else(home) if needed else nullcontext()


@contextmanager
def _shown() -> Iterator[Watch]:
    """A line about how far the indexing is, once there is some."""
    with ExitStack() as stack:
        lines: list[Progress] = []

        def watch(more: int, total: int) -> None:
            if not lines:
                lines.append(stack.enter_context(Progress("Indexing", total)))
            lines[0].advance(more)

        yield watch
