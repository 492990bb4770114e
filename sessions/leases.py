"""The turn lease: who may think about a conversation, across processes."""

from hermes.errors import LeaseBusy, LeaseLost
from hermes.sessions.dbapi import Connection
from hermes.sessions.model import ConversationId, Lease, SessionId
from hermes.sessions.writer import Writer


def fence(connection: Connection, lease: Lease, session: SessionId | None = None) -> None:
    """Part of every write of a turn: raises LeaseLost unless the lease is still the newest of its conversation.

    With `session`: of the conversation that the session belongs to.
    """
    held, belongs = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM leases WHERE conversation = ?1 AND generation = ?2 AND owner = ?3),"
        " ?4 IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE id = ?4 AND conversation = ?1)",
        (lease.conversation, lease.generation, lease.owner, session),
    ).fetchone()
    if not belongs:
        raise LeaseLost(f"A lease on conversation {lease.conversation} gives no right over session {session}.")
    if not held:
        raise LeaseLost(f"Another turn has taken over conversation {lease.conversation}.")


def refuse_if_busy(connection: Connection, conversation: str, now: float) -> None:
    """Raises LeaseBusy while a living owner holds the conversation."""
    row = connection.execute(
        "SELECT place, expires_at FROM leases WHERE conversation = ? AND owner IS NOT NULL AND expires_at > ?",
        (conversation, now),
    ).fetchone()
    if row is not None:
        raise LeaseBusy(*row)


class SqliteLeases:
    """The `Leases` port over SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def take(
        self, conversation: ConversationId, *, owner: str, place: str, now: float, ttl: float, force: bool = False
    ) -> Lease:
        def op(connection: Connection) -> Lease:
            if not force:
                refuse_if_busy(connection, conversation, now)
            (generation,) = connection.execute(
                "INSERT INTO leases VALUES (?, ?, ?, 1, ?) ON CONFLICT (conversation) DO UPDATE SET"
                " owner = excluded.owner, place = excluded.place, generation = generation + 1,"
                " expires_at = excluded.expires_at RETURNING generation",
                (conversation, owner, place, now + ttl),
            ).fetchone()
            return Lease(conversation=conversation, owner=owner, generation=generation, expires_at=now + ttl)

        return await self._writer.submit(op)

    async def renew(self, lease: Lease, *, now: float, ttl: float) -> Lease:
        def op(connection: Connection) -> Lease:
            fence(connection, lease)
            connection.execute(
                "UPDATE leases SET expires_at = ? WHERE conversation = ?", (now + ttl, lease.conversation)
            )
            return Lease(
                conversation=lease.conversation,
                owner=lease.owner,
                generation=lease.generation,
                expires_at=now + ttl,
            )

        return await self._writer.submit(op)

    async def release(self, lease: Lease) -> None:
        def op(connection: Connection) -> None:
            connection.execute(
                "UPDATE leases SET owner = NULL WHERE conversation = ? AND generation = ? AND owner = ?",
                (lease.conversation, lease.generation, lease.owner),
            )

        await self._writer.submit(op)

    async def bury(self, *, owner_prefix: str, except_owner: str) -> None:
        def op(connection: Connection) -> None:
            connection.execute(
                "UPDATE leases SET owner = NULL, generation = generation + 1"
                " WHERE substr(owner, 1, ?) = ? AND owner <> ?",
                (len(owner_prefix), owner_prefix, except_owner),
            )

        await self._writer.submit(op)
