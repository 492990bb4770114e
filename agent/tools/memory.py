"""What the agent keeps about a person or a room: two small Markdown files that people may read and edit.

`MEMORY.md` holds facts and agreements, `USER.md` what the person is like. Each entry is a list item on one line;
every other line is a person's own and stays as it is. The owner's files lie in the folder itself, everybody else's
in a folder of their own below `people/`.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hermes import ids
from hermes.agent.models.base import ToolSpec
from hermes.agent.tools.base import ToolContext, ToolResult
from hermes.errors import UserError
from hermes.text import repair

OWNER = "owner"
LONGEST_NAME = 200
"""Characters of a folder's name; file systems end at 255 bytes."""
PATIENCE = 5.0
"""Seconds to wait for whoever changes the same files; a change takes milliseconds."""
ITEM = "- "


@dataclass(frozen=True, slots=True)
class Target:
    """One of the two files: its name, what it is for, and how many characters it may have.

    The caps keep both files together below about 1 000 tokens: they are part of every request.
    """

    file: str
    title: str
    cap: int


TARGETS = {"memory": Target("MEMORY.md", "Notes", 2_200), "user": Target("USER.md", "About the user", 1_375)}

SPEC = ToolSpec(
    name="memory",
    description=(
        "Keep short facts beyond this conversation. Target user: who the person is, preferences, ways of working. "
        "Target memory: facts about projects, surroundings and agreements. Save when the user asks you to remember "
        "something, corrects you, or says what will matter later; not what is only about the task at hand. What you "
        "save is shown to you at the start of later conversations. Entries are one line each."
    ),
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "replace", "remove", "read"]},
            "target": {"type": "string", "enum": list(TARGETS), "default": "memory"},
            "content": {"type": "string", "description": "The entry, for add and replace."},
            "old_text": {
                "type": "string",
                "description": "Part of the entry to replace or remove; it must fit exactly one entry.",
            },
        },
        "required": ["action"],
    },
)


class Memory:
    """The tool, and the snapshot that a conversation starts with. Calls and processes take turns at each file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        target = TARGETS.get(_word(arguments, "target", default="memory"))
        change = CHANGES.get(_word(arguments, "action"))
        if target is None or change is None:
            raise UserError(f"memory takes an action ({', '.join(CHANGES)}) and a target ({', '.join(TARGETS)}).")
        path = self._home(context.memory_owner) / target.file
        text = await asyncio.to_thread(_apply, path, target, lambda lines: change(lines, arguments))
        return ToolResult(text=f"{target.file} ({len(text)} of {target.cap} characters):\n{text or '(empty)'}")

    def snapshot(self, memory_owner: str) -> str:
        """Both files for the prompt, without what lies beyond their caps; `""` when there is nothing in them."""
        home = self._home(memory_owner)
        kept = ((target, _read(home / target.file).strip()) for target in TARGETS.values())
        return "\n\n".join(f"## {target.title}\n\n{text[: target.cap]}" for target, text in kept if text)

    async def rename(self, memory_owner: str, to: str) -> None:
        """What is kept for one owner belongs to another from now on, unless that one has something of its own.

        Raises UserError when the files cannot be moved.
        """
        await asyncio.to_thread(_rename, self._home(memory_owner), self._home(to))

    async def forget(self, memory_owner: str) -> None:
        """Delete what is kept for one owner. Raises UserError when the files cannot be deleted."""
        await asyncio.to_thread(_forget, self._home(memory_owner))

    def _home(self, memory_owner: str) -> Path:
        return self._folder if memory_owner == OWNER else self._folder / "people" / _file_name(memory_owner)


def _file_name(name: str) -> str:
    """A name for a folder that nothing can climb out of, and that no other owner has."""
    encoded = quote(name, safe="").replace(".", "%2E")
    if len(encoded) <= LONGEST_NAME:
        return encoded
    return f"{encoded[: LONGEST_NAME - 65]}-{hashlib.sha256(name.encode()).hexdigest()}"


# Changes: from the lines of a file to its new lines. Pure.


def _add(lines: list[str], arguments: dict[str, Any]) -> list[str]:
    item = _item(arguments)
    return lines if item in lines else [*lines, item]


def _replace(lines: list[str], arguments: dict[str, Any]) -> list[str]:
    at = _position(lines, arguments)
    return [*lines[:at], _item(arguments), *lines[at + 1 :]]


def _remove(lines: list[str], arguments: dict[str, Any]) -> list[str]:
    at = _position(lines, arguments)
    return lines[:at] + lines[at + 1 :]


CHANGES: dict[str, Callable[[list[str], dict[str, Any]], list[str]]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "read": lambda lines, _: lines,
}


def _item(arguments: dict[str, Any]) -> str:
    return ITEM + _word(arguments, "content")


def _position(lines: list[str], arguments: dict[str, Any]) -> int:
    """Where the one entry stands that `old_text` fits. Raises UserError with the entries to choose from."""
    wanted = _word(arguments, "old_text")
    items = [at for at, line in enumerate(lines) if line.startswith(ITEM)]
    fitting = [at for at in items if wanted in lines[at]]
    if len(fitting) == 1:
        return fitting[0]
    shown = "\n".join(lines[at] for at in fitting or items) or "(none)"
    raise UserError(f"{wanted!r} fits {len(fitting)} entries; quote more exactly. Entries:\n{shown}")


def _word(arguments: dict[str, Any], name: str, default: str = "") -> str:
    """A string argument on one line. Raises UserError when it is missing or something else."""
    value = arguments.get(name) or default
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"memory needs {name}, a string that is not empty.")
    return " ".join(repair(value).split())


# Files.


def _apply(path: Path, target: Target, change: Callable[[list[str]], list[str]]) -> str:
    """Change one file as a whole, or not at all; gives its text. Runs in a thread."""
    with _translated(path), _alone(path.parent):
        old = _read(path)
        new = "\n".join(change(old.splitlines()))
        if len(new) > max(target.cap, len(old)):
            raise UserError(
                f"{target.file} would have {len(new)} of at most {target.cap} characters. Replace or remove entries "
                f"first, or say it shorter. It holds:\n{old.strip()}"
            )
        if new != "\n".join(old.splitlines()):
            _write(path, new + "\n" if new else "")
        return new


def _rename(home: Path, to: Path) -> None:
    with _translated(home):
        if home.is_dir() and not to.exists():
            home.rename(to)


def _forget(home: Path) -> None:
    with _translated(home):
        if home.is_dir():
            shutil.rmtree(home)


def _read(path: Path) -> str:
    with _translated(path):
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}. Check the owner and mode of this file and its folder.") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else changes this folder's files meanwhile: no other call, and no other process."""
    _make(folder)
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _lock(handle: int, folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > end:
                raise UserError(f"Another process has held {folder} for {PATIENCE:g} seconds. Try again.") from error
            time.sleep(0.01)
        else:
            return


def _write(path: Path, text: str) -> None:
    """Readers see the old file or the new one, also after a power cut."""
    draft = path.with_name(ids.fresh(f".{path.name}"))
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
