"""Strangers ask, the owner lets them in."""

import pytest

from contracts.store.facts import HOUR, MINUTE, T0
from hermes.errors import UserError
from hermes.sessions.ports import Store


class RolesContract:
    """The `Roles` port."""

    async def test_a_stranger_gets_a_code_and_keeps_it_while_it_is_open(self, store: Store) -> None:
        assert await _ask(store, "u1", "AAAA") == "AAAA"
        assert await _ask(store, "u1", "BBBB", at=T0 + MINUTE) == "AAAA"
        assert await store.roles.requests(T0 + MINUTE) == (("telegram", "u1", "Ada", T0 + HOUR),)

    async def test_a_request_runs_out(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        assert await store.roles.requests(T0 + HOUR + 1) == ()
        with pytest.raises(UserError):
            await store.roles.approve("telegram", "AAAA", role="guest", at=T0 + HOUR + 1)
        assert await store.roles.role_of("telegram", "u1") is None

    async def test_three_open_codes_a_platform_are_enough(self, store: Store) -> None:
        for user in ("u1", "u2", "u3"):
            assert await _ask(store, user, f"CODE{user.upper()}") is not None
        assert await _ask(store, "u4", "CODEU4") is None
        assert await _ask(store, "u4", "CODEU4", platform="slack") == "CODEU4"
        assert await _ask(store, "u4", "CODEU4", at=T0 + HOUR + 1) == "CODEU4"

    async def test_a_person_gets_one_new_code_in_ten_minutes(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA", ttl=MINUTE)
        assert await _ask(store, "u1", "BBBB", at=T0 + 9 * MINUTE) is None
        assert await _ask(store, "u2", "CCCC", at=T0 + 9 * MINUTE) == "CCCC"
        assert await _ask(store, "u1", "BBBB", at=T0 + 10 * MINUTE) == "BBBB"

    async def test_a_code_lets_its_owner_in_once(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        assert await store.roles.approve("telegram", "AAAA", role="guest", at=T0 + 1) == "u1"
        assert await store.roles.role_of("telegram", "u1") == "guest"
        assert await store.roles.granted() == (("telegram", "u1", "guest", T0 + 1),)
        assert await store.roles.requests(T0 + 1) == ()
        with pytest.raises(UserError):
            await store.roles.approve("telegram", "AAAA", role="owner", at=T0 + 2)
        assert await store.roles.role_of("telegram", "u1") == "guest"

    async def test_a_code_is_good_on_its_platform_alone(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        with pytest.raises(UserError):
            await store.roles.approve("slack", "AAAA", role="guest", at=T0)
        assert await store.roles.role_of("slack", "u1") is None
        assert await store.roles.approve("telegram", "AAAA", role="guest", at=T0) == "u1"

    async def test_another_approval_takes_the_place_of_a_role(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        await store.roles.approve("telegram", "AAAA", role="guest", at=T0)
        await _ask(store, "u1", "BBBB", at=T0 + HOUR)
        await store.roles.approve("telegram", "BBBB", role="owner", at=T0 + HOUR)
        assert await store.roles.granted() == (("telegram", "u1", "owner", T0 + HOUR),)

    async def test_a_role_can_be_taken_back(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        await store.roles.approve("telegram", "AAAA", role="trusted", at=T0)
        assert not await store.roles.revoke("slack", "u1")
        assert await store.roles.revoke("telegram", "u1")
        assert not await store.roles.revoke("telegram", "u1")
        assert await store.roles.role_of("telegram", "u1") is None
        assert await store.roles.granted() == ()

    async def test_five_wrong_codes_close_a_platform_for_an_hour(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA", ttl=3 * HOUR)
        await _ask(store, "u2", "BBBB", platform="slack")
        await _guess(store, 5)
        with pytest.raises(UserError, match=r"\d\d:\d\d"):
            await store.roles.approve("telegram", "AAAA", role="guest", at=T0 + HOUR - 1)
        assert await store.roles.approve("slack", "BBBB", role="guest", at=T0) == "u2"
        assert await store.roles.approve("telegram", "AAAA", role="guest", at=T0 + HOUR + 1) == "u1"

    async def test_four_wrong_codes_do_not(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA")
        await _guess(store, 4)
        assert await store.roles.approve("telegram", "AAAA", role="guest", at=T0) == "u1"

    async def test_after_the_hour_five_more_tries_are_allowed(self, store: Store) -> None:
        await _ask(store, "u1", "AAAA", ttl=3 * HOUR)
        await _guess(store, 5)
        await _guess(store, 4, at=T0 + HOUR + 1)
        assert await store.roles.approve("telegram", "AAAA", role="guest", at=T0 + HOUR + 1) == "u1"


async def _ask(
    store: Store, user: str, code: str, *, platform: str = "telegram", at: float = T0, ttl: float = HOUR
) -> str | None:
    return await store.roles.request(platform, user, name="Ada", code=code, at=at, ttl=ttl)


async def _guess(store: Store, times: int, *, at: float = T0) -> None:
    for _ in range(times):
        with pytest.raises(UserError):
            await store.roles.approve("telegram", "WRONG", role="guest", at=at)
