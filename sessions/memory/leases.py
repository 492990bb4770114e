"""The `Leases` port of the twin."""

from dataclasses import replace

from hermes.errors import LeaseBusy, LeaseLost
from hermes.sessions.memory.tables import Held, Tables
from hermes.sessions.model import ConversationId, Lease


def fence(tables: Tables, lease: Lease) -> None:
    """Part of every write of a turn: raises LeaseLost unless the lease is still the newest."""
    if _held(tables, lease) is None:
        raise LeaseLost(f"Another turn has taken over conversation {lease.conversation}.")


def refuse_if_busy(tables: Tables, conversation: ConversationId, now: float) -> None:
    """Raises LeaseBusy while a living owner holds the conversation."""
    held = tables.leases.get(conversation)
    if held is not None and held.owner is not None and held.expires_at > now:
        raise LeaseBusy(held.place, held.expires_at)


class MemoryLeases:
    """One turn a conversation."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def take(
        self, conversation: ConversationId, *, owner: str, place: str, now: float, ttl: float, force: bool = False
    ) -> Lease:
        held = self._tables.leases.get(conversation)
        if not force:
            refuse_if_busy(self._tables, conversation, now)
        generation = 1 if held is None else held.generation + 1
        self._tables.leases[conversation] = Held(owner=owner, place=place, generation=generation, expires_at=now + ttl)
        return Lease(conversation=conversation, owner=owner, generation=generation, expires_at=now + ttl)

    async def renew(self, lease: Lease, *, now: float, ttl: float) -> Lease:
        fence(self._tables, lease)
        held = self._tables.leases[lease.conversation]
        self._tables.leases[lease.conversation] = replace(held, expires_at=now + ttl)
        return replace(lease, expires_at=now + ttl)

    async def release(self, lease: Lease) -> None:
        held = _held(self._tables, lease)
        if held is not None:
            self._tables.leases[lease.conversation] = replace(held, owner=None)

    async def bury(self, *, owner_prefix: str, except_owner: str) -> None:
        for conversation, held in self._tables.leases.items():
            if held.owner is not None and held.owner.startswith(owner_prefix) and held.owner != except_owner:
                self._tables.leases[conversation] = replace(held, owner=None, generation=held.generation + 1)


def _held(tables: Tables, lease: Lease) -> Held | None:
    held = tables.leases.get(lease.conversation)
    if held is None or (held.owner, held.generation) != (lease.owner, lease.generation):
        return None
    return held
