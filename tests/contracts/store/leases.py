"""One turn a conversation, and no word from a turn that lost its right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import HOUR, MINUTE, T0, begin, birth, key_of, random_histories, take, texts, write
from contracts.store.facts import user as said
from hermes.errors import LeaseBusy, LeaseLost
from hermes.ids import fresh
from hermes.sessions.model import Lease, Session, Split, Usage
from hermes.sessions.ports import Store

moves = st.tuples(st.sampled_from(["take", "force", "renew", "release", "write", "wait"]), st.sampled_from(["a", "b"]))


class LeasesContract:
    """The `Leases` port, and the fence of everything that a turn writes."""

    async def test_a_lease_says_whose_it_is_and_how_long(self, store: Store) -> None:
        session = await store.open(key_of("a"), birth("a"))
        lease = await store.leases.take(session.conversation, owner="me", place="Telegram", now=T0, ttl=MINUTE)
        assert (lease.conversation, lease.owner, lease.expires_at) == (session.conversation, "me", T0 + MINUTE)

    async def test_a_second_owner_is_told_where_the_conversation_is_busy(self, store: Store) -> None:
        session, _ = await begin(store, "a")
        with pytest.raises(LeaseBusy) as busy:
            await take(store, session.conversation, owner="another", now=T0 + 1)
        assert (busy.value.place, busy.value.expires_at) == ("Telegram", T0 + MINUTE)

    async def test_conversations_do_not_wait_for_each_other(self, store: Store) -> None:
        await begin(store, "a")
        other = await store.open(key_of("b"), birth("b"))
        assert (await take(store, other.conversation, owner="another")).owner == "another"

    async def test_the_owner_itself_finds_it_busy_too(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        with pytest.raises(LeaseBusy):
            await take(store, session.conversation)
        await write(store, lease, session, said("still mine"))

    async def test_a_lease_that_ran_out_is_free(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        taken = await take(store, session.conversation, owner="another", now=T0 + MINUTE + 1)
        assert taken.generation > lease.generation

    async def test_a_lease_that_ran_out_still_writes_until_somebody_takes_it(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await write(store, lease, session, said("slow"), at=T0 + HOUR)
        await take(store, session.conversation, owner="another", now=T0 + HOUR)
        with pytest.raises(LeaseLost):
            await write(store, lease, session, said("too slow"), at=T0 + HOUR)
        assert texts(await store.history(session.id)) == ["slow"]

    async def test_a_renewed_lease_keeps_others_out_longer(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        renewed = await store.leases.renew(lease, now=T0 + 50, ttl=MINUTE)
        assert (renewed.generation, renewed.expires_at) == (lease.generation, T0 + 50 + MINUTE)
        with pytest.raises(LeaseBusy):
            await take(store, session.conversation, owner="another", now=T0 + MINUTE + 1)

    async def test_a_released_lease_is_free_and_writes_no_more(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        await store.leases.release(lease)
        with pytest.raises(LeaseLost):
            await write(store, lease, session, said("late"))
        with pytest.raises(LeaseLost):
            await store.leases.renew(lease, now=T0, ttl=MINUTE)
        assert (await take(store, session.conversation, owner="another")).owner == "another"

    async def test_generations_grow_over_releases(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        seen = [lease.generation]
        for _ in range(3):
            await store.leases.release(lease)
            lease = await take(store, session.conversation)
            seen.append(lease.generation)
        assert seen == sorted(set(seen))

    async def test_giving_back_a_lost_lease_leaves_the_new_owner_alone(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        newer = await take(store, session.conversation, owner="another", now=T0 + HOUR)
        await store.leases.release(lease)
        await write(store, newer, session, said("mine"))
        assert texts(await store.history(session.id)) == ["mine"]

    async def test_force_takes_a_lease_from_a_living_owner(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        taken = await store.leases.take(
            session.conversation, owner="another", place="terminal", now=T0, ttl=MINUTE, force=True
        )
        assert taken.generation > lease.generation
        with pytest.raises(LeaseLost):
            await store.leases.renew(lease, now=T0, ttl=MINUTE)

    async def test_what_dead_owners_hold_is_free_and_fenced_off(self, store: Store) -> None:
        session, dead = await begin(store, "a", owner="host:old")
        await store.leases.bury(owner_prefix="host:", except_owner="host:new")
        with pytest.raises(LeaseLost):
            await write(store, dead, session, said("late"))
        taken = await take(store, session.conversation, owner="host:new")
        assert taken.generation > dead.generation

    @pytest.mark.parametrize("owner", ["host:new", "hostX", "other:old"])
    async def test_living_owners_keep_what_they_hold(self, store: Store, owner: str) -> None:
        session, lease = await begin(store, "a", owner=owner)
        await store.leases.bury(owner_prefix="host:", except_owner="host:new")
        await store.leases.bury(owner_prefix="host_", except_owner="host:new")
        await write(store, lease, session, said("alive"))
        assert texts(await store.history(session.id)) == ["alive"]

    async def test_a_lost_lease_changes_nothing_anywhere(self, store: Store) -> None:
        session, lease = await begin(store, "a")
        rows = await write(store, lease, session, said("one"), said("two"))
        before = await store.tip(session.conversation)
        await take(store, session.conversation, owner="another", now=T0 + HOUR)
        split = Split(child=birth("b").id, head=(), summary=None, tail=(), at=T0)
        with pytest.raises(LeaseLost):
            await write(store, lease, session, said("three"), usage=Usage(input_tokens=5), at=T0 + HOUR)
        with pytest.raises(LeaseLost):
            await store.split(lease, session.id, split)
        with pytest.raises(LeaseLost):
            await store.replace(lease, session.id, ())
        with pytest.raises(LeaseLost):
            await store.mark_undone(lease, session.id, rows[0].id, by=rows[1].id + 1)
        assert await store.tip(session.conversation) == before
        assert await store.history(session.id) == rows

    async def test_a_lease_gives_no_right_over_another_conversation(self, store: Store) -> None:
        _, lease = await begin(store, "a")
        other = await store.open(key_of("b"), birth("b"))
        with pytest.raises(LeaseLost):
            await write(store, lease, other, said("astray"))
        assert await store.history(other.id) == ()

    @random_histories
    @given(history=st.lists(moves, max_size=12))
    async def test_only_the_newest_living_lease_ever_writes(self, store: Store, history: list[tuple[str, str]]) -> None:
        name = fresh("race")
        race = _Race(store, await store.open(key_of(name), birth(name)))
        for move, who in history:
            await getattr(race, move)(who)
        assert texts(await store.history(race.session.id)) == race.written


class _Race:
    """Two owners at one conversation, and what each move must come to."""

    def __init__(self, store: Store, session: Session) -> None:
        self.store = store
        self.session = session
        self.written: list[str] = []
        self.now = T0
        self.leases: dict[str, Lease] = {}
        self.newest: Lease | None = None
        """The lease that is not given back."""
        self.generation = 0

    async def wait(self, who: str) -> None:
        self.now += 40

    async def take(self, who: str) -> None:
        if self.newest is None or self.newest.expires_at <= self.now:
            self._took(await take(self.store, self.session.conversation, owner=who, now=self.now))
            return
        with pytest.raises(LeaseBusy):
            await take(self.store, self.session.conversation, owner=who, now=self.now)

    async def force(self, who: str) -> None:
        self._took(
            await self.store.leases.take(
                self.session.conversation, owner=who, place=who, now=self.now, ttl=MINUTE, force=True
            )
        )

    def _took(self, lease: Lease) -> None:
        assert lease.generation > self.generation
        self.leases[lease.owner] = self.newest = lease
        self.generation = lease.generation

    async def release(self, who: str) -> None:
        if who in self.leases:
            await self.store.leases.release(self.leases[who])
        if self._holds(who):
            self.newest = None

    async def renew(self, who: str) -> None:
        if self._holds(who):
            self.leases[who] = self.newest = await self.store.leases.renew(self.leases[who], now=self.now, ttl=MINUTE)
        elif who in self.leases:
            with pytest.raises(LeaseLost):
                await self.store.leases.renew(self.leases[who], now=self.now, ttl=MINUTE)

    async def write(self, who: str) -> None:
        word = said(f"word {len(self.written)}")
        if self._holds(who):
            await write(self.store, self.leases[who], self.session, word)
            self.written.append(word.content)
        elif who in self.leases:
            with pytest.raises(LeaseLost):
                await write(self.store, self.leases[who], self.session, word)

    def _holds(self, who: str) -> bool:
        return self.newest is not None and self.leases.get(who) == self.newest
