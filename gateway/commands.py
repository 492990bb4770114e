"""What a person can tell the gateway instead of the agent: one table for chats, the terminal and the help text."""

import difflib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from hermes.adapters.base import Inbound
from hermes.gateway.access import Role
from hermes.sessions.model import SessionKey
from hermes.texts import Texts

SHAPE = re.compile(r"/(?P<name>[A-Za-z][\w-]*)(?:@\S+)?(?:\s+(?P<rest>.*))?", re.DOTALL)
"""`/name words`, also as `/name@bot words`. A path such as /etc/hosts is talk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command as it was given."""

    inbound: Inbound
    key: SessionKey
    row: int
    """Its inbox row: what came before it has a smaller number."""
    role: Role
    rest: str
    texts: Texts


class Powers(Protocol):
    """What commands can do to a conversation."""

    async def start_over(self, asked: Asked) -> str: ...
    async def title(self, asked: Asked) -> str: ...
    async def sessions(self, asked: Asked) -> str: ...
    async def resume(self, asked: Asked) -> str: ...
    async def export(self, asked: Asked) -> str: ...
    async def forget(self, asked: Asked) -> str: ...
    async def status(self, asked: Asked) -> str: ...
    async def stop(self, asked: Asked) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `urgent` ones do not wait for the running turn."""

    name: str
    run: Callable[[Powers, Asked], Awaitable[str]]
    urgent: bool = False
    hidden: bool = False


async def _help(_powers: Powers, asked: Asked) -> str:
    return "\n".join([asked.texts.say("command.help"), *(asked.texts.say(f"help.{name}") for name in shown())])


def shown() -> list[str]:
    """The names of the commands that people are told of."""
    return [command.name for command in COMMANDS.values() if not command.hidden]


def menu(texts: Texts) -> dict[str, str]:
    """Each command's name and what it does, for platforms that offer commands to choose from."""
    return {name: texts.say(f"help.{name}").partition(" – ")[2] for name in shown()}


async def _whoami(_powers: Powers, asked: Asked) -> str:
    origin = asked.inbound.origin
    role = asked.texts.say(f"command.role.{asked.role.value}")
    return asked.texts.say("command.whoami", platform=origin.platform, user=origin.user_id or "-", role=role)


async def _silence(_powers: Powers, _asked: Asked) -> str:
    return ""


COMMANDS = {
    command.name: command
    for command in (
        Command(name="new", run=lambda powers, asked: powers.start_over(asked), urgent=True),
        Command(name="reset", run=lambda powers, asked: powers.start_over(asked), urgent=True),
        Command(name="title", run=lambda powers, asked: powers.title(asked)),
        Command(name="sessions", run=lambda powers, asked: powers.sessions(asked), urgent=True),
        Command(name="resume", run=lambda powers, asked: powers.resume(asked)),
        Command(name="status", run=lambda powers, asked: powers.status(asked), urgent=True),
        Command(name="stop", run=lambda powers, asked: powers.stop(asked), urgent=True),
        Command(name="export", run=lambda powers, asked: powers.export(asked)),
        Command(name="forget", run=lambda powers, asked: powers.forget(asked)),
        Command(name="whoami", run=_whoami, urgent=True),
        Command(name="help", run=_help, urgent=True),
        Command(name="start", run=_silence, hidden=True),
    )
}
"""In the order in which /help shows them."""


def parse(text: str) -> tuple[str, str] | None:
    """The name and the rest of a command; None when `text` is talk."""
    match = SHAPE.fullmatch(text.strip())
    return None if match is None else (match["name"].lower(), (match["rest"] or "").strip())


def is_urgent(text: str) -> bool:
    """Whether `text` is a command that does not wait for the running turn."""
    found = parse(text)
    return found is not None and found[0] in COMMANDS and COMMANDS[found[0]].urgent


async def answer(powers: Powers, asked: Asked, name: str) -> str:
    """Run a command; gives what to say, nothing for silence. Raises UserError and StoreError."""
    if name in COMMANDS:
        return await COMMANDS[name].run(powers, asked)
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    if near:
        return asked.texts.say("command.unknown_near", command=f"/{name}", nearest=f"/{near[0]}")
    return asked.texts.say("command.unknown", command=f"/{name}")
