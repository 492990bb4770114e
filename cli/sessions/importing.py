"""`hermes sessions import`."""

import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from hermes.cli.progress import Progress
from hermes.cli.store import writable
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions.imports.arrival import Parcel, Receipt

READERS = {"hermes": "jsonl", "hermes-agent": "hermes_agent", "claude": "claude", "codex": "codex"}
"""The module that reads what each program wrote."""
LOGS = {"claude", "codex"}
"""Programs that keep a file a conversation: a folder of them is read whole."""


async def bring_in(home: Home, name: str, origin: str) -> None:
    """Import what the file holds. Raises UserError, before anything is written, for one that cannot be read."""
    files = _files(name, origin)
    total = sum(1 for _ in _parcels(files, origin))  # the whole is read once before anything is written
    ids: dict[int, int] = {}
    receipts: list[Receipt] = []
    async with writable(home) as store:
        await store.upkeep.clear()
        with Progress("Importing", total) as progress:
            for parcel in _parcels(files, origin):
                known = ids if parcel.source is None else {}
                receipts.append(await store.take_in(parcel, known, at=time.time()))
                progress.advance()
    print("\n".join(_told(receipts)))


def _parcels(files: list[Path], origin: str) -> Iterator[Parcel]:
    reader = import_module(f"hermes.sessions.imports.{READERS[origin]}")
    for file in files:
        yield from reader.parcels(file)


def _files(name: str, origin: str) -> list[Path]:
    path = Path(name).expanduser()
    if not path.exists():
        raise UserError(f"There is no {path}.")
    if not path.is_dir():
        return [path]
    if origin not in LOGS:
        raise UserError(f"{path} is a folder; name the file in it.")
    found = sorted(path.rglob("*.jsonl"))
    if not found:
        raise UserError(f"There are no .jsonl files in {path} or below.")
    return found


def _told(receipts: list[Receipt]) -> list[str]:
    kinds = Counter(one.fresh for one in receipts)
    known = (
        [f"{kinds[False]} were here already and stayed as they are, also where the file has more of them."]
        if kinds[False]
        else []
    )
    renamed = [f"The title {old!r} was taken here: it became {new!r}." for one in receipts for old, new in one.renamed]
    messages = sum(one.messages for one in receipts)
    word = "conversation" if kinds[True] == 1 else "conversations"
    return [f"Imported {kinds[True]} {word} with {messages} messages.", *known, *renamed]
