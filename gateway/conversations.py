"""Entering a conversation: which session a message belongs to, and the lease to think about it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from hermes import ids
from hermes.adapters.base import Inbound
from hermes.errors import LeaseBusy, LeaseLost, StoreError
from hermes.gateway import wire
from hermes.gateway.node import Node
from hermes.gateway.routing import KeyPolicy, shared, source_of
from hermes.sessions.model import OWNER, Birth, ConversationId, Lease, Session, SessionId, SessionKey

log = structlog.get_logger(__name__)

LEASE_SECONDS = 30.0
"""A dead owner's conversation is free after this long."""

RENEW_SECONDS = 10.0
ASK_AGAIN_SECONDS = 0.5
"""How often a busy conversation is asked for."""

Told = Callable[[LeaseBusy], Awaitable[None]]


class Conversations:
    """Opens sessions and holds their leases."""

    def __init__(self, node: Node, policy: KeyPolicy, tasks: asyncio.TaskGroup) -> None:
        self._node = node
        self._policy = policy
        self._tasks = tasks

    async def enter(self, key: SessionKey, inbound: Inbound) -> Session:
        """The session that the message belongs to: the one it names, or the one its key leads to.

        Raises SessionNotFound and AmbiguousSession when it names one that is not there.
        """
        if inbound.continues is not None:
            named = await self._node.store.resolve(inbound.continues, OWNER)
            origin = wire.origin_to_json(inbound.origin)
            return await self._node.store.bind(key, named.conversation, origin=origin, at=self._node.clock.now())
        return await self._node.store.open(key, self.birth(inbound))

    def birth(self, inbound: Inbound, title: str | None = None) -> Birth:
        """What a new session that starts with this message is born with."""
        origin, at = inbound.origin, self._node.clock.now()
        return Birth(
            id=SessionId(ids.session_id(at, hex_digits=self._node.hex_digits, zone=self._node.zone)),
            source=self._node.source or source_of(origin.platform),
            at=at,
            origin=wire.origin_to_json(origin),
            user_id=None if shared(origin, self._policy) else origin.user_id,
            chat_id=origin.chat_id,
            chat_kind=origin.kind.value,
            thread_id=origin.thread_id,
            title=title,
            cwd=self._node.cwd,
            git_branch=self._node.git_branch,
        )

    @asynccontextmanager
    async def held(
        self, conversation: ConversationId, *, told: Told | None = None, force: bool = False
    ) -> AsyncIterator[Lease]:
        """The conversation's lease, kept alive until the block is left.

        While another process holds it this waits; `told` is called once with where it is busy. `force` takes it.
        """
        lease = await self._take(conversation, told, force=force)
        renewal = self._tasks.create_task(self._renew(lease), name=f"lease:{conversation}")
        try:
            yield lease
        finally:
            renewal.cancel()
            await self._node.store.leases.release(lease)

    async def _take(self, conversation: ConversationId, told: Told | None, *, force: bool) -> Lease:
        node = self._node
        while True:
            try:
                return await node.store.leases.take(
                    conversation,
                    owner=node.id,
                    place=node.place,
                    now=node.clock.now(),
                    ttl=LEASE_SECONDS,
                    force=force,
                )
            except LeaseBusy as error:
                if told is not None:
                    await told(error)
                    told = None
                await node.clock.sleep(ASK_AGAIN_SECONDS)

    async def _renew(self, lease: Lease) -> None:
        """Push the expiry until cancelled. Losing the lease is found out by the next write, which it fences."""
        while True:
            await self._node.clock.sleep(RENEW_SECONDS)
            try:
                lease = await self._node.store.leases.renew(lease, now=self._node.clock.now(), ttl=LEASE_SECONDS)
            except LeaseLost:
                return
            except StoreError as error:
                log.warning("lease.not_renewed", conversation=lease.conversation, reason=str(error))
