"""Who was let in by pairing, and as what."""

from datetime import UTC, datetime

from hermes.errors import UserError
from hermes.sessions.dbapi import Connection
from hermes.sessions.readers import Readers
from hermes.sessions.writer import Writer

OPEN_CODES = 3
"""Open codes a platform: a crowd of strangers cannot fill the owner's list."""
SECONDS_BETWEEN_CODES = 600.0
WRONG_TRIES = 5
LOCK_SECONDS = 3600.0


class SqliteRoles:
    """The `Roles` port over SQLite."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def request(self, platform: str, user_id: str, *, name: str, code: str, at: float, ttl: float) -> str | None:
        return await self._writer.submit(
            lambda connection: _request(connection, platform, user_id, name, code, at, ttl)
        )

    async def requests(self, now: float) -> tuple[tuple[str, str, str, float], ...]:
        return await self._readers.run(
            lambda connection: tuple(
                connection.execute(
                    "SELECT platform, user_id, name, expires_at FROM pairing_requests WHERE expires_at > ?"
                    " ORDER BY asked_at",
                    (now,),
                )
            )
        )

    async def approve(self, platform: str, code: str, *, role: str, at: float) -> str:
        found = await self._writer.submit(lambda connection: _redeem(connection, platform, code, role, at))
        if isinstance(found, _Refused):  # the wrong try itself had to be committed first
            raise UserError(found.text)
        return found

    async def revoke(self, platform: str, user_id: str) -> bool:
        return await self._writer.submit(
            lambda connection: bool(
                connection.execute("DELETE FROM roles WHERE platform = ? AND user_id = ?", (platform, user_id)).rowcount
            )
        )

    async def role_of(self, platform: str, user_id: str) -> str | None:
        def work(connection: Connection) -> str | None:
            found = connection.execute(
                "SELECT role FROM roles WHERE platform = ? AND user_id = ?", (platform, user_id)
            ).fetchone()
            return None if found is None else str(found[0])

        return await self._readers.run(work)

    async def granted(self) -> tuple[tuple[str, str, str, float], ...]:
        return await self._readers.run(
            lambda connection: tuple(
                connection.execute("SELECT platform, user_id, role, granted_at FROM roles ORDER BY granted_at")
            )
        )


class _Refused:
    def __init__(self, text: str) -> None:
        self.text = text


def _request(
    connection: Connection, platform: str, user_id: str, name: str, code: str, at: float, ttl: float
) -> str | None:
    mine = connection.execute(
        "SELECT code, asked_at, expires_at FROM pairing_requests WHERE platform = ? AND user_id = ?",
        (platform, user_id),
    ).fetchone()
    if mine is not None:
        known, asked_at, expires_at = mine
        if expires_at > at:
            return str(known)
        if at - asked_at < SECONDS_BETWEEN_CODES:
            return None
    (others,) = connection.execute(
        "SELECT count(*) FROM pairing_requests WHERE platform = ? AND expires_at > ?", (platform, at)
    ).fetchone()
    if others >= OPEN_CODES:
        return None
    connection.execute(
        "INSERT OR REPLACE INTO pairing_requests VALUES (?, ?, ?, ?, ?, ?)",
        (platform, user_id, name, code, at, at + ttl),
    )
    return code


def _redeem(connection: Connection, platform: str, code: str, role: str, at: float) -> str | _Refused:
    wrong, locked_until = connection.execute(
        "SELECT wrong, locked_until FROM pairing_tries WHERE platform = ?", (platform,)
    ).fetchone() or (0, 0.0)
    if locked_until > at:
        until = datetime.fromtimestamp(locked_until, UTC).astimezone().strftime("%H:%M")
        return _Refused(f"Too many wrong codes for {platform}. Try again after {until}.")
    found = connection.execute(
        "DELETE FROM pairing_requests WHERE platform = ? AND code = ? AND expires_at > ? RETURNING user_id",
        (platform, code.strip().upper(), at),
    ).fetchone()
    if found is None:
        locked = wrong + 1 >= WRONG_TRIES
        connection.execute(
            "INSERT OR REPLACE INTO pairing_tries VALUES (?, ?, ?)",
            (platform, 0 if locked else wrong + 1, at + LOCK_SECONDS if locked else 0.0),
        )
        return _Refused(
            f"No open request on {platform} has the code {code!r}. See who is waiting with: hermes pairing list"
        )
    connection.execute("DELETE FROM pairing_tries WHERE platform = ?", (platform,))
    connection.execute("INSERT OR REPLACE INTO roles VALUES (?, ?, ?, ?)", (platform, found[0], role, at))
    return str(found[0])
