"""Conversations as wholes: found by filters, seen to change, and taken away with what belongs to them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import HOUR, T0, begin, key_of, random_histories, summary, take, tell, user, write
from hermes.errors import Changed, SessionNotFound, StillNeeded, UserError
from hermes.sessions.filters import Filter, Lineage, Range
from hermes.sessions.model import OWNER, Link, Scope, SessionId, Split, Usage, ViewEntry
from hermes.sessions.ports import Store

WORDS = st.sampled_from(["auth", "Auth flow", "notes", "", "会话", "ÉTÉ"])


async def split(store: Store, name: str, child: str, *, at: float = T0 + HOUR) -> None:
    """Compress the conversation named `name` once."""
    session = await store.find(key_of(name))
    assert session is not None
    lease = await take(store, session.conversation, now=at)
    done = Split(child=SessionId(child), head=(), summary=summary("so far", at=at), tail=(), at=at)
    await store.split(lease, session.id, done)
    await store.leases.release(lease)


async def names(store: Store, scope: Scope = OWNER, **conditions: Any) -> list[str]:
    return [one.conversation[-1] for one in await store.select(Filter(**conditions), scope)]


class LineagesContract:
    """Filters look at whole lineages, and nothing of a lineage goes alone."""

    async def test_a_window_holds_the_whole_conversation(self, store: Store) -> None:
        await tell(store, "a", at=T0)
        await tell(store, "b", at=T0 + HOUR)
        session, lease = await begin(store, "c", at=T0)
        await write(store, lease, session, user("still here", at=T0 + 2 * HOUR))
        assert await names(store) == ["a", "c", "b"]
        assert await names(store, before=T0 + HOUR) == ["a"], "what was said in lately is not old"
        assert await names(store, after=T0 + 1) == ["b"], "what began earlier did not begin in the window"
        with pytest.raises(UserError, match="ends before it begins"):
            Filter(after=T0, before=T0)

    async def test_figures_are_summed_over_the_segments(self, store: Store) -> None:
        session, lease = await begin(store, "a", title="proj")
        spent = Usage(input_tokens=70, output_tokens=30, cost_usd=0.5)
        await write(store, lease, session, user("one"), user("two"), usage=spent)
        await store.leases.release(lease)
        await split(store, "a", "20270115_090000_b")
        tip = await store.find(key_of("a"))
        assert tip is not None
        lease = await take(store, tip.conversation, now=T0 + HOUR)
        await write(store, lease, tip, user("three", at=T0 + HOUR), usage=spent, turn="turn-2")
        (found,) = await store.select(Filter(messages=Range(least=3, most=3), tokens=Range(least=200)), OWNER)
        assert (found.message_count, found.tokens, found.usage.cost_usd) == (3, 200, 1.0)
        assert [one.id for one in found.segments] == [session.id, tip.id]
        assert found.tip.id == tip.id
        assert await names(store, title="PROJ #2") == ["a"]
        assert await names(store, cost=Range(most=0.9)) == []

    async def test_open_and_archived_ones_can_be_told_apart(self, store: Store) -> None:
        for name in "ab":
            await tell(store, name)
        first = await store.find(key_of("a"))
        assert first is not None
        await store.end(first.id, reason="done", at=T0 + 5)
        await store.archive(first.conversation, OWNER, archived=True)
        found = {one.conversation[-1]: one.ended_at for one in await store.select(Filter(), OWNER)}
        assert found == {"a": T0 + 5, "b": None}
        assert await names(store, archived=True) == ["a"]
        assert await names(store, archived=False) == ["b"]
        assert await names(store, end_reason="done") == ["a"]

    async def test_a_reader_selects_among_what_they_may_see(self, store: Store) -> None:
        await tell(store, "a", user_id="u1")
        await tell(store, "b", user_id="u2")
        assert await names(store, Scope(source="telegram", user_id="u2")) == ["b"]

    @random_histories
    @given(st.data())
    async def test_what_is_selected_is_what_a_plain_filter_keeps(self, store: Store, data: st.DataObject) -> None:
        number = len(await store.select(Filter(), OWNER))
        at = T0 + data.draw(st.integers(0, 5)) * HOUR
        facts: dict[str, Any] = {
            "source": data.draw(st.sampled_from(["cli", "telegram", "cron"])),
            "user_id": data.draw(st.sampled_from([None, "u1", "u2"])),
            "cwd": data.draw(st.sampled_from([None, "/home/me", "/home/me/proj", "/home/meadow"])),
            "git_branch": data.draw(WORDS) or None,
            "title": (data.draw(WORDS) or "x") + str(number),
        }
        session, lease = await begin(store, f"r{number}", at=at, **facts)
        spent = Usage(input_tokens=data.draw(st.integers(0, 3)), cost_usd=data.draw(st.sampled_from([0.0, 0.5])))
        said = [user("x", at=at + data.draw(st.integers(0, 3)) * HOUR)] * data.draw(st.integers(0, 3))
        await write(store, lease, session, *said, usage=spent, turn=f"turn-{number}")
        if data.draw(st.booleans()):
            await store.end(session.id, reason=data.draw(st.sampled_from(["done", "idle"])), at=at)
        bound = st.one_of(st.none(), st.integers(0, 4))
        wanted = Filter(
            before=data.draw(st.one_of(st.none(), st.just(T0 + 3 * HOUR))),
            source=data.draw(st.sampled_from([None, "cli", "telegram"])),
            title=data.draw(st.one_of(st.none(), WORDS)),
            branch=data.draw(st.one_of(st.none(), WORDS)),
            user=data.draw(st.sampled_from([None, "u1"])),
            cwd=data.draw(st.sampled_from([None, "/home/me", "/home/me/"])),
            messages=Range(least=data.draw(bound), most=data.draw(bound)),
            tokens=Range(least=data.draw(bound)),
            cost=Range(most=data.draw(st.sampled_from([None, 0.4]))),
            end_reason=data.draw(st.sampled_from([None, "done"])),
        )
        everything = await store.select(Filter(), OWNER)
        assert await store.select(wanted, OWNER) == tuple(one for one in everything if plainly(wanted, one))

    async def test_a_deletion_takes_delegates_along(self, store: Store) -> None:
        parent = await tell(store, "a")
        await tell(store, "b", parent=parent.id, link=Link.DELEGATE)
        await tell(store, "c")
        await store.delete(parent.conversation, OWNER, now=T0 + HOUR)
        assert await names(store) == ["c"]
        assert await store.find(key_of("b")) is None

    async def test_what_a_branch_shows_stays(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (row,) = await write(store, lease, session, user("shared"))
        await store.leases.release(lease)
        branch, lease = await begin(store, "b", parent=session.id, link=Link.BRANCH)
        await store.replace(lease, branch.id, [ViewEntry(message_id=row.id)])
        await store.leases.release(lease)
        with pytest.raises(StillNeeded, match=branch.id):
            await store.delete(session.conversation, OWNER, now=T0 + HOUR)
        await store.delete(branch.conversation, OWNER, now=T0 + HOUR)
        await store.delete(session.conversation, OWNER, now=T0 + HOUR)
        assert await names(store) == []

    async def test_a_deletion_refuses_what_has_changed(self, store: Store) -> None:
        session = await tell(store, "a")
        seen = await store.stamp(session.conversation, OWNER)
        assert await store.stamp(session.conversation, OWNER) == seen
        await tell(store, "b", parent=session.id, link=Link.DELEGATE)
        with pytest.raises(Changed):
            await store.delete(session.conversation, OWNER, now=T0 + HOUR, unchanged=seen)
        seen = await store.stamp(session.conversation, OWNER)
        assert seen.conversations == (session.conversation, "20270115_080000_b")
        await store.delete(session.conversation, OWNER, now=T0 + HOUR, unchanged=seen)
        with pytest.raises(SessionNotFound):
            await store.stamp(session.conversation, OWNER)

    @pytest.mark.parametrize("change", ["word", "title", "end"])
    async def test_a_stamp_shows_every_change(self, store: Store, change: str) -> None:
        session = await tell(store, "a")
        seen = await store.stamp(session.conversation, OWNER)
        if change == "word":
            lease = await take(store, session.conversation)
            await write(store, lease, session, user("more"), turn="turn-2")
        elif change == "title":
            await store.rename(session.id, "new", by_person=True)
        else:
            await store.end(session.id, reason="done", at=T0)
        assert await store.stamp(session.conversation, OWNER) != seen

    async def test_a_name_is_free_again_after_a_deletion(self, store: Store) -> None:
        session = await tell(store, "a", title="proj")
        await store.delete(session.conversation, OWNER, now=T0 + HOUR)
        other = await tell(store, "b")
        assert (await store.rename(other.id, "proj", by_person=True)).title == "proj"


def plainly(wanted: Filter, one: Lineage) -> bool:
    """The same conditions in other words."""
    titles = " ".join(segment.title or "" for segment in one.segments).casefold()
    branches = [(segment.git_branch or "").casefold() for segment in one.segments if segment.git_branch]
    checks = [
        wanted.before is None or max(segment.last_active for segment in one.segments) < wanted.before,
        wanted.source is None or one.tip.source == wanted.source,
        wanted.title is None or wanted.title.casefold() in titles,
        wanted.branch is None or any(wanted.branch.casefold() in branch for branch in branches),
        wanted.user is None or one.tip.user_id == wanted.user,
        wanted.cwd is None or f"{one.tip.cwd or ''}/".startswith("/home/me/"),
        (wanted.messages.least or 0) <= sum(segment.message_count for segment in one.segments),
        wanted.messages.most is None or sum(s.message_count for s in one.segments) <= wanted.messages.most,
        (wanted.tokens.least or 0) <= one.tip.usage.input_tokens,
        wanted.cost.most is None or one.tip.usage.cost_usd <= wanted.cost.most,
        wanted.end_reason is None or one.tip.end_reason == wanted.end_reason,
    ]
    return all(checks)
