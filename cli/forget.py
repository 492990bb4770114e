"""`hermes forget`: erase a person."""

import time

from hermes.agent.tools.memory import Memory
from hermes.cli.sessions.bulk import confirmed, plural
from hermes.cli.store import writable
from hermes.gateway import forgetting
from hermes.home import Home


async def forget(home: Home, platform: str, user_id: str, *, assume_yes: bool) -> int:
    """Erase them after a question; 1 when something had to stay. Raises UserError, StoreError."""
    if not confirmed(
        f"Erase {user_id} on {platform} for good: conversations, words in rooms, memory, deliveries, rights?",
        assume_yes=assume_yes,
    ):
        print("Nothing was erased.")
        return 1
    async with writable(home) as store:
        gone = await forgetting.forget(home, store, Memory(home.memory), platform, user_id, now=time.time())
    if not (gone.conversations or gone.shared or gone.kept):
        print(f"Nothing was kept of {user_id} on {platform}. Their id is what /whoami shows them.")
        return 1
    print(
        f"Erased {plural(gone.conversations)} and {gone.shared} messages in rooms, with memory, deliveries and rights."
    )
    for one in gone.kept:
        print(f"Kept {one}: a turn thinks about it, or somebody else's branch shows its beginning. Run it again later.")
    if held := forgetting.backups(home):
        print(f"Backups still hold them until they are rotated away or deleted: {', '.join(held)}")
    return 1 if gone.kept else 0
