"""Who may talk, as what, and whose words they may read. Pure: the only place that decides.

Only the platform's stable ids count. Names are chosen by their bearers and are never looked at.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hermes.adapters.base import ChatKind, Origin
from hermes.adapters.registry import platform_of
from hermes.gateway.routing import encode, source_of
from hermes.sessions.model import OWNER, Room, Scope

OWNER_PLATFORMS = frozenset({"web", "api_server", "cli"})
"""Whoever gets through these doors has proven to hold the owner's secret."""

CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""32 letters that nobody mistakes for another: no I and 1, no O and 0."""
CODE_LENGTH = 8


class Role(StrEnum):
    """What a person may do: everything, talk and use tools, or talk."""

    OWNER = "owner"
    TRUSTED = "trusted"
    GUEST = "guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """No answer. `may_pair`: a stranger in a direct chat who may be shown a pairing code."""

    reason: str
    may_pair: bool = False


Verdict = Role | Denied


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """What the configuration says, by platform instance and stable user id."""

    owners: frozenset[tuple[str, str]] = frozenset()
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The allowlists; an instance that is missing or has an empty one has none."""
    allow_all: bool = False
    pair_strangers: bool = True


def judge(origin: Origin, *, rules: AccessRules, granted: str | None) -> Verdict:
    """What the sender of `origin` may be here. `granted` is the role that pairing gave them, if it did.

    An allowlist wins over everything but ownership: whoever is taken off it is out with the next message, and
    strangers are met with silence.
    """
    if platform_of(origin.platform) in OWNER_PLATFORMS or (origin.platform, origin.user_id) in rules.owners:
        return Role.OWNER
    if origin.user_id is None:
        return Role.GUEST if rules.allow_all and not rules.allowed.get(origin.platform) else Denied(reason="no user id")
    if granted == Role.OWNER:
        return Role.OWNER
    if allowed := rules.allowed.get(origin.platform):
        return Role.TRUSTED if origin.user_id in allowed else Denied(reason="not on the allowlist")
    if granted is not None:
        return Role(granted)
    if rules.allow_all:
        return Role.GUEST
    return Denied(reason="unknown sender", may_pair=rules.pair_strangers and origin.kind is ChatKind.DIRECT)


def scope_for(role: Role, origin: Origin, *, shared: bool) -> Scope:
    """What may be read on behalf of this sender, here.

    All of it for the owner among themselves. In a group others read along, so there even an owner reads only what
    is theirs as a person, and in a session that the room shares only the room's.
    """
    if _owner_alone(role, origin):
        return OWNER
    source = source_of(origin.platform)
    if shared:
        return Scope(rooms=frozenset({Room(source, origin.chat_id, origin.thread_id)}))
    return Scope(source=source, user_id=origin.user_id)


def memory_owner(role: Role, origin: Origin, *, shared: bool) -> str:
    """Whose memory applies: `owner`, `<source>:user:<id>` or `<source>:room:<chat>[:<thread>]`, ids encoded."""
    if _owner_alone(role, origin):
        return "owner"
    if shared or origin.user_id is None:
        ids = [origin.chat_id, *([] if origin.thread_id is None else [origin.thread_id])]
        return ":".join([source_of(origin.platform), "room", *map(encode, ids)])
    return f"{source_of(origin.platform)}:user:{encode(origin.user_id)}"


def new_code() -> str:
    """A pairing code: 40 bits that cannot be guessed in its lifetime."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))


def _owner_alone(role: Role, origin: Origin) -> bool:
    alone = origin.kind is ChatKind.DIRECT or platform_of(origin.platform) in OWNER_PLATFORMS
    return role is Role.OWNER and alone
