"""Short ways to say what the suites need: births, rows, events and duties."""

from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, settings

from hermes.sessions.model import (
    Arrival,
    Birth,
    ConversationId,
    Delivery,
    Kind,
    Lease,
    Message,
    NewDelivery,
    NewMessage,
    Role,
    Session,
    SessionId,
    SessionKey,
    Step,
    ToolCall,
    TurnId,
)
from hermes.sessions.ports import Store

T0 = 1_800_000_000.0
MINUTE = 60.0
HOUR = 3600.0
NODE = "node-1"

random_histories = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
"""For tests that give every example a conversation or chat of its own in one store."""


def key_of(name: str) -> SessionKey:
    return SessionKey(f"agent:main:telegram:dm:{name}")


def birth(name: str, *, at: float = T0, source: str = "telegram", user_id: str | None = "u1", **facts: Any) -> Birth:
    """A session named after the test's own word for it."""
    session = facts.pop("id", f"20270115_080000_{name}")
    return Birth(id=SessionId(session), source=source, at=at, origin=f'{{"chat": "{name}"}}', user_id=user_id, **facts)


def user(text: str, *, at: float = T0) -> NewMessage:
    return NewMessage(role=Role.USER, content=text, at=at)


def assistant(text: str, *, at: float = T0, calls: tuple[ToolCall, ...] = ()) -> NewMessage:
    return NewMessage(role=Role.ASSISTANT, content=text, at=at, tool_calls=calls)


def tool(text: str, *, call: str = "c1", at: float = T0) -> NewMessage:
    return NewMessage(role=Role.TOOL, kind=Kind.TOOL, content=text, at=at, tool_call_id=call, tool_name="terminal")


def summary(text: str, *, at: float = T0) -> NewMessage:
    return NewMessage(role=Role.USER, kind=Kind.SUMMARY, content=text, at=at)


async def take(store: Store, conversation: ConversationId, *, owner: str = "me", now: float = T0) -> Lease:
    return await store.leases.take(conversation, owner=owner, place="Telegram", now=now, ttl=MINUTE)


async def begin(store: Store, name: str, *, owner: str = "me", **facts: Any) -> tuple[Session, Lease]:
    """A fresh conversation behind its own key, and the lease to write in it."""
    session = await store.open(key_of(name), birth(name, **facts))
    return session, await take(store, session.conversation, owner=owner)


async def write(
    store: Store, lease: Lease, session: Session, *messages: NewMessage, turn: str = "turn-1", **facts: Any
) -> tuple[Message, ...]:
    """One step of a turn."""
    step = Step(turn=TurnId(turn), session=session.id, at=facts.pop("at", T0), messages=messages, **facts)
    return await store.commit(lease, step)


async def tell(store: Store, name: str, *texts: str, at: float = T0, **facts: Any) -> Session:
    """A conversation in which a person said `texts` and nobody thinks any more."""
    session, lease = await begin(store, name, at=at, **facts)
    await write(store, lease, session, *(user(text, at=at) for text in texts or ("hello",)), turn=f"turn-{name}", at=at)
    await store.leases.release(lease)
    return await store.tip(session.conversation)


def arrival(event: str, *, chat: str = "7", name: str = "a", at: float = T0, node: str | None = None) -> Arrival:
    return Arrival(
        platform="telegram",
        chat_id=chat,
        event_id=event,
        key=key_of(name),
        origin='{"chat": "7"}',
        payload=f'{{"event": "{event}"}}',
        at=at,
        node=node,
    )


def duty(key: str, *, chat: str = "7", at: float = T0, **facts: Any) -> NewDelivery:
    facts.setdefault("platform", "telegram")
    return NewDelivery(key=key, chat_id=chat, origin='{"chat": "7"}', markdown=f"words of {key}", at=at, **facts)


def same_facts(new: NewMessage | NewDelivery, row: Message | Delivery) -> bool:
    """Whether `row` has every field of `new` as it was."""
    return all(getattr(row, fact.name) == getattr(new, fact.name) for fact in fields(new))


def texts(rows: tuple[Message, ...]) -> list[str]:
    return [row.content for row in rows]
