"""An inbox row with its event decoded, and which of them make a turn. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from hermes.adapters.base import ChatKind, Inbound
from hermes.gateway import commands, wire
from hermes.sessions.model import InboxRow, Kind, NewDelivery, NewMessage, Person, Role
from hermes.text import one_line

QUOTE_CAP = 300
"""Characters of a quoted message that are shown to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One event that waits for its outcome."""

    row: InboxRow
    inbound: Inbound

    @property
    def command(self) -> tuple[str, str] | None:
        """The name and the rest, when it is a command."""
        return commands.parse(self.inbound.text)


def opened(rows: Iterable[InboxRow]) -> list[Letter]:
    """The events behind open rows, up to the first that cannot be read. Raises ValueError when that is the first.

    Their chat may have moved since: the row knows where they belong now.
    """
    letters: list[Letter] = []
    for row in rows:
        try:
            inbound = wire.inbound_from_json(row.payload or "")
            if wire.origin_to_json(inbound.origin) != row.origin:
                inbound = replace(inbound, origin=wire.origin_from_json(row.origin))
            letters.append(Letter(row=row, inbound=inbound))
        except ValueError:
            if not letters:
                raise
            break
    return letters


def batch(letters: Sequence[Letter]) -> Sequence[Letter]:
    """The letters that make the next turn: what was said in a row, up to a command or a request of its own."""
    if letters[0].inbound.alone:
        return letters[:1]
    return joinable(letters, letters[0].inbound)


def joinable(letters: Sequence[Letter], to: Inbound) -> Sequence[Letter]:
    """The letters, from the first, that may share a turn with `to`: its sender's, in the same conversation.

    A turn has the rights of who asked, so in a shared room another person's words get a turn of their own.
    """

    def joins(one: Letter) -> bool:
        same = (one.inbound.origin.user_id, one.inbound.continues) == (to.origin.user_id, to.continues)
        return same and one.command is None and not one.inbound.alone

    return tuple(takewhile(joins, letters))


def words(letter: Letter) -> tuple[NewMessage, ...]:
    """What the letter adds to the conversation: the history that it brings along, then the message."""
    inbound = letter.inbound
    brought = tuple(
        NewMessage(role=Role(line.role), kind=Kind.CARRIED, content=line.text, at=inbound.at)
        for line in inbound.carried
    )
    origin = inbound.origin
    sender = None if origin.user_id is None else Person(id=origin.user_id, name=origin.user_name)
    said = NewMessage(role=Role.USER, content=_with_quote(inbound), at=inbound.at, sender=sender)
    return (*brought, said)


def reply(letter: Letter, markdown: str, *, key: str, at: float) -> NewDelivery:
    """The duty to show `markdown` where the letter came from. In rooms it refers to the letter."""
    event = letter.inbound.event_id
    in_room = letter.inbound.origin.kind is not ChatKind.DIRECT and event.startswith("m:")
    duty = notice(letter.row, markdown, key=key, at=at)
    return replace(duty, reply_to=event.removeprefix("m:")) if in_room else duty


def notice(row: InboxRow, markdown: str, *, key: str, at: float) -> NewDelivery:
    """The same for a row whose event was not read."""
    return NewDelivery(
        key=key,
        platform=row.platform,
        chat_id=wire.origin_from_json(row.origin).chat_id,
        origin=row.origin,
        markdown=markdown,
        at=at,
        answers=row.event_id,
        node=row.node,
    )


def _with_quote(inbound: Inbound) -> str:
    """A quoted message comes as marked, bounded context before the person's own words."""
    if not inbound.quoted:
        return inbound.text
    return f"> {one_line(inbound.quoted, QUOTE_CAP)}\n\n{inbound.text}"
