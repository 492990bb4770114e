"""How far each platform's adapter has read."""

from hermes.sessions.dbapi import Connection
from hermes.sessions.readers import Readers
from hermes.sessions.writer import Writer


class SqliteBookmarks:
    """The `Bookmarks` port over SQLite."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def find(self, platform: str, name: str) -> tuple[str, float] | None:
        def work(connection: Connection) -> tuple[str, float] | None:
            found: tuple[str, float] | None = connection.execute(
                "SELECT value, at FROM bookmarks WHERE platform = ? AND name = ?", (platform, name)
            ).fetchone()
            return found

        return await self._readers.run(work)

    async def keep(self, platform: str, name: str, value: str, *, at: float) -> None:
        await self._writer.submit(
            lambda connection: connection.execute(
                "INSERT INTO bookmarks VALUES (?, ?, ?, ?) ON CONFLICT (platform, name) DO UPDATE SET"
                " value = excluded.value, at = excluded.at",
                (platform, name, value, at),
            )
        )
