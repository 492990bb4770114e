"""Erasing a person, and giving them what is kept of them: for a chat's `/forget me` and the owner's `hermes forget`."""

from contextlib import closing
from datetime import tzinfo
from functools import partial
from pathlib import Path
from urllib.parse import quote

from hermes.agent.tools.memory import Memory
from hermes.gateway.routing import encode, source_of
from hermes.home import Home
from hermes.redact import Redactor
from hermes.sessions.database import open_readable, snapshot
from hermes.sessions.exports import files, html, redaction
from hermes.sessions.exports.document import Reading
from hermes.sessions.filters import Filter
from hermes.sessions.model import Forgotten, Scope
from hermes.sessions.ports import Store
from hermes.sessions.selecting import select


async def forget(home: Home, store: Store, memory: Memory, platform: str, user_id: str, *, now: float) -> Forgotten:
    """Erase whatever is kept of a person but for backups. Raises StoreError, UserError; again is no harm."""
    source = source_of(platform)
    gone = await store.upkeep.forget(platform, source, user_id, now=now)
    await memory.forget(f"{source}:user:{encode(user_id)}")
    (home.exports / _page(source, user_id)).unlink(missing_ok=True)
    return gone


def backups(home: Home) -> list[str]:
    """The copies that still hold them, by name."""
    return sorted(one.name for one in home.backups.glob("*.db")) if home.backups.is_dir() else []


def _page(source: str, user_id: str) -> str:
    """One page a person, which a later export replaces."""
    return f"{files.plain(source)}-{files.plain(quote(user_id, safe=''))[:100]}.html"


def export(
    home: Home, platform: str, user_id: str, *, redactor: Redactor, at: float, zone: tzinfo | None
) -> tuple[Path, int]:
    """Write a person's own conversations to one page below `session-exports/`; gives it, and how many they are.

    Blocks: call it in a thread. Raises StoreError, UserError.
    """
    source = source_of(platform)
    folder = files.folder(home.exports)
    with closing(open_readable(home.database)) as connection:
        moment = partial(snapshot, connection)
        with moment():
            found = select(connection, Filter(), Scope(source=source, user_id=user_id))
        reading = Reading(moment)
        shown = tuple(redaction.document(reading.whole(one), redactor) for one in found)
        name = _page(source, user_id)
        files.write(folder / name, html.page(shown, exported_at=at, zone=zone))
    return folder / name, len(shown)
