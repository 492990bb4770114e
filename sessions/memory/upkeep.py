"""The `Upkeep` port of the twin."""

import json
from dataclasses import replace

from hermes.errors import LeaseBusy, SessionNotFound, StillNeeded
from hermes.sessions.memory import lineages
from hermes.sessions.memory.queues import drop_settled
from hermes.sessions.memory.roles import MemoryRoles
from hermes.sessions.memory.tables import Tables
from hermes.sessions.model import OWNER, ConversationId, Forgotten, Role

ERASED = "[erased]"
AT_WORK = 600.0


class MemoryUpkeep:
    """Years pass quickly here."""

    def __init__(self, tables: Tables, roles: MemoryRoles) -> None:
        self._tables = tables
        self._roles = roles
        self._ran: dict[str, float] = {}

    async def claim(self, job: str, *, now: float, every: float) -> bool:
        due = job not in self._ran or self._ran[job] <= now - every
        if due:
            self._ran[job] = now - every + min(every, AT_WORK)
        return due

    async def done(self, job: str, *, now: float) -> None:
        self._ran[job] = now

    async def close_idle(self, *, before: float, now: float) -> int:
        tables = self._tables
        held = {name for name, one in tables.leases.items() if one.owner is not None and one.expires_at > now}
        idle = [
            tip
            for conversation in tables.tips
            if (tip := tables.tip(conversation)).ended_at is None
            and tip.last_active < before
            and conversation not in held
        ]
        for tip in idle:
            tables.change(tip.id, ended_at=now, end_reason="idle")
        return len(idle)

    async def clear(self) -> None:
        """Deletions are never interrupted here."""

    async def shrink(self) -> int:
        return 0

    async def forget(self, platform: str, source: str, user_id: str, *, now: float) -> Forgotten:
        tables = self._tables
        theirs = [one for one in tables.sessions.values() if (one.source, one.user_id) == (source, user_id)]
        chats = {one.chat_id for one in theirs if one.chat_kind == "dm" and one.chat_id is not None}
        conversations = sorted({one.conversation for one in theirs}, key=lambda one: -tables.lineage(one)[0].started_at)
        kept = [one for one in conversations if not self._delete(one, now)]
        shared = self._erase(source, user_id)
        drop_settled(
            tables,
            lambda row, _at: (
                row.platform == platform and (row.chat_id in chats or json.loads(row.origin).get("user_id") == user_id)
            ),
        )
        await self._roles.revoke(platform, user_id)
        return Forgotten(conversations=len(conversations) - len(kept), shared=shared, kept=tuple(kept))

    def _delete(self, conversation: ConversationId, now: float) -> bool:
        try:
            lineages.delete(self._tables, conversation, OWNER, now, None)
        except SessionNotFound:
            return True
        except (LeaseBusy, StillNeeded):
            return False
        return True

    def _erase(self, source: str, user_id: str) -> int:
        tables = self._tables
        rooms = {one.id for one in tables.sessions.values() if one.source == source and one.user_id is None}
        rows = [
            row
            for row in tables.messages.values()
            if row.session_id in rooms and row.sender is not None and row.sender.id == user_id
        ]
        turns = {row.turn for row in rows if row.turn is not None}
        for row in [one for one in tables.messages.values() if one.turn in turns and one.role is not Role.USER]:
            if row.role is Role.TOOL:
                del tables.messages[row.id]
            else:
                tables.messages[row.id] = replace(row, content=ERASED, tool_calls=())
        for row in rows:
            tables.messages[row.id] = replace(row, content=ERASED, sender=None)
            session = tables.sessions[row.session_id]
            tables.change(session.id, preview=ERASED, title=session.title if session.title_by_person else None)
        return len(rows)
