"""Which SQLite this process uses. The only module that names the library, so a process never holds two.

pysqlite3 carries SQLite 3.53, where the WAL-reset corruption of 3.7.0-3.51.2 is mended; where its wheel does not
exist the standard library's SQLite serves, and `hermes doctor` says so.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3 as library
else:
    try:
        from pysqlite3 import dbapi2 as library
    except ImportError:
        import sqlite3 as library

Connection = library.Connection
Cursor = library.Cursor
Error = library.Error
DatabaseError = library.DatabaseError
IntegrityError = library.IntegrityError
OperationalError = library.OperationalError
connect = library.connect
complete_statement = library.complete_statement

VERSION = tuple(int(part) for part in library.sqlite_version.split("."))
FIXED_WAL_RESET = (3, 51, 3)
"""The first SQLite without the WAL-reset bug."""


def weakness() -> str | None:
    """What is wrong with this process's SQLite, in a sentence for `hermes doctor`; None when nothing is."""
    if VERSION >= FIXED_WAL_RESET:
        return None
    here = ".".join(map(str, VERSION))
    return (
        f"SQLite {here} has a rare corruption bug in WAL mode that 3.51.3 mends. "
        f"Install a fixed one for this Python with: {sys.executable} -m pip install pysqlite3"
    )
