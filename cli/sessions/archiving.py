"""`hermes sessions archive` and `unarchive`: hiding conversations from lists, and showing them again."""

from hermes.cli.sessions import flags
from hermes.cli.sessions.bulk import confirmed, described, plural, skipped
from hermes.cli.store import writable
from hermes.cli.table import Arguments
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions.filters import Selection
from hermes.sessions.model import OWNER
from hermes.sessions.store import SqliteStore

ONE_OF_BOTH = (
    "Name a session, or give at least one condition such as --older-than 30: without either this would take everything."
)


async def archive(home: Home, arguments: Arguments) -> int:
    """Hide one conversation, or the ended ones that meet the conditions."""
    async with writable(home) as store:
        return await _set(home, store, arguments, archived=True)


async def unarchive(home: Home, arguments: Arguments) -> int:
    """Show one conversation again, or those that meet the conditions."""
    async with writable(home) as store:
        return await _set(home, store, arguments, archived=False)


async def _set(home: Home, store: SqliteStore, arguments: Arguments, *, archived: bool) -> int:
    conditions, word = flags.given(arguments), "archive" if archived else "unarchive"
    if (arguments.session is None) == (not conditions):
        raise UserError(ONE_OF_BOTH)
    if arguments.session is not None:
        session = await store.resolve(arguments.session, OWNER)
        await store.archive(session.conversation, OWNER, archived=archived)
        print(f"{word.capitalize()}d {session.id}.")
        return 0
    wanted = flags.wanted(home, conditions, archived=not archived)
    selection = Selection.of(await store.select(wanted, OWNER))
    found = selection.ended if archived else (*selection.ended, *selection.open)
    said = skipped(selection, ": name one to archive it all the same") if archived else []
    print("\n".join([*described(found, flags.zone_of(home)), *said]) or f"Nothing to {word}.")
    if not found:
        return 0
    if arguments.dry_run:
        print("Nothing was changed: this was a dry run.")
        return 0
    if not confirmed(f"{word.capitalize()} {plural(len(found))}?", assume_yes=bool(arguments.yes)):
        print("Nothing was changed.")
        return 1
    for one in found:
        await store.archive(one.conversation, OWNER, archived=archived)
    print(f"{word.capitalize()}d {plural(len(found))}.")
    return 0
