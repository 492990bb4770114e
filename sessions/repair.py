"""Looking for what is wrong with the store, and mending it beside a running gateway.

A look only reads, in one snapshot. A remedy is a row of short transactions with a pause behind each, so that others
write in between, and each of them leaves the store usable: whoever is killed in between runs it again.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from hermes.errors import StoreUnavailable
from hermes.sessions import dbapi
from hermes.sessions.backup import copy, free_name, stamp
from hermes.sessions.database import cause, open_readable
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults import parts, rows, search
from hermes.sessions.faults.pages import CORRUPT, reindexed, troubles
from hermes.sessions.faults.trouble import Check, Fault, Trouble, Watch, beyond, moment
from hermes.sessions.optimise import patient, refusal
from hermes.sessions.salvage import salvage

CHECKS = (
    search.DAMAGED,
    search.ASIDES,
    parts.PARTS,
    rows.STRAYS,
    rows.EMPTY,
    rows.TIP,
    rows.COMPACTED,
    rows.COUNTERS,
    rows.DOOMED,
    search.LACKING,
    search.WAITING,
)
"""In the order in which they are mended: each finds what the ones before have left to it.

The search index comes first: while it cannot be opened, no statement that would fire its triggers can be prepared.
"""


def examine(connection: Connection) -> tuple[Trouble, ...]:
    """Everything that is wrong, by a read connection. When pages are damaged, that alone: the rest means nothing then.

    Takes 4 to 8 s on a store of 200 000 rows (253 MB), and blocks nobody.
    """
    with moment(connection):
        return tuple(troubles(connection)) or _by(connection, CHECKS)


def inspect(path: Path) -> tuple[Trouble, ...]:
    """What `examine` finds in the store at `path`. Raises StoreUnavailable where nothing can be read, SchemaTooNew."""
    try:
        with closing(_opened(path)) as connection:
            return examine(connection)
    except dbapi.Error as error:
        raise refusal(path, error) from error


def findings(path: Path) -> tuple[Trouble, ...]:
    """What shows at once, for `hermes doctor`: neither pages nor counters nor every word of the search index are read.

    Raises StoreUnavailable, SchemaTooNew.
    """
    quick = [check for check in CHECKS if check.kind not in {Fault.STRAYS, Fault.COUNTERS, Fault.SEARCH}]
    try:
        with closing(open_readable(path)) as connection, moment(connection):
            return (*_by(connection, quick), *search.unsearchable(connection))
    except dbapi.Error as error:
        raise refusal(path, error) from error


def _unwatched(_more: int, _total: int) -> None:
    """Nobody wants to know."""


def mend(path: Path, *, now: float, backup: bool = True, watch: Watch = _unwatched) -> tuple[str, ...]:
    """Put right whatever `examine` finds; gives a sentence for each thing that was done, none for a sound store.

    Before it changes anything it keeps a copy, `backups/before-repair-YYYYMMDD-HHMMSS.db` (unless `backup` is False).
    A gateway may run, unless `examine` found DAMAGED or INDEXES: a store with damaged pages is read as far as it can be
    into a new file, and itself kept in `backups/damaged-YYYYMMDD-HHMMSS/`. Raises StoreUnavailable when something
    cannot be mended, StoreLocked, SchemaTooNew.
    """
    folder, moment = path.parent / "backups", stamp(now)
    try:
        with closing(_opened(path)) as connection:
            kinds = {trouble.kind for trouble in examine(connection)}
            done = []
            if kinds - {Fault.DAMAGED} and backup:
                kept = free_name(folder, f"before-repair-{moment}", ".db")
                copy(connection, kept)
                done.append(f"A copy from before is kept: {kept}")
        if Fault.DAMAGED in kinds or (Fault.INDEXES in kinds and not reindexed(path)):
            done += salvage(path, free_name(folder, f"damaged-{moment}"))
        elif Fault.INDEXES in kinds:
            done.append("The indexes over the rows were made anew.")
        if kinds:
            done += _mend_each(path, watch)
    except dbapi.Error as error:
        raise (beyond(path, str(error)) if cause(error) == CORRUPT else refusal(path, error)) from error
    return tuple(done)


def _opened(path: Path) -> Connection:
    try:
        return open_readable(path)
    except StoreUnavailable as error:
        if isinstance(error.__cause__, dbapi.Error) and cause(error.__cause__) == CORRUPT:
            raise beyond(path, str(error.__cause__)) from error
        raise


def _mend_each(path: Path, watch: Watch) -> Iterator[str]:
    with closing(patient(path)) as connection:
        for check in CHECKS:
            if _found(connection, check) is not None:
                yield from check.mend(connection, watch)
        lasting = [check for check in CHECKS if check.kind not in {Fault.DOOMED, Fault.TODO}]  # others make such, too
        left = [what for check in lasting if (what := _found(connection, check)) is not None]
    if left:
        raise beyond(path, left[0])


def _found(connection: Connection, check: Check) -> str | None:
    with moment(connection):
        return check.find(connection)


def _by(connection: Connection, checks: Sequence[Check]) -> tuple[Trouble, ...]:
    found: list[Trouble] = []
    for check in checks:
        if (what := check.find(connection)) is not None:
            found.append(Trouble(kind=check.kind, what=what, remedy=check.remedy))
            if check.kind is Fault.PARTS:  # the checks that follow need them
                break
    return tuple(found)
