"""Deleting many conversations, each only if it still is what it was when it was chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hermes.errors import Changed, LeaseBusy, SessionNotFound, StillNeeded
from hermes.sessions.filters import Filter, Lineage, Selection
from hermes.sessions.model import OWNER, SessionId
from hermes.sessions.ports import SessionStore


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning did: how many went, and which were kept after all, and why."""

    gone: int
    kept: tuple[tuple[SessionId, str], ...]


async def prune(
    store: SessionStore,
    wanted: Filter,
    chosen: Sequence[Lineage],
    *,
    now: Callable[[], float],
    went: Callable[[], object] = lambda: None,
) -> Pruned:
    """Delete those of `chosen` that have ended and still meet `wanted`; `went` is called after each.

    Between the choice and the deletion a person may have been asked: what somebody has spoken in meanwhile stays.
    """
    stamps = {one.conversation: await store.stamp(one.conversation, OWNER) for one in chosen}
    still = {one.conversation for one in Selection.of(await store.select(wanted, OWNER)).ended}
    gone = 0
    kept = [(one.tip.id, str(Changed(one.conversation))) for one in chosen if one.conversation not in still]
    for one in chosen:
        try:
            if one.conversation in still:
                await store.delete(one.conversation, OWNER, now=now(), unchanged=stamps[one.conversation])
                gone += 1
        except SessionNotFound:
            gone += 1  # a delegate of one that went before it
        except (Changed, LeaseBusy, StillNeeded) as error:
            kept.append((one.tip.id, str(error)))
        went()
    return Pruned(gone, tuple(kept))
