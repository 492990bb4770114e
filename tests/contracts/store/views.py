"""Compression is a view: what the model is shown changes, and no row is ever copied or lost."""

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import (
    HOUR,
    T0,
    begin,
    birth,
    key_of,
    random_histories,
    summary,
    texts,
    tool,
    user,
    write,
)
from contracts.store.facts import assistant as says
from hermes.ids import fresh
from hermes.sessions.model import (
    OWNER,
    Kind,
    Lease,
    Link,
    Message,
    Session,
    SessionId,
    Snapshot,
    Split,
    TurnId,
    ViewEntry,
)
from hermes.sessions.ports import Store

PLACEHOLDER = "[tool output cleared]"

moves = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("split"), st.integers(0, 3), st.integers(0, 4)),
    st.tuples(st.just("prune"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("undo"), st.integers(1, 4), st.just(0)),
)


class ViewsContract:
    """Splits, prunings and undone rows."""

    async def test_a_child_shows_head_summary_tail_and_then_its_own_rows(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        one, _, _, four = await write(store, lease, session, *(user(word) for word in ("1", "2", "3", "4")))
        split = _split("b", head=(one,), tail=(four,))
        child = await store.split(lease, session.id, split)
        await write(store, lease, child, user("5"))
        rows = await store.history(child.id)
        assert texts(rows) == ["1", "in short", "4", "5"]
        assert [row.kind for row in rows] == [Kind.TALK, Kind.SUMMARY, Kind.TALK, Kind.TALK]
        assert [row.session_id for row in rows] == [session.id, child.id, session.id, child.id]
        assert texts(await store.history(session.id)) == ["1", "2", "3", "4"]

    async def test_a_split_closes_the_parent_and_moves_the_tip(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        child = await store.split(lease, session.id, _split("b", at=T0 + HOUR))
        parent = await store.get(session.id, OWNER)
        assert parent.ended_at == T0 + HOUR
        assert parent.end_reason
        assert (child.parent, child.link, child.conversation) == (session.id, Link.COMPRESSION, session.conversation)
        assert (child.started_at, child.ended_at) == (T0 + HOUR, None)
        assert await store.tip(session.conversation) == child
        assert (await store.open(key_of("a"), birth("c"))).id == child.id

    async def test_a_child_keeps_whose_it_is_and_what_it_was_about(self, store: Store) -> None:
        session, lease = await begin(store, "a", chat_id="7", chat_kind="dm", thread_id="3", cwd="/src")
        await write(store, lease, session, user("plan the garden"))
        parent = await store.tip(session.conversation)
        child = await store.split(lease, session.id, _split("b"))
        for fact in ("source", "key", "user_id", "chat_id", "chat_kind", "thread_id", "cwd", "preview"):
            assert getattr(child, fact) == getattr(parent, fact)

    async def test_a_child_may_have_its_own_stable_start(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        old = Snapshot(model="m1", provider="p", system_prompt="s", tools="[]")
        await write(store, lease, session, snapshot=old)
        new = Snapshot(model="m2", provider="q", system_prompt="t", tools="[1]")
        child = await store.split(lease, session.id, replace(_split("b"), snapshot=new))
        assert (child.model, child.provider, child.system_prompt, child.tools) == ("m2", "q", "t", "[1]")
        parent = await store.get(session.id, OWNER)
        assert (parent.model, parent.provider, parent.system_prompt, parent.tools) == ("m1", "p", "s", "[]")

    async def test_a_child_carries_the_next_number_of_a_title(self, store: Store) -> None:
        session, lease = await begin(store, "a", title="garden")
        second = await store.split(lease, session.id, _split("b"))
        third = await store.split(lease, second.id, _split("c"))
        assert (second.title, third.title) == ("garden #2", "garden #3")
        assert (await store.get(session.id, OWNER)).title == "garden"

    async def test_a_number_that_another_conversation_has_is_passed_over(self, store: Store) -> None:
        await store.open(key_of("z"), birth("z", title="garden #2"))
        session, lease = await begin(store, "a", title="garden")
        assert (await store.split(lease, session.id, _split("b"))).title == "garden #3"

    async def test_a_child_of_an_untitled_parent_is_untitled(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        assert (await store.split(lease, session.id, _split("b"))).title is None

    async def test_a_view_may_reach_back_over_several_splits(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (one,) = await write(store, lease, session, user("1"))
        second = await store.split(lease, session.id, _split("b", head=(one,)))
        (two,) = await write(store, lease, second, user("2"))
        third = await store.split(lease, second.id, _split("c", head=(one,), tail=(two,), short=None))
        assert texts(await store.history(third.id)) == ["1", "2"]

    async def test_a_view_shows_placeholders_and_keeps_the_words(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        ask, out = await write(store, lease, session, user("ask"), tool("very long"))
        kept = (ViewEntry(message_id=ask.id), ViewEntry(message_id=out.id, replacement=PLACEHOLDER))
        split = Split(child=SessionId("b"), head=kept, summary=None, tail=(), at=T0)
        child = await store.split(lease, session.id, split)
        assert texts(await store.history(child.id)) == ["ask", PLACEHOLDER]
        assert texts(await store.transcript(session.conversation, OWNER)) == ["ask", "very long"]

    async def test_a_pruned_session_shows_placeholders_and_goes_on(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        ask, out = await write(store, lease, session, user("ask"), tool("very long"))
        view = (ViewEntry(message_id=ask.id), ViewEntry(message_id=out.id, replacement=PLACEHOLDER))
        await store.replace(lease, session.id, view)
        await write(store, lease, session, says("answer"))
        assert texts(await store.history(session.id)) == ["ask", PLACEHOLDER, "answer"]
        assert (await store.tip(session.conversation)).id == session.id
        assert texts(await store.turn_messages(TurnId("turn-1"))) == ["ask", "very long", "answer"]

    async def test_a_later_pruning_takes_the_place_of_an_earlier_one(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        rows = await write(store, lease, session, tool("one"), tool("two"))
        for placeholder in ("first", "second"):
            await store.replace(lease, session.id, [ViewEntry(message_id=r.id, replacement=placeholder) for r in rows])
        assert texts(await store.history(session.id)) == ["second", "second"]

    async def test_undone_rows_are_gone_from_history_and_transcript(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, user("keep"))
        wrong, answer = await write(store, lease, session, user("wrong"), says("oops"), turn="t2")
        assert await store.mark_undone(lease, session.id, wrong.id, by=answer.id + 1) == 2
        assert texts(await store.history(session.id)) == ["keep"]
        assert texts(await store.transcript(session.conversation, OWNER)) == ["keep"]

    async def test_undone_rows_are_kept_and_know_what_undid_them(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (wrong,) = await write(store, lease, session, user("wrong"))
        (edit,) = await write(store, lease, session, user("right"), turn="t2")
        assert await store.mark_undone(lease, session.id, wrong.id, by=edit.id) == 1
        assert [row.undone_by for row in await store.turn_messages(TurnId("turn-1"))] == [edit.id]
        assert texts(await store.history(session.id)) == ["right"]

    async def test_rows_are_undone_once(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (wrong,) = await write(store, lease, session, user("wrong"))
        assert await store.mark_undone(lease, session.id, wrong.id, by=wrong.id + 1) == 1
        assert await store.mark_undone(lease, session.id, wrong.id, by=wrong.id + 1) == 0

    async def test_undoing_reaches_behind_a_split_and_leaves_the_summary(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        one, _, wrong = await write(store, lease, session, user("1"), user("2"), user("wrong"))
        child = await store.split(lease, session.id, _split("b", head=(one,), tail=(wrong,)))
        (last,) = await write(store, lease, child, says("oops"))
        assert await store.mark_undone(lease, child.id, wrong.id, by=last.id + 1) == 2
        assert texts(await store.history(child.id)) == ["1", "in short"]
        assert texts(await store.transcript(session.conversation, OWNER)) == ["1", "2"]

    async def test_undoing_leaves_other_conversations_alone(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        (wrong,) = await write(store, lease, session, user("wrong"))
        other, other_lease = await begin(store, "b")
        (mine,) = await write(store, other_lease, other, user("mine"))
        await store.mark_undone(lease, session.id, wrong.id, by=mine.id + 1)
        assert texts(await store.history(other.id)) == ["mine"]

    @random_histories
    @given(history=st.lists(moves, max_size=10))
    async def test_history_and_transcript_follow_any_course_of_events(
        self, store: Store, history: list[tuple[str, int, int]]
    ) -> None:
        name = fresh("story")
        session, lease = await begin(store, name)
        story = _Story(store, lease, session)
        for move, first, second in history:
            await getattr(story, move)(first, second)
            assert texts(await store.history(story.tip.id)) == [shown.text for shown in story.shown]
        assert [row.id for row in await store.transcript(session.conversation, OWNER)] == list(story.said)


@dataclass(frozen=True, slots=True)
class _Shown:
    row: Message
    replacement: str | None = None

    @property
    def text(self) -> str:
        return self.row.content if self.replacement is None else self.replacement

    @property
    def entry(self) -> ViewEntry:
        return ViewEntry(message_id=self.row.id, replacement=self.replacement)


@dataclass(slots=True)
class _Story:
    """A conversation beside a plain list of what it must show."""

    store: Store
    lease: Lease
    tip: Session
    shown: list[_Shown] = field(default_factory=list)
    said: list[int] = field(default_factory=list)

    async def say(self, count: int, _: int) -> None:
        words = [tool(fresh("tool")) if n % 2 else user(fresh("word")) for n in range(count)]
        rows = await write(self.store, self.lease, self.tip, *words)
        self.shown += [_Shown(row) for row in rows]
        self.said += [row.id for row in rows]

    async def split(self, head: int, tail: int) -> None:
        kept_head, rest = self.shown[:head], self.shown[head:]
        kept_tail = rest[max(0, len(rest) - tail) :]
        short = summary(fresh("summary")) if len(kept_tail) < len(rest) else None
        split = Split(
            child=birth(fresh("child")).id,
            head=tuple(shown.entry for shown in kept_head),
            summary=short,
            tail=tuple(shown.entry for shown in kept_tail),
            at=T0,
        )
        self.tip = await self.store.split(self.lease, self.tip.id, split)
        rows = [row for row in await self.store.history(self.tip.id) if row.session_id == self.tip.id]
        assert [row.content for row in rows] == ([] if short is None else [short.content])
        self.shown = [*kept_head, *map(_Shown, rows), *kept_tail]

    async def prune(self, index: int, _: int) -> None:
        self.shown = [_Shown(s.row, PLACEHOLDER) if n == index else s for n, s in enumerate(self.shown)]
        await self.store.replace(self.lease, self.tip.id, [shown.entry for shown in self.shown])

    async def undo(self, back: int, _: int) -> None:
        words = [shown.row.id for shown in self.shown if shown.row.kind is not Kind.SUMMARY]
        if not words:
            return
        first = words[-back:][0]
        (edit,) = await write(self.store, self.lease, self.tip, user(fresh("edit")))
        gone = [row for row in self.said if row >= first]
        assert await self.store.mark_undone(self.lease, self.tip.id, first, by=edit.id) == len(gone)
        self.said = [*(row for row in self.said if row < first), edit.id]
        stays = [s for s in self.shown if s.row.kind is Kind.SUMMARY or s.row.id < first]
        self.shown = [*stays, _Shown(edit)]


def _split(
    child: str,
    *,
    head: tuple[Message, ...] = (),
    tail: tuple[Message, ...] = (),
    short: str | None = "in short",
    at: float = T0,
) -> Split:
    return Split(
        child=birth(child).id,
        head=tuple(ViewEntry(message_id=row.id) for row in head),
        summary=None if short is None else summary(short),
        tail=tuple(ViewEntry(message_id=row.id) for row in tail),
        at=at,
    )
