"""`hermes sessions delete` and `prune`."""

import time

from hermes.cli.columns import printable
from hermes.cli.progress import Progress
from hermes.cli.sessions import flags
from hermes.cli.sessions.bulk import confirmed, described, plural, skipped
from hermes.cli.store import writable
from hermes.cli.table import Arguments
from hermes.home import Home
from hermes.sessions.filters import Selection
from hermes.sessions.model import OWNER
from hermes.sessions.pruning import Pruned, stamps
from hermes.sessions.pruning import prune as take_away


async def delete(home: Home, reference: str, *, assume_yes: bool) -> int:
    """Delete one conversation. Raises SessionNotFound, AmbiguousSession, LeaseBusy, StillNeeded, Changed."""
    async with writable(home) as store:
        session = await store.resolve(reference, OWNER)
        stamp = await store.stamp(session.conversation, OWNER)
        delegates = len(stamp.conversations) - 1
        along = "" if not delegates else " and its delegate" if delegates == 1 else f" and its {delegates} delegates"
        name = printable(session.title or session.preview or session.id)
        if not confirmed(
            f"Delete {session.id} ({name}), {stamp.messages} messages{along}, for good?", assume_yes=assume_yes
        ):
            print("Nothing was deleted.")
            return 1
        await store.delete(session.conversation, OWNER, now=time.time(), unchanged=stamp)
        print(f"Deleted {session.id}{along}.")
        return 0


async def prune(home: Home, arguments: Arguments) -> int:
    """Delete the ended conversations that meet the conditions."""
    conditions = flags.given(arguments) or {"--older-than": flags.DEFAULT_AGE}
    wanted = flags.wanted(home, conditions, archived=None if arguments.include_archived else False)
    async with writable(home) as store:
        selection = Selection.of(await store.select(wanted, OWNER))
        seen = await stamps(store, selection.ended)
        delegates = sum(len(one.conversations) - 1 for one in seen.values())
        about = described(selection.ended, flags.zone_of(home)) or ["Nothing to prune."]
        about += [f"They sent out {delegates} delegates, which go with them."] if delegates else []
        print("\n".join([*about, *skipped(selection, ": only what has ended is pruned")]))
        if not selection.ended:
            return 0
        if arguments.dry_run:
            print("Nothing was deleted: this was a dry run.")
            return 0
        if not confirmed(f"Delete {plural(len(selection.ended))} for good?", assume_yes=bool(arguments.yes)):
            print("Nothing was deleted.")
            return 1
        with Progress("Pruning", len(selection.ended)) as progress:
            done = await take_away(store, selection.ended, seen, now=time.time, went=progress.advance)
    print("\n".join(_told(done)))
    return 0 if not done.kept else 1


def _told(done: Pruned) -> list[str]:
    return [f"Pruned {plural(done.gone)}.", *(f"Kept {name}: {why}" for name, why in done.kept)]
