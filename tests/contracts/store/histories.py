"""Names over random histories: whatever happens to conversations, titles stay unique and every name finds its own."""

import contextlib
from collections.abc import Sequence
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import HOUR, T0, begin, random_histories, summary, take, user, write
from hermes.errors import AmbiguousSession, SessionNotFound, TitleTaken
from hermes.sessions.filters import Filter, Lineage
from hermes.sessions.model import OWNER, SessionId, Split
from hermes.sessions.ports import Store
from hermes.sessions.titles import LIMIT

NAMES = count(1)
TITLES = st.sampled_from(["proj", "proj #2", "proj #3", "proj notes", "x" * LIMIT, "会" * 50, "#1", "latest"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "rename", "name", "compress", "delete", "archive"]), TITLES, st.integers(0, 9)),
    max_size=14,
)


class HistoriesContract:
    """Rename, compress, delete, in any order."""

    @random_histories
    @given(STEPS)
    async def test_titles_stay_unique_and_every_name_leads_to_its_live_tip(
        self, store: Store, steps: Sequence[tuple[str, str, int]]
    ) -> None:
        mine: set[str] = set()
        for step, title, which in steps:
            lineages = [one for one in await store.select(Filter(), OWNER) if one.conversation in mine]
            if step == "begin" or not lineages:
                session, lease = await begin(store, f"h{next(NAMES)}", title=title)
                await write(store, lease, session, user("hi"), turn=f"turn-{session.id}")
                await store.leases.release(lease)
                mine.add(session.conversation)
            else:
                await _change(store, lineages[which % len(lineages)], step, title)
        await _all_is_well(store)
        for one in mine:
            with contextlib.suppress(SessionNotFound):
                await store.delete(one, OWNER, now=T0 + HOUR)  # type: ignore[arg-type]


async def _change(store: Store, one: Lineage, step: str, title: str) -> None:
    by_person = one.tip.title_by_person
    if step in {"rename", "name"}:
        with contextlib.suppress(TitleTaken):
            renamed = await store.rename(one.tip.id, title, by_person=step == "rename")
            kept = by_person and step == "name"
            assert renamed.title == one.tip.title if kept else renamed.title is not None
            assert kept or step == "name" or renamed.title == title
    elif step == "compress":
        lease = await take(store, one.conversation, now=T0 + HOUR)
        split = Split(child=SessionId(f"child-{next(NAMES)}"), head=(), summary=summary("…"), tail=(), at=T0 + 1)
        child = await store.split(lease, one.tip.id, split)
        await store.leases.release(lease)
        assert (child.title is None) == (one.tip.title is None)
        assert child.title_by_person == by_person
    elif step == "delete":
        await store.delete(one.conversation, OWNER, now=T0 + HOUR)
    else:
        await store.archive(one.conversation, OWNER, archived=not one.tip.archived)


async def _all_is_well(store: Store) -> None:
    lineages = await store.select(Filter(), OWNER)
    titles = [segment.title for one in lineages for segment in one.segments if segment.title is not None]
    assert len(titles) == len(set(titles))
    assert all(0 < len(title) <= LIMIT for title in titles)
    for one in lineages:
        for segment in one.segments:
            for name in filter(None, (segment.id, segment.title)):
                with contextlib.suppress(AmbiguousSession):
                    assert (await store.resolve(name, OWNER)).id == one.tip.id, name
