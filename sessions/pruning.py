"""Deleting many conversations, each only if it still is what it was when a person was shown it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hermes.errors import Changed, LeaseBusy, SessionNotFound, StillNeeded
from hermes.sessions.filters import Lineage, Stamp
from hermes.sessions.model import OWNER, ConversationId, SessionId
from hermes.sessions.ports import SessionStore

OPEN = "a delegate that it sent out has not ended"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning did: how many went, and which were kept after all, and why."""

    gone: int
    kept: tuple[tuple[SessionId, str], ...]


async def stamps(store: SessionStore, chosen: Sequence[Lineage]) -> Mapping[ConversationId, Stamp]:
    """What each holds now: taken before a person is asked, so that whoever speaks meanwhile keeps everything."""
    return {one.conversation: await store.stamp(one.conversation, OWNER) for one in chosen}


async def prune(
    store: SessionStore,
    chosen: Sequence[Lineage],
    seen: Mapping[ConversationId, Stamp],
    *,
    now: Callable[[], float],
    went: Callable[[], object] = lambda: None,
) -> Pruned:
    """Delete those of `chosen` that are what they were at their stamp in `seen`; `went` is called after each.

    The youngest go first: a branch goes before what it shows of its parent.
    """
    gone, kept = 0, []
    for one in sorted(chosen, key=lambda one: -one.started_at):
        stamp = seen[one.conversation]
        try:
            if _has_open_delegate(one, stamp):
                kept.append((one.tip.id, OPEN))
            else:
                await store.delete(one.conversation, OWNER, now=now(), unchanged=stamp)
                gone += 1
        except SessionNotFound:
            gone += 1  # a delegate of one that went before it
        except (Changed, LeaseBusy, StillNeeded) as error:
            kept.append((one.tip.id, str(error)))
        went()
    return Pruned(gone, tuple(kept))


def _has_open_delegate(one: Lineage, stamp: Stamp) -> bool:
    own = {segment.id for segment in one.segments}
    return any(ended is None and session not in own for session, _, ended in stamp.facts)
