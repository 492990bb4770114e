"""`Scope` in SQL: the same rule as `Scope.allows`, for statements over `sessions s`.

Nobody, not even the owner, sees a conversation that is being deleted.
"""

from hermes.sessions.model import Scope

STANDING = "s.conversation NOT IN (SELECT conversation FROM doomed)"


def condition(scope: Scope) -> tuple[str, tuple[str | None, ...]]:
    """An SQL condition over `sessions s` and its parameters."""
    if scope.owner:
        return STANDING, ()
    rooms = sorted(scope.rooms, key=lambda room: (room.source, room.chat_id, room.thread_id or ""))
    room = "s.user_id IS NULL AND s.source = ? AND s.chat_id = ? AND s.thread_id IS ?"
    parts = ["s.user_id IS NOT NULL AND s.source = ? AND s.user_id = ?", *[room] * len(rooms)]
    facts = [fact for r in rooms for fact in (r.source, r.chat_id, r.thread_id)]
    return f"{STANDING} AND ({' OR '.join(f'({part})' for part in parts)})", (scope.source, scope.user_id, *facts)
