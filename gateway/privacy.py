"""What people may ask about themselves in a chat: to be given what is kept of them, and to be forgotten."""

import asyncio

from hermes.agent.tools.memory import Memory
from hermes.errors import UserError
from hermes.gateway import forgetting
from hermes.gateway.access import Role
from hermes.gateway.commands import Asked
from hermes.gateway.node import Node
from hermes.home import Home

ME = "me"
SURE = "me yes"


class Privacy:
    """`/export me` and `/forget me`. An owner has the command line for both."""

    def __init__(self, node: Node, home: Home, memory: Memory) -> None:
        self._node = node
        self._home = home
        self._memory = memory

    async def export(self, asked: Asked) -> str:
        """Write the person's conversations to a file that the owner can hand over."""
        user = self._person(asked, {ME}, "/export me")
        path, number = await asyncio.to_thread(
            forgetting.export,
            self._home,
            asked.inbound.origin.platform,
            user,
            redactor=self._node.redactor,
            at=self._node.clock.now(),
            zone=self._node.zone,
        )
        return asked.texts.say("command.exported", conversations=number, file=path.name)

    async def forget(self, asked: Asked) -> str:
        """Ask whether they are sure; then erase them."""
        user = self._person(asked, {ME, SURE}, "/forget me")
        backups = ", ".join(forgetting.backups(self._home)) or "-"
        if asked.rest.casefold() != SURE:
            return asked.texts.say("command.forget_sure", backups=backups)
        platform, now = asked.inbound.origin.platform, self._node.clock.now()
        gone = await forgetting.forget(self._home, self._node.store, self._memory, platform, user, now=now)
        key = "command.forget_partly" if gone.kept else "command.forgotten"
        return asked.texts.say(
            key, conversations=gone.conversations, shared=gone.shared, kept=len(gone.kept), backups=backups
        )

    def _person(self, asked: Asked, words: set[str], usage: str) -> str:
        """Who asks. Raises UserError for the owner, for nobody in particular, and for other words."""
        if asked.role is Role.OWNER:
            raise UserError(asked.texts.say("command.forget_owner"))
        if asked.inbound.origin.user_id is None or asked.rest.casefold() not in words:
            raise UserError(asked.texts.say("command.forget_usage", usage=usage))
        return asked.inbound.origin.user_id
