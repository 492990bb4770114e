"""Where chats live now: one that has moved is known by its newest id before anything is keyed or sent."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from hermes.adapters.base import Origin
from hermes.gateway import wire
from hermes.gateway.doorman import Doorman
from hermes.gateway.node import Node
from hermes.sessions.model import Move, Place, SessionKey

log = structlog.get_logger(__name__)

Followed = Callable[[Origin, Origin], Awaitable[None]]
"""What else has to follow a chat from its old origin to its new one."""


class Addresses:
    """The aliases of chats. Ask `load` once before the first message."""

    def __init__(self, node: Node, doorman: Doorman, followed: Followed) -> None:
        self._node = node
        self._doorman = doorman
        self._followed = followed
        self._newest: dict[tuple[str, str], str] = {}

    async def load(self) -> None:
        """What earlier processes have seen. Raises StoreError."""
        self._newest = {(platform, old): new for platform, old, new in await self._node.store.chats.aliases()}

    def canonical(self, origin: Origin) -> Origin:
        """The origin under the chat's newest id."""
        newest = self._newest.get((origin.platform, origin.chat_id))
        return origin if newest is None else replace(origin, chat_id=newest)

    async def move(self, platform: str, chat_id: str, to: str) -> tuple[SessionKey, ...]:
        """The chat goes on as `to`, with all that is kept for it; gives the keys under which something waits now.

        Hearing of it again takes along what came in between. Raises StoreError.
        """
        if chat_id == to:
            return ()

        def follow(origin: str) -> Place | None:
            old = wire.origin_from_json(origin)
            if (old.platform, old.chat_id) != (platform, chat_id):
                return None
            new = replace(old, chat_id=to)
            return Place(key=self._doorman.key(new), origin=wire.origin_to_json(new))

        move = Move(platform=platform, chat_id=chat_id, to=to, at=self._node.clock.now(), follow=follow)
        keys = await self._node.store.chats.move(move)
        await self.load()
        await self._followed(Origin(platform=platform, chat_id=chat_id), Origin(platform=platform, chat_id=to))
        log.info("chat.moved", platform=platform)
        return keys
