"""`hermes pairing`: who waits to be let in, and who was."""

import json
import time

from hermes.cli.columns import fit
from hermes.cli.listing import ago
from hermes.cli.store import writable
from hermes.errors import UserError
from hermes.home import Home


async def show(home: Home, *, as_json: bool) -> None:
    """Print open requests and grants. Codes are not shown: whoever asks to be let in shows theirs."""
    now = time.time()
    async with writable(home) as store:
        waiting, granted = await store.roles.requests(now), await store.roles.granted()
    if as_json:
        asked = [dict(zip(("platform", "user", "name", "until"), one, strict=True)) for one in waiting]
        let_in = [dict(zip(("platform", "user", "role", "since"), one, strict=True)) for one in granted]
        print(json.dumps({"waiting": asked, "granted": let_in}, ensure_ascii=False, indent=1))
        return
    for platform, user, name, until in waiting:
        print(f"waiting  {fit(platform, 12)} {fit(user, 24)} {name}  ({int((until - now) // 60)} min left)")
    for platform, user, role, since in granted:
        print(f"{role:<8} {fit(platform, 12)} {fit(user, 24)} since {ago(now - since)}")
    if not waiting and not granted:
        print("Nobody waits, and nobody was let in. Strangers get a code when they write to the agent.")


async def approve(home: Home, platform: str, code: str, role: str) -> None:
    """Let in whoever shows the code. Raises UserError."""
    async with writable(home) as store:
        user = await store.roles.approve(platform, code, role=role, at=time.time())
    print(f"{user} on {platform} may talk now, as {role}.")


async def revoke(home: Home, platform: str, user: str) -> None:
    """Take the grant back. Raises UserError when there is none."""
    async with writable(home) as store:
        if not await store.roles.revoke(platform, user):
            raise UserError(f"{user} on {platform} was not let in by pairing. See who was: hermes pairing list")
    print(f"{user} on {platform} may not talk any more.")
