"""Where an export goes: one file, a folder, or the next program in a pipe. Raises UserError before anything is read."""

import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from hermes.errors import UserError
from hermes.sessions.exports import files
from hermes.sessions.exports.files import Written

STDOUT = "-"


def new_file(name: str, *, force: bool) -> Path:
    """The file to write, which is not there yet, in a folder that is."""
    path = Path(name).expanduser().absolute()
    if path.is_dir():
        raise UserError(f"{path} is a folder; this export is one file. Name the file in it.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}. Make it first, or choose another place.")
    return _free(path, force=force)


def new_folder(name: str | None, default: Path) -> Path:
    """The folder to write into, made when it is missing."""
    return files.folder(default if name is None else Path(name).expanduser().absolute())


def within(folder: Path, name: str, *, force: bool) -> Path:
    """A file of the folder that is not there yet."""
    return _free(folder / name, force=force)


def show(pieces: Iterable[str]) -> None:
    """Write the pieces to stdout as UTF-8, whatever the terminal says it speaks."""
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode())
    sys.stdout.buffer.flush()


def put(name: str, pieces: Iterable[str], *, force: bool) -> tuple[Written, ...]:
    """Write to the file or, for `-`, to stdout; gives the file."""
    if name == STDOUT:
        show(pieces)
        return ()
    return (files.write(new_file(name, force=force), pieces),)


def _free(path: Path, *, force: bool) -> Path:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return path
    except OSError as error:
        raise UserError(f"{path} cannot be looked at: {error.strerror}. Choose another name.") from error
    if not stat.S_ISREG(kind):
        raise UserError(f"{path} is there and is no ordinary file. Choose another name, or - for stdout.")
    if not force:
        raise UserError(f"{path} is there already. Choose another name, or replace it with --force.")
    return path
