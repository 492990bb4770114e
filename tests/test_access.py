"""Who may talk, as what, and what they may read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import ChatKind, Origin
from hermes.gateway.access import (
    CODE_ALPHABET,
    AccessRules,
    Denied,
    Role,
    Verdict,
    judge,
    memory_owner,
    new_code,
    scope_for,
)
from hermes.sessions.model import OWNER, Room, Scope

DIRECT = Origin(platform="telegram", chat_id="7", user_id="7")
GROUP = Origin(platform="telegram", chat_id="-100", kind=ChatKind.GROUP, user_id="7")
CLOSED = AccessRules()
LISTED = AccessRules(allowed={"telegram": frozenset({"7"})})
OTHERS_LISTED = AccessRules(allowed={"telegram": frozenset({"8"})})
OWNED = AccessRules(owners=frozenset({("telegram", "7")}), allowed={"telegram": frozenset({"8"})})
OPEN = AccessRules(allow_all=True)
UNKNOWN = Denied(reason="unknown sender", may_pair=True)
OFF_THE_LIST = Denied(reason="not on the allowlist")


@pytest.mark.parametrize(
    ("origin", "rules", "granted", "verdict"),
    [
        (DIRECT, CLOSED, None, UNKNOWN),
        (GROUP, CLOSED, None, replace(UNKNOWN, may_pair=False)),
        (DIRECT, AccessRules(pair_strangers=False), None, replace(UNKNOWN, may_pair=False)),
        (DIRECT, CLOSED, "guest", Role.GUEST),
        (DIRECT, CLOSED, "trusted", Role.TRUSTED),
        (GROUP, CLOSED, "owner", Role.OWNER),
        (DIRECT, LISTED, None, Role.TRUSTED),
        (DIRECT, LISTED, "guest", Role.TRUSTED),
        (DIRECT, LISTED, "owner", Role.OWNER),
        (DIRECT, OTHERS_LISTED, None, OFF_THE_LIST),
        (DIRECT, OTHERS_LISTED, "guest", OFF_THE_LIST),
        (DIRECT, OTHERS_LISTED, "trusted", OFF_THE_LIST),
        (DIRECT, OTHERS_LISTED, "owner", Role.OWNER),
        (DIRECT, replace(OTHERS_LISTED, allow_all=True), None, OFF_THE_LIST),
        (DIRECT, OWNED, None, Role.OWNER),
        (GROUP, OWNED, None, Role.OWNER),
        (replace(DIRECT, platform="telegram@work"), OWNED, None, UNKNOWN),
        (replace(DIRECT, platform="discord"), OWNED, None, UNKNOWN),
        (DIRECT, OPEN, None, Role.GUEST),
        (DIRECT, OPEN, "trusted", Role.TRUSTED),
        (replace(GROUP, user_id=None), OPEN, None, Role.GUEST),
        (replace(GROUP, user_id=None), CLOSED, None, Denied(reason="no user id")),
        (replace(DIRECT, user_id=None), CLOSED, "owner", Denied(reason="no user id")),
        (replace(DIRECT, user_id=None), replace(LISTED, allow_all=True), None, Denied(reason="no user id")),
        (replace(DIRECT, platform="web", user_id=None), CLOSED, None, Role.OWNER),
        (replace(DIRECT, platform="api_server"), CLOSED, None, Role.OWNER),
        (replace(DIRECT, platform="cli"), CLOSED, None, Role.OWNER),
    ],
)
def test_the_table_of_verdicts(origin: Origin, rules: AccessRules, granted: str | None, verdict: Verdict) -> None:
    assert judge(origin, rules=rules, granted=granted) == verdict


@pytest.mark.parametrize("name", ["alice", "Alice", "\u0430lice"])
def test_a_name_opens_nothing(name: str) -> None:
    rules = AccessRules(allowed={"telegram": frozenset({"alice"})}, owners=frozenset({("telegram", "alice")}))
    stranger = Origin(platform="telegram", chat_id="9", user_id="9", user_name=name, chat_name=name)
    assert judge(stranger, rules=rules, granted=None) == OFF_THE_LIST


@pytest.mark.parametrize("lookalike", ["Alice", "\u0430lice", " alice", "alice "])
def test_ids_match_exactly(lookalike: str) -> None:
    rules = AccessRules(allowed={"telegram": frozenset({"alice"})})
    assert judge(replace(DIRECT, user_id=lookalike), rules=rules, granted=None) == OFF_THE_LIST


def test_the_owner_alone_reads_everything() -> None:
    assert scope_for(Role.OWNER, DIRECT, shared=False) == OWNER
    assert memory_owner(Role.OWNER, DIRECT, shared=False) == "owner"
    page = Origin(platform="web", chat_id="page", kind=ChatKind.GROUP)
    assert scope_for(Role.OWNER, page, shared=True) == OWNER


def test_in_a_group_others_read_along_so_even_an_owner_reads_as_a_person() -> None:
    assert scope_for(Role.OWNER, GROUP, shared=False) == Scope(source="telegram", user_id="7")
    assert memory_owner(Role.OWNER, GROUP, shared=False) == "telegram:user:7"


@given(role=st.sampled_from([Role.TRUSTED, Role.GUEST]), kind=st.sampled_from(ChatKind), shared=st.booleans())
def test_nobody_else_ever_reads_everything(role: Role, kind: ChatKind, *, shared: bool) -> None:
    origin = replace(GROUP, kind=kind)
    assert not scope_for(role, origin, shared=shared).owner
    assert memory_owner(role, origin, shared=shared) != "owner"


def test_a_shared_room_is_read_by_those_in_it() -> None:
    topic = replace(GROUP, thread_id="42")
    assert scope_for(Role.GUEST, topic, shared=True) == Scope(rooms=frozenset({Room("telegram", "-100", "42")}))
    assert memory_owner(Role.GUEST, topic, shared=True) == "telegram:room:-100:42"
    assert memory_owner(Role.GUEST, GROUP, shared=True) == "telegram:room:-100"


def test_sources_are_spelt_as_in_the_store() -> None:
    caller = Origin(platform="api_server@b", chat_id="c", kind=ChatKind.GROUP, user_id="u")
    assert scope_for(Role.GUEST, caller, shared=False).source == "api-server@b"


@given(one=st.text(), other=st.text())
def test_two_people_never_share_a_memory(one: str, other: str) -> None:
    owners = {memory_owner(Role.GUEST, replace(DIRECT, user_id=user), shared=False) for user in (one, other)}
    assert len(owners) == len({one, other})


def test_codes_are_eight_unmistakable_letters_and_differ() -> None:
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    assert all(len(code) == 8 and set(code) <= set(CODE_ALPHABET) for code in codes)
    assert not set("IO01") & set(CODE_ALPHABET)
    assert len(set(CODE_ALPHABET)) == 32
