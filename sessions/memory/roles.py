"""The `Roles` port of the twin."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hermes.errors import UserError

OPEN_CODES = 3
"""Open requests a platform."""
PATIENCE = 600.0
"""Seconds between two new codes for one person."""
WRONG_TRIES = 5
"""Wrong codes a platform until it is locked."""
LOCK = 3600.0
"""Seconds that a lock lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    name: str
    code: str
    asked_at: float
    expires_at: float


class MemoryRoles:
    """Who was let in, and as what."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str], _Request] = {}
        self._grants: dict[tuple[str, str], tuple[str, float]] = {}
        self._wrong: Counter[str] = Counter()
        self._locked_until: dict[str, float] = {}

    async def request(self, platform: str, user_id: str, *, name: str, code: str, at: float, ttl: float) -> str | None:
        own = self._requests.get((platform, user_id))
        if own is not None and own.expires_at > at:
            return own.code
        waiting = [held for held, *_ in await self.requests(at) if held == platform]
        if len(waiting) >= OPEN_CODES or (own is not None and at - own.asked_at < PATIENCE):
            return None
        self._requests[platform, user_id] = _Request(name=name, code=code, asked_at=at, expires_at=at + ttl)
        return code

    async def requests(self, now: float) -> tuple[tuple[str, str, str, float], ...]:
        return tuple(
            (platform, user_id, request.name, request.expires_at)
            for (platform, user_id), request in self._requests.items()
            if request.expires_at > now
        )

    async def approve(self, platform: str, code: str, *, role: str, at: float) -> str:
        self._refuse_if_locked(platform, at)
        for (where, user_id), request in self._requests.items():
            if where == platform and request.code == code.strip().upper() and request.expires_at > at:
                self._requests[where, user_id] = replace(request, expires_at=at)
                self._grants[where, user_id] = (role, at)
                self._wrong[platform] = 0
                return user_id
        self._count_wrong(platform, at)
        raise UserError(f"No open request on {platform} has this code. List them with: hermes pairing list")

    async def revoke(self, platform: str, user_id: str) -> bool:
        return self._grants.pop((platform, user_id), None) is not None

    async def role_of(self, platform: str, user_id: str) -> str | None:
        role, _ = self._grants.get((platform, user_id), (None, 0.0))
        return role

    async def granted(self) -> tuple[tuple[str, str, str, float], ...]:
        return tuple((platform, user_id, role, at) for (platform, user_id), (role, at) in self._grants.items())

    def _refuse_if_locked(self, platform: str, at: float) -> None:
        until = self._locked_until.get(platform, 0.0)
        if until > at:
            clock = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M UTC")
            raise UserError(f"Too many wrong codes for {platform}: no code is taken until {clock}.")

    def _count_wrong(self, platform: str, at: float) -> None:
        self._wrong[platform] += 1
        if self._wrong[platform] >= WRONG_TRIES:
            self._wrong[platform] = 0
            self._locked_until[platform] = at + LOCK
