"""`hermes backup`: copies of the store that were looked at, and the way back to one."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hermes.cli.listing import ago
from hermes.cli.sessions.bulk import confirmed
from hermes.errors import StoreError, UserError
from hermes.gateway.lock import holder, only_gateway
from hermes.gateway.neighbours import is_open
from hermes.home import Home
from hermes.sessions import backup, dbapi
from hermes.sessions.backup import Backup
from hermes.sessions.database import open_readable

NEWEST = "latest"
"""Names the newest backup."""


def create(home: Home) -> None:
    """Make a verified backup, also while a gateway runs. Raises UserError without a store, StoreError."""
    if not home.database.exists():
        raise UserError(f"There is no store yet: {home.database}. The first message makes it.")
    made = backup.create(home.database, home.backups, now=time.time())
    print(f"Backup made and verified: {made.path} ({_contents(made)})")


def show(home: Home, *, as_json: bool) -> None:
    """Print the backups, newest first. None of them is opened."""
    found, now = backup.listed(home.backups), time.time()
    if as_json:
        facts = [{"name": one.path.name, "made_at": one.made_at, "bytes": one.bytes} for one in found]
        print(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    for one in found:
        print(f"{one.path.name:<36} {size(one.bytes):>9}  {ago(now - one.made_at)}")
    if not found:
        print("No backups yet. Make one with: hermes backup create")


def verify(home: Home, name: str) -> int:
    """Look a backup through and print what it holds; 0 when it is whole, 1 when it is not. Raises UserError."""
    path = _find(home, name)
    try:
        found = backup.verify(path)
    except StoreError as error:
        print(f"✗ {error}")
        return 1
    print(f"✓ {path.name} is whole: {_contents(found)}, made {ago(time.time() - found.made_at)}.")
    return 0


def restore(home: Home, name: str, *, assume_yes: bool) -> int:
    """Put a backup in the place of the store, once the person agrees; 1 when they do not.

    Raises UserError while somebody has the store open, where nobody can be asked, and for a backup that is not whole.
    """
    path = _find(home, name)
    refuse_while_used(home)
    try:
        chosen = backup.verify(path)
    except StoreError as error:
        raise UserError(f"{error} The store was left as it is.") from error
    print(f"Backup  {path.name}: {_contents(chosen)}, made {ago(time.time() - chosen.made_at)}")
    print(f"Store   {_present(home)}")
    if not confirmed("Put the backup in the place of the store?", assume_yes=assume_yes):
        print("Nothing was changed.")
        return 1
    with nobody_else(home):
        aside = backup.restore(path, home.database, home.backups, now=time.time())
    print("The backup is in place; the backup itself is kept as well.")
    if aside is not None:
        print(f"What was there before lies in {aside}")
    return 0


@contextmanager
def nobody_else(home: Home) -> Iterator[None]:
    """Keep gateways away while the block runs. Raises UserError while somebody has the store open, ConfigError."""
    refuse_while_used(home)
    with only_gateway(home.lock):
        yield


def refuse_while_used(home: Home) -> None:
    """Raises UserError while a gateway or a terminal has the store open."""
    gateway = holder(home.lock)
    if gateway is not None:
        raise UserError(
            f"The gateway runs (process {gateway.process}) and has the store open. Stop it first: hermes gateway stop"
        )
    if any(map(is_open, home.terminals.glob("*"))):
        raise UserError("A terminal has the store open. Leave `hermes chat` there first.")


def size(number: int) -> str:
    """Bytes for people: `812 kB`, `12.3 MB`, `1.4 GB`."""
    if number < 1_000_000:
        return f"{number / 1e3:.0f} kB"
    return f"{number / 1e6:.1f} MB" if number < 1_000_000_000 else f"{number / 1e9:.1f} GB"


def _find(home: Home, name: str) -> Path:
    """A backup by its name, by a path, or the newest. Raises UserError."""
    kept = backup.listed(home.backups)
    if name == NEWEST and kept:
        return kept[0].path
    for path in (home.backups / name, Path(name)):
        if path.is_file():
            return path
    raise UserError(f"There is no backup {name!r}. See what there is: hermes backup list")


def _contents(found: Backup) -> str:
    return f"{size(found.bytes)}, {found.sessions} sessions, {found.messages} messages"


def _present(home: Home) -> str:
    """What would be replaced."""
    if not home.database.exists():
        return "there is none now"
    try:
        with closing(open_readable(home.database)) as connection:
            sessions, last = connection.execute("SELECT count(*), max(last_active) FROM sessions").fetchone()
            (messages,) = connection.execute("SELECT count(*) FROM messages").fetchone()
    except (StoreError, dbapi.Error) as error:
        return f"{home.database.name} cannot be read: {error}"
    active = f", last active {ago(time.time() - last)}" if last else ""
    return (
        f"{home.database.name}: {size(home.database.stat().st_size)}, {sessions} sessions, {messages} messages{active}"
    )
