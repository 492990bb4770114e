"""The `Chats` and `Bookmarks` ports of the twin."""

from dataclasses import replace

from hermes.sessions.memory.queues import open_deliveries
from hermes.sessions.memory.tables import Route, Tables
from hermes.sessions.model import Move, SessionKey


class MemoryChats:
    """Chats that go on under another id."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._aliases: dict[tuple[str, str], str] = {}

    async def move(self, move: Move) -> tuple[SessionKey, ...]:
        for alias, to in self._aliases.items():
            if alias[0] == move.platform and to == move.chat_id:
                self._aliases[alias] = move.to
        self._aliases[move.platform, move.chat_id] = move.to
        self._move_routes(move)
        self._move_deliveries(move)
        return self._move_events(move)

    async def aliases(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(sorted((*alias, to) for alias, to in self._aliases.items()))

    def _move_routes(self, move: Move) -> None:
        tables = self._tables
        for key, route in list(tables.routes.items()):
            place = move.follow(route.origin)
            if place is not None:
                del tables.routes[key]
                tables.routes[place.key] = Route(route.conversation, place.origin, route.updated_at)
                for session in list(tables.sessions.values()):
                    if session.key == key:
                        tables.sessions[session.id] = replace(session, key=place.key, chat_id=move.to)

    def _move_deliveries(self, move: Move) -> None:
        for duty in open_deliveries(self._tables):
            place = move.follow(duty.origin)
            if place is not None:
                self._tables.outbox[duty.id] = replace(
                    duty, chat_id=move.to, origin=place.origin, reply_to=None, live_id=None
                )

    def _move_events(self, move: Move) -> tuple[SessionKey, ...]:
        keys: dict[SessionKey, None] = {}
        for row in list(self._tables.inbox.values()):
            place = None if row.outcome is not None else move.follow(row.origin)
            if place is not None:
                self._tables.inbox[row.id] = replace(row, key=place.key, origin=place.origin)
                for turn in self._tables.turns.values():
                    if turn.row.key == row.key and not turn.ended:
                        turn.row = replace(turn.row, key=place.key)
                keys[place.key] = None
        return tuple(keys)


class MemoryBookmarks:
    """How far each platform's adapter has read."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[str, float]] = {}

    async def find(self, platform: str, name: str) -> tuple[str, float] | None:
        return self._kept.get((platform, name))

    async def keep(self, platform: str, name: str, value: str, *, at: float) -> None:
        self._kept[platform, name] = (value, at)
