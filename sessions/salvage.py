"""Reading what can be read of a damaged store into a new one."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.sessions import dbapi
from hermes.sessions.backup import drafted, exchange, rebuild_search
from hermes.sessions.database import open_readable, open_writable
from hermes.sessions.dbapi import Connection
from hermes.sessions.faults.parts import parts, tables
from hermes.sessions.faults.trouble import beyond
from hermes.sessions.optimise import writing
from hermes.sessions.rows import marks

MOST = 10_000_000
"""No row has a higher number; a damaged page may say otherwise."""


def salvage(path: Path, aside: Path) -> list[str]:
    """Read what can be read into a new file, and put that in the place of the damaged one, which is kept."""
    with drafted(path) as draft:
        draft.unlink()
        with closing(open_readable(path)) as source, closing(open_writable(draft)) as target:
            found = _Salvage(source, target)
            try:
                found.run()
            except dbapi.Error as error:
                raise beyond(path, str(error)) from error
        exchange(draft, path, aside)
    lost = ", ".join(f"about {number} {table}" for table, number in found.lost.items() if number)
    return [
        f"The file was damaged; a new one holds what could be read: {found.kept['messages']} messages.",
        f"Rows that could not be read: {lost or 'none'}.",
        f"The damaged file is kept as it was: {aside}",
    ]


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table of the store is read and written, row by row. The first column of a numbered one is its `rowid`."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def insert(self) -> str:
        """Leaves out what no store would hold."""
        return f"INSERT OR IGNORE INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks(self.columns)})"

    @property
    def by_number(self) -> str:
        """One row of a numbered table."""
        return f"{self._select} NOT INDEXED WHERE rowid = ?"

    def in_order(self, direction: str) -> str:
        """All rows along their key, `ASC` or `DESC`."""
        return f"{self._select} ORDER BY {', '.join(f'{name} {direction}' for name in self.key)}"

    @property
    def _select(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"


@dataclass(slots=True)
class _Salvage:
    """Rows of a damaged store on their way into a new one."""

    source: Connection
    target: Connection
    kept: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Every table, as far as it can be read. Raises dbapi.Error when not even the list of tables can be."""
        self.source.text_factory = lambda raw: raw.decode("utf-8", "replace")  # a broken letter costs that letter
        self.source.execute("SELECT 1 FROM messages WHERE FALSE").fetchall()
        self.target.execute("PRAGMA foreign_keys = OFF")
        with writing(self.target):
            for name in tables():
                table = self._table(name)
                whole = self._read_in_order(table)
                if table.columns[0] == "rowid":
                    self._read_by_number(table)
                elif not whole:
                    self.lost[name] = 1
            self._go_on_counting()
        rebuild_search(self.target)

    def _table(self, name: str) -> _Table:
        facts = self.target.execute(f"SELECT name, type, pk FROM pragma_table_info('{name}')").fetchall()
        key = tuple(column for column, _, place in facts if place)
        if "WITHOUT ROWID" in parts()[name]:
            return _Table(name, tuple(column for column, _, _ in facts), key)
        plain = tuple(column for column, kind, place in facts if not (place and kind == "INTEGER"))
        return _Table(name, ("rowid", *plain), ("rowid",))

    def _read_by_number(self, table: _Table) -> None:
        """Each number for itself, where reading in order has not met it: a damaged page hides those behind it."""
        known, here = self._known(table.name), self._here(table)
        last = max(*known, 0, self._asked(f"SELECT max(rowid) FROM {table.name}"), self._counted(table.name))
        for number in range(1, min(last, MOST) + 1):
            if number not in here:
                try:
                    for row in self.source.execute(table.by_number, (number,)):
                        self._keep(table, row)
                except dbapi.Error:
                    self.lost[table.name] += 1
        self.lost[table.name] = max(self.lost[table.name], len(known - self._here(table)))

    def _here(self, table: _Table) -> set[int]:
        return {row[0] for row in self.target.execute(f"SELECT rowid FROM {table.name}")}

    def _known(self, table: str) -> set[int]:
        """The numbers of rows that the indexes over a table know, as far as those can be read."""
        names = self.target.execute(f"SELECT name FROM pragma_index_list('{table}') WHERE NOT partial").fetchall()
        known: set[int] = set()
        for (name,) in names:
            with suppress(dbapi.Error):
                for row in self.source.execute(f"SELECT rowid FROM {table} INDEXED BY {name}"):
                    known.add(row[0])
        return known

    def _counted(self, table: str) -> int:
        """The highest number that SQLite remembers to have given, for tables whose numbers are never used again."""
        return self._asked(f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{table}'")

    def _asked(self, question: str) -> int:
        try:
            return self.source.execute(question).fetchone()[0] or 0
        except dbapi.Error:
            return 0

    def _read_in_order(self, table: _Table) -> bool:
        """Up to where reading stops, and then from the other end; True when it did not stop."""
        for direction in ("ASC", "DESC"):
            with suppress(dbapi.Error):
                for row in self.source.execute(table.in_order(direction)):
                    self._keep(table, row)
                if direction == "ASC":
                    return True
        return False

    def _keep(self, table: _Table, row: Sequence[Any]) -> None:
        """Write one row, if a store would hold it. A session only loses a title that another has."""
        with suppress(dbapi.IntegrityError):
            added = self.target.execute(table.insert, row).rowcount
            if not added and table.name == "sessions":
                untitled = dict(zip(table.columns, row, strict=True)) | {"title": None}
                added = self.target.execute(table.insert, tuple(untitled.values())).rowcount
            self.kept[table.name] += added

    def _go_on_counting(self) -> None:
        """Numbers of lost rows are not given to others."""
        with suppress(dbapi.Error):
            self.target.executemany(
                "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?",
                self.source.execute("SELECT seq, name FROM sqlite_sequence").fetchall(),
            )
