"""Files that are there whole or not at all, readable by their owner only."""

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import UserError

BLOCK = 1 << 20

_NO_NAME = re.compile(r"[^\w.@+-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was written."""

    path: Path
    sha256: str
    """In hexadecimal."""
    bytes: int


def write(path: Path, pieces: Iterable[str]) -> Written:
    """Write the pieces to a draft beside `path`, then put it in its place: 0600, flushed to the disk.

    Raises UserError when that cannot be done; nothing is left then, and a file that was there is untouched.
    """
    draft = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            for piece in pieces:
                data = piece.encode()
                digest.update(data)
                size += file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"{path} cannot be written: {error.strerror}. Choose another place.") from error
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return Written(path, digest.hexdigest(), size)


def plain(name: str) -> str:
    """`name` as a part of a path that leads nowhere else."""
    return _NO_NAME.sub("_", name).lstrip(".") or "_"


def verify(written: Written) -> None:
    """Read the file again. Raises UserError unless it holds what was written."""
    digest = hashlib.sha256()
    try:
        with written.path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError as error:
        raise UserError(f"{written.path} cannot be read again: {error.strerror}.") from error
    if digest.hexdigest() != written.sha256:
        raise UserError(f"{written.path} does not hold what was written to it. Look after the disk.")


def folder(path: Path) -> Path:
    """The folder, made when it is missing, 0700. Raises UserError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UserError(f"{path} is a file; this export needs a folder. Choose another place.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be made: {error.strerror}. Choose another place.") from error
    return path
