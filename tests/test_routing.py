"""Session keys: each conversation has its own, each key reads back, and nothing but the event decides."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import ChatKind, Origin
from hermes.gateway.routing import KeyParts, KeyPolicy, build, parse, parts_of, session_key, shared, source_of

IDS = st.one_of(st.sampled_from(["1", "42", "42:1", "42%3A1", "a b", "", "%", ":", "🎩", "-100", "\n"]), st.text())
ORIGINS = st.builds(
    Origin,
    platform=st.sampled_from(["telegram", "telegram@work", "api_server", "telegram:x"]) | IDS,
    chat_id=IDS,
    kind=st.sampled_from(ChatKind),
    thread_id=st.none() | IDS,
    user_id=st.none() | IDS,
    chat_name=st.text(max_size=3),
    user_name=st.text(max_size=3),
)
POLICIES = st.builds(
    KeyPolicy,
    profile=st.sampled_from(["main", "a:b"]),
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
)

GROUP = Origin(platform="telegram", chat_id="-100", kind=ChatKind.GROUP, user_id="7")
CHANNEL = replace(GROUP, kind=ChatKind.CHANNEL)
DIRECT = Origin(platform="telegram", chat_id="7", user_id="7")
PER_USER = KeyPolicy(group_sessions_per_user=True, thread_sessions_per_user=True)
TOGETHER = KeyPolicy(group_sessions_per_user=False)


@pytest.mark.parametrize(
    ("origin", "policy", "tail", "together"),
    [
        (DIRECT, KeyPolicy(), "dm:7", False),
        (replace(DIRECT, thread_id="42"), KeyPolicy(), "dm:7:42", False),
        (replace(DIRECT, thread_id="42"), TOGETHER, "dm:7:42", False),
        (GROUP, KeyPolicy(), "group:-100:7", False),
        (CHANNEL, KeyPolicy(), "channel:-100:7", False),
        (GROUP, TOGETHER, "group:-100", True),
        (CHANNEL, TOGETHER, "channel:-100", True),
        (replace(GROUP, user_id=None), KeyPolicy(), "group:-100", True),
        (replace(GROUP, thread_id="42"), KeyPolicy(), "thread:-100:42", True),
        (replace(CHANNEL, thread_id="42"), KeyPolicy(), "thread:-100:42", True),
        (replace(GROUP, thread_id="42"), PER_USER, "thread:-100:42:7", False),
        (replace(GROUP, thread_id="42", user_id=None), PER_USER, "thread:-100:42", True),
        (replace(DIRECT, user_id=None), KeyPolicy(), "dm:7", True),
    ],
)
def test_each_kind_of_chat_has_its_key(origin: Origin, policy: KeyPolicy, tail: str, *, together: bool) -> None:
    assert session_key(origin, policy) == f"agent:main:telegram:{tail}"
    assert shared(origin, policy) is together


def test_two_accounts_on_one_platform_are_two_conversations() -> None:
    work = replace(DIRECT, platform="telegram@work")
    assert session_key(work, KeyPolicy()) == "agent:main:telegram@work:dm:7"


def test_ids_that_hold_separators_are_encoded_and_other_scripts_stay_readable() -> None:
    origin = Origin(platform="matrix", chat_id="!a:b.org", user_id="@你:b org")
    assert session_key(replace(origin, kind=ChatKind.GROUP), KeyPolicy()) == (
        "agent:main:matrix:group:!a%3Ab.org:@你%3Ab%20org"
    )


def test_a_thread_and_a_user_with_the_same_id_are_told_apart() -> None:
    in_thread = replace(GROUP, thread_id="7")
    assert session_key(GROUP, KeyPolicy()) != session_key(in_thread, KeyPolicy())
    assert parse(session_key(GROUP, KeyPolicy())).user_id == "7"
    assert parse(session_key(in_thread, KeyPolicy())).thread_id == "7"


@given(origin=ORIGINS, policy=POLICIES)
def test_every_key_reads_back_exactly(origin: Origin, policy: KeyPolicy) -> None:
    parts = parts_of(origin, policy)
    key = session_key(origin, policy)
    assert parse(key) == parts
    assert build(parts) == key
    assert not any(character.isspace() for character in key)


@given(one=ORIGINS, other=ORIGINS, policy=POLICIES)
def test_two_origins_share_a_key_only_when_they_are_one_conversation(
    one: Origin, other: Origin, policy: KeyPolicy
) -> None:
    same = parts_of(one, policy) == parts_of(other, policy)
    assert (session_key(one, policy) == session_key(other, policy)) is same


@given(origin=ORIGINS, policy=POLICIES, name=st.text())
def test_names_do_not_move_a_conversation(origin: Origin, policy: KeyPolicy, name: str) -> None:
    renamed = replace(origin, chat_name=name, user_name=name)
    assert session_key(renamed, policy) == session_key(origin, policy)


@given(origin=ORIGINS, policy=POLICIES)
def test_a_key_names_a_person_only_in_sessions_that_are_not_shared(origin: Origin, policy: KeyPolicy) -> None:
    if shared(origin, policy):
        assert parts_of(origin, policy).user_id is None


@pytest.mark.parametrize(
    "key",
    [
        "",
        "agent:main:telegram:dm",
        "agent:main:telegram:room:1",
        "agent:main:telegram:thread:1",
        "agent:main:telegram:dm:1:2:3",
        "agent:main:telegram:dm:%3a",
        "agent:main:telegram:dm:a b",
        "user:main:telegram:dm:1",
    ],
)
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not a session key"):
        parse(key)


@given(st.text())
def test_any_text_is_either_a_key_or_refused(text: str) -> None:
    try:
        parts = parse(f"agent:main:{text}")
    except ValueError:
        return
    assert build(parts) == f"agent:main:{text}"


@pytest.mark.parametrize(
    ("platform", "source"),
    [("telegram", "telegram"), ("api_server", "api-server"), ("api_server@b", "api-server@b"), ("cli", "cli")],
)
def test_sources_are_spelt_as_people_filter_for_them(platform: str, source: str) -> None:
    assert source_of(platform) == source


def test_parts_can_be_written_by_hand() -> None:
    assert build(KeyParts(profile="main", platform="cli", kind="dm", chat_id="local")) == "agent:main:cli:dm:local"
