"""`hermes pairing`: who waits to be let in, and who was."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes.cli.listing import ago
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions.store import SqliteStore, open_store

ROLES = ("guest", "trusted", "owner")


@asynccontextmanager
async def _store(home: Home) -> AsyncIterator[SqliteStore]:
    store = await open_store(home.database)
    try:
        yield store
    finally:
        await store.close()


async def show(home: Home, *, as_json: bool) -> None:
    """Print open requests and grants. Codes are not shown: whoever asks to be let in shows theirs."""
    now = time.time()
    async with _store(home) as store:
        waiting, granted = await store.roles.requests(now), await store.roles.granted()
    if as_json:
        print(json.dumps({"waiting": waiting, "granted": granted}, ensure_ascii=False, indent=1))
        return
    for platform, user, name, until in waiting:
        print(f"waiting  {platform:<12} {user:<24} {name}  ({int((until - now) // 60)} min left)")
    for platform, user, role, since in granted:
        print(f"{role:<8} {platform:<12} {user:<24} since {ago(now - since)}")
    if not waiting and not granted:
        print("Nobody waits, and nobody was let in. Strangers get a code when they write to the agent.")


async def approve(home: Home, platform: str, code: str, role: str) -> None:
    """Let in whoever shows the code. Raises UserError."""
    if role not in ROLES:
        raise UserError(f"There is no role {role!r}. Choose one of: {', '.join(ROLES)}.")
    async with _store(home) as store:
        user = await store.roles.approve(platform, code, role=role, at=time.time())
    print(f"{user} on {platform} may talk now, as {role}.")


async def revoke(home: Home, platform: str, user: str) -> None:
    """Take the grant back. Raises UserError when there is none."""
    async with _store(home) as store:
        if not await store.roles.revoke(platform, user):
            raise UserError(f"{user} on {platform} was not let in by pairing. See who was: hermes pairing list")
    print(f"{user} on {platform} may not talk any more.")
