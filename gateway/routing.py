"""Session keys: the one place that makes them and takes them apart. Pure.

    agent:<profile>:<platform>:<kind>:<chat>[:<thread or user> ...]

Parts are percent-encoded, so that different conversations never share a key and every key reads back exactly.
Answers go to the stored origin; nothing is delivered by a parsed key.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from hermes.adapters.base import ChatKind, Origin
from hermes.sessions.model import SessionKey

THREAD = "thread"
"""The kind of a thread or topic inside a group or channel."""

_FIELDS = {
    "dm": ("chat_id", "thread_id"),
    "group": ("chat_id", "user_id"),
    "channel": ("chat_id", "user_id"),
    THREAD: ("chat_id", "thread_id", "user_id"),
}
"""What follows the kind. The last part may be missing."""

_UNSAFE = re.compile(r"[:%\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """What the configuration says about who shares a conversation."""

    profile: str = "main"
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyParts:
    """A key taken apart. `kind` is `dm`, `group`, `channel` or `thread`."""

    profile: str
    platform: str
    kind: str
    chat_id: str
    thread_id: str | None = None
    user_id: str | None = None


def session_key(origin: Origin, policy: KeyPolicy) -> SessionKey:
    """The key of the conversation that an event from `origin` belongs to: a function of these two and nothing else."""
    return build(parts_of(origin, policy))


def parts_of(origin: Origin, policy: KeyPolicy) -> KeyParts:
    """What the key of `origin` says."""
    in_thread = origin.kind is not ChatKind.DIRECT and origin.thread_id is not None
    return KeyParts(
        profile=policy.profile,
        platform=origin.platform,
        kind=THREAD if in_thread else origin.kind.value,
        chat_id=origin.chat_id,
        thread_id=origin.thread_id,
        user_id=origin.user_id if _keeps_people_apart(origin, policy) else None,
    )


def shared(origin: Origin, policy: KeyPolicy) -> bool:
    """Does everybody in the chat share the session? Also true when nobody knows who speaks."""
    return origin.user_id is None or not (origin.kind is ChatKind.DIRECT or _keeps_people_apart(origin, policy))


def build(parts: KeyParts) -> SessionKey:
    """The key that `parse` takes apart again."""
    rest = [value for name in _FIELDS[parts.kind] if (value := getattr(parts, name)) is not None]
    return SessionKey(":".join(("agent", *map(encode, (parts.profile, parts.platform, parts.kind, *rest)))))


def parse(key: str) -> KeyParts:
    """What a key says. Raises ValueError for anything that `build` would not have written."""
    prefix, *fields = key.split(":")
    if prefix == "agent" and len(fields) > 3 and fields[2] in _FIELDS:
        profile, platform, kind, *rest = (unquote(field, errors="surrogatepass") for field in fields)
        names = _FIELDS[kind]
        if len(names) - 1 <= len(rest) <= len(names):
            parts = KeyParts(profile=profile, platform=platform, kind=kind, **dict(zip(names, rest, strict=False)))
            if build(parts) == key:
                return parts
    raise ValueError(f"not a session key: {key!r}")


def encode(part: str) -> str:
    """`part` without `:`, `%`, blanks and control characters; letters of every script stay readable."""
    return _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), part
    )


def source_of(platform: str) -> str:
    """The source that sessions of a platform carry: its name, with `api-server` spelt as people filter for it."""
    name, at, label = platform.partition("@")
    return f"{'api-server' if name == 'api_server' else name}{at}{label}"


def _keeps_people_apart(origin: Origin, policy: KeyPolicy) -> bool:
    if origin.kind is ChatKind.DIRECT:
        return False
    return policy.group_sessions_per_user if origin.thread_id is None else policy.thread_sessions_per_user
