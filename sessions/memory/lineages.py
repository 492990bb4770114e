"""The twin's conversations as wholes: which meet a filter, whether one has changed, and how one goes."""

from hermes.errors import Changed, StillNeeded
from hermes.sessions.filters import Filter, Lineage, Stamp
from hermes.sessions.memory.leases import refuse_if_busy
from hermes.sessions.memory.tables import Tables
from hermes.sessions.model import ConversationId, Link, Scope, SessionId


def select(tables: Tables, wanted: Filter, scope: Scope) -> tuple[Lineage, ...]:
    """Conversations that meet `wanted`, the first begun first."""
    visible = (
        Lineage(tuple(filter(scope.allows, tables.lineage(one))), tables.tip(one))
        for one in tables.tips
        if scope.allows(tables.tip(one))
    )
    return tuple(sorted(filter(wanted.holds, visible), key=lambda one: (one.started_at, one.conversation)))


def stamp(tables: Tables, conversation: ConversationId, scope: Scope) -> Stamp:
    """What the conversation with its delegates holds now."""
    tables.visible_tip(conversation, scope)
    family = _family(tables, conversation)
    segments = [segment for one in family for segment in tables.lineage(one)]
    ids = {segment.id for segment in segments}
    rows = [row for row in tables.messages.values() if row.session_id in ids]
    return Stamp(
        conversations=tuple(family),
        last_message=max((row.id for row in rows), default=0),
        messages=len(rows),
        undone=sum(row.undone_by is not None for row in rows),
        facts=tuple(sorted((one.id, one.title, one.ended_at) for one in segments)),
    )


def delete(tables: Tables, conversation: ConversationId, scope: Scope, now: float, unchanged: Stamp | None) -> None:
    """Take the conversation and its delegates away."""
    if unchanged is not None and stamp(tables, conversation, scope) != unchanged:
        raise Changed(conversation)
    tables.visible_tip(conversation, scope)
    family = _family(tables, conversation)
    for one in family:
        refuse_if_busy(tables, one, now)
    gone = {segment.id for one in family for segment in tables.lineage(one)}
    _refuse_if_needed(tables, conversation, gone)
    tables.messages = {number: row for number, row in tables.messages.items() if row.session_id not in gone}
    tables.sessions = {name: session for name, session in tables.sessions.items() if name not in gone}
    tables.views = {name: view for name, view in tables.views.items() if name not in gone}
    tables.routes = {key: route for key, route in tables.routes.items() if route.conversation not in family}
    for one in family:
        del tables.tips[one]


def _family(tables: Tables, conversation: ConversationId) -> list[ConversationId]:
    """The conversation and its delegates, by id."""
    found, fresh = {conversation}, {conversation}
    while fresh:
        ids = {segment.id for one in fresh for segment in tables.lineage(one)}
        sent = {s.conversation for s in tables.sessions.values() if s.parent in ids and s.link is Link.DELEGATE}
        fresh = sent - found
        found |= fresh
    return sorted(found)


def _refuse_if_needed(tables: Tables, conversation: ConversationId, gone: set[SessionId]) -> None:
    for name, view in tables.views.items():
        if name not in gone and any(tables.messages[entry.message_id].session_id in gone for entry in view):
            raise StillNeeded(conversation, tables.sessions[name].conversation)
