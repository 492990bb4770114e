"""Going back to an earlier conversation from a chat: which ones there are, and leading the chat's key to one."""

from datetime import UTC, datetime

from hermes.adapters.base import ChatKind
from hermes.errors import AmbiguousSession, SessionNotFound, UserError
from hermes.gateway import wire
from hermes.gateway.access import scope_for
from hermes.gateway.commands import Asked
from hermes.gateway.doorman import Doorman
from hermes.gateway.node import Node
from hermes.sessions.model import OWNER, Message, Page, Query, Role, Scope, Session
from hermes.text import one_line

LISTED = 10
NAME = 60
"""Characters of a conversation's name in a list."""
EXCERPT = 200
"""Characters of the last question and of the last answer."""
LOOKED_AT = 50
"""Rows from the end in which those two are looked for, and conversations among which some may be shown."""


class Resumption:
    """A person's own conversations and those of the room that they ask in; an owner's are all, where they are alone."""

    def __init__(self, node: Node, doorman: Doorman) -> None:
        self._node = node
        self._doorman = doorman

    async def listed(self, asked: Asked) -> str:
        """The latest conversations, or with `search …` those in which something was said. Raises UserError."""
        word, _, query = asked.rest.partition(" ")
        if word.casefold() == "search" and query.strip():
            return await self._searched(asked, query.strip())
        here = await self._node.store.find(asked.key)
        lines = [
            f"{number}. {self._named(asked, one)}{' ←' if here and here.conversation == one.conversation else ''}"
            for number, one in enumerate(await self._latest(asked), start=1)
        ]
        if not lines:
            return asked.texts.say("command.sessions_none")
        return asked.texts.say("command.sessions", list="\n".join(lines))

    async def resume(self, asked: Asked) -> str:
        """Lead the chat to the conversation that is meant. Raises UserError that says what else could be meant."""
        if not asked.rest:
            return await self.listed(asked)
        store, at = self._node.store, self._node.clock.now()
        before, wanted = await store.find(asked.key), await self._meant(asked)
        if before is not None and before.conversation == wanted.conversation:
            return asked.texts.say("command.resume_here", name=self._named(asked, wanted))
        origin = wire.origin_to_json(asked.inbound.origin)
        session = await store.bind(asked.key, wanted.conversation, origin=origin, at=at)
        if before is not None and await store.key_of(before.conversation) is None:
            await store.end(before.id, reason="resumed_other", at=at)  # else nobody would ever close it
        rows = await store.history(session.id)
        return asked.texts.say("command.resumed", name=self._named(asked, session), last=_last(rows))

    async def _latest(self, asked: Asked) -> list[Session]:
        page = Page(limit=LOOKED_AT, include_machines=False)
        found = await self._node.store.list(page, self._scope(asked))
        return [one for one in found if _may_be_shown(asked, one)][:LISTED]

    async def _meant(self, asked: Asked) -> Session:
        """The number of the list, or whatever a session answers to."""
        if asked.rest.isascii() and asked.rest.isdigit() and 1 <= int(asked.rest) <= LISTED:
            latest = await self._latest(asked)
            if int(asked.rest) <= len(latest):
                return latest[int(asked.rest) - 1]
        unknown = asked.texts.say("command.resume_unknown", name=one_line(asked.rest, NAME))
        try:
            found = await self._node.store.resolve(asked.rest, self._scope(asked))
        except SessionNotFound as error:
            raise UserError(unknown) from error
        except AmbiguousSession as error:
            raise UserError(await self._candidates(asked, error)) from error
        if not _may_be_shown(asked, found):
            raise UserError(unknown)
        return found

    async def _candidates(self, asked: Asked, error: AmbiguousSession) -> str:
        found = [await self._node.store.resolve(one, OWNER) for one in error.candidates[:LISTED]]
        shown = [one for one in found if _may_be_shown(asked, one)]
        lines = "\n".join(f"- {self._named(asked, one)} ({one.id})" for one in shown)
        return asked.texts.say("command.resume_ambiguous", list=lines)

    async def _searched(self, asked: Asked, words: str) -> str:
        found = await self._node.store.search.discover(Query(text=words, limit=LOOKED_AT), self._scope(asked))
        hits = [hit for hit in found.hits if _may_be_shown(asked, hit.session)][:LISTED]
        if not hits:
            return asked.texts.say("command.sessions_not_found", query=one_line(words, NAME))
        lines = [f"- {self._named(asked, hit.session)} ({hit.session.id})\n  {hit.snippet}" for hit in hits]
        return asked.texts.say("command.sessions_found", list="\n".join(lines))

    def _scope(self, asked: Asked) -> Scope:
        origin = asked.inbound.origin
        return scope_for(asked.role, origin, shared=self._doorman.is_shared(origin))

    def _named(self, asked: Asked, session: Session) -> str:
        when = datetime.fromtimestamp(session.last_active, UTC).astimezone(self._node.zone)
        name = one_line(session.title or session.preview, NAME) or asked.texts.say("command.status_untitled")
        return f"{name} · {when:%Y-%m-%d %H:%M}"


def _may_be_shown(asked: Asked, session: Session) -> bool:
    """In a room everybody reads along: only what was said in it is shown there."""
    origin = asked.inbound.origin
    return origin.kind is ChatKind.DIRECT or session.chat_id == origin.chat_id


def _last(rows: tuple[Message, ...]) -> str:
    """The last question and the last answer, a line each."""
    recent = rows[-LOOKED_AT:]
    found = [
        f"{mark} {one_line(said[-1], EXCERPT)}"
        for mark, role in (("●", Role.USER), ("◆", Role.ASSISTANT))
        if (said := [row.content for row in recent if row.role is role and row.content])
    ]
    return "\n".join(found)
