"""Values are valid at birth, and scopes say who may see what."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.sessions.model import (
    OWNER,
    ConversationId,
    Kind,
    NewMessage,
    Role,
    Room,
    Scope,
    Session,
    SessionId,
    ToolCall,
    Usage,
)

CALL = ToolCall(id="c1", name="terminal", arguments="{}")
tokens = st.integers(min_value=0, max_value=10**9)
usages = st.builds(
    Usage,
    input_tokens=tokens,
    output_tokens=tokens,
    cache_read_tokens=tokens,
    cache_write_tokens=tokens,
    reasoning_tokens=tokens,
    cost_usd=st.integers(min_value=0, max_value=1000).map(float),
)


class TestMessages:
    def test_a_tool_result_names_its_call(self) -> None:
        with pytest.raises(ValueError, match="names its call"):
            NewMessage(role=Role.TOOL, kind=Kind.TOOL, content="out", at=0.0)

    @pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
    def test_nothing_else_names_a_call(self, role: Role) -> None:
        with pytest.raises(ValueError, match="names its call"):
            NewMessage(role=role, content="hi", at=0.0, tool_call_id="c1")

    @pytest.mark.parametrize(("role", "call_id"), [(Role.USER, None), (Role.TOOL, "c1")])
    def test_only_the_assistant_calls_tools(self, role: Role, call_id: str | None) -> None:
        with pytest.raises(ValueError, match="only the assistant"):
            NewMessage(role=role, content="", at=0.0, tool_calls=(CALL,), tool_call_id=call_id)

    def test_an_assistant_may_say_nothing_and_call(self) -> None:
        assert NewMessage(role=Role.ASSISTANT, content="", at=0.0, tool_calls=(CALL,)).tool_calls == (CALL,)

    def test_a_message_does_not_change(self) -> None:
        message = NewMessage(role=Role.USER, content="hi", at=0.0)
        with pytest.raises(dataclasses.FrozenInstanceError):
            message.content = "ho"  # type: ignore[misc]


class TestUsage:
    @given(usages, usages)
    def test_every_figure_adds_up(self, one: Usage, other: Usage) -> None:
        total = one + other
        for figure in dataclasses.fields(Usage):
            parts = (getattr(one, figure.name), getattr(other, figure.name))
            assert getattr(total, figure.name) == sum(parts)

    @given(usages)
    def test_no_usage_adds_nothing(self, usage: Usage) -> None:
        assert usage + Usage() == usage


class TestScope:
    def test_the_owner_sees_everything(self) -> None:
        assert OWNER.allows(_session(user_id="u1"))
        assert OWNER.allows(_session(user_id=None))

    def test_a_person_sees_their_own(self) -> None:
        assert Scope(source="telegram", user_id="u1").allows(_session(user_id="u1"))

    @pytest.mark.parametrize(
        "scope",
        [
            Scope(),
            Scope(source="telegram"),
            Scope(source="telegram", user_id="u2"),
            Scope(source="telegram@work", user_id="u1"),
            Scope(user_id="u1"),
            Scope(source="telegram", rooms=frozenset({Room("telegram", "7")})),
        ],
    )
    def test_nobody_else_sees_a_persons_session(self, scope: Scope) -> None:
        assert not scope.allows(_session(user_id="u1", chat_id="7"))

    def test_a_room_sees_what_it_shares(self) -> None:
        rooms = frozenset({Room("telegram", "7", "3")})
        assert Scope(rooms=rooms).allows(_session(user_id=None, chat_id="7", thread_id="3"))

    @pytest.mark.parametrize(("chat_id", "thread_id"), [("7", None), ("7", "4"), ("8", "3"), (None, None), (None, "3")])
    def test_another_room_does_not(self, chat_id: str | None, thread_id: str | None) -> None:
        rooms = frozenset({Room("telegram", "7", "3")})
        assert not Scope(rooms=rooms).allows(_session(user_id=None, chat_id=chat_id, thread_id=thread_id))

    def test_a_reader_without_a_name_does_not_see_sessions_without_one(self) -> None:
        assert not Scope(source="telegram", user_id=None).allows(_session(user_id=None, chat_id="7"))


def _session(*, user_id: str | None, chat_id: str | None = None, thread_id: str | None = None) -> Session:
    return Session(
        id=SessionId("s"),
        conversation=ConversationId("s"),
        source="telegram",
        started_at=0.0,
        last_active=0.0,
        user_id=user_id,
        chat_id=chat_id,
        thread_id=thread_id,
    )
