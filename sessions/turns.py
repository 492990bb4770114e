"""What a turn writes: everything of a step in one transaction, fenced by the turn's lease."""

from collections.abc import Sequence

from hermes.sessions import inbox, outbox
from hermes.sessions.dbapi import Connection
from hermes.sessions.indexer import TABLES, Indexer, indexed_text
from hermes.sessions.leases import fence
from hermes.sessions.model import Kind, Lease, Message, NewMessage, Role, SessionId, Snapshot, Step, TurnId
from hermes.sessions.rows import appended, write_strings, write_tool_calls
from hermes.text import one_line

PREVIEW = 60
"""Characters of the first words that lists show."""


def commit(connection: Connection, indexer: Indexer, lease: Lease, step: Step) -> tuple[Message, ...]:
    """Write `step` whole; gives the appended rows."""
    fence(connection, lease, step.session)
    if step.key is not None:
        inbox.begin(connection, step)
    inbox.take_up(connection, step.turn, step.runs)
    ids = append(connection, indexer, step.session, step.turn, step.messages)
    _account(connection, step)
    for settlement in step.settles:
        inbox.settle(connection, settlement, step.at)
    outbox.insert(connection, step.deliveries)
    if step.ends is not None:
        connection.execute(
            "UPDATE turns SET ended_at = ?, ending = ? WHERE id = ? AND ended_at IS NULL",
            (step.at, step.ends, step.turn),
        )
        outbox.drop_streams(connection, step.at)
    return tuple(appended(new, row_id, step.session, step.turn) for new, row_id in zip(step.messages, ids, strict=True))


def append(
    connection: Connection, indexer: Indexer, session: SessionId, turn: TurnId | None, messages: Sequence[NewMessage]
) -> list[int]:
    """Insert rows, marked as indexed, and hand them to the indexer; gives their ids."""
    return [insert(connection, indexer, session, turn, row) for row in messages]


def insert(
    connection: Connection,
    indexer: Indexer,
    session: SessionId,
    turn: TurnId | None,
    row: NewMessage,
    *,
    row_id: int | None = None,
) -> int:
    """Insert one row, under `row_id` or the next id, and hand it to the indexer; gives its id."""
    searched = row.kind in TABLES
    glued = indexed_text(row.content) if searched else None
    sender = row.sender
    message_id = connection.execute(
        "INSERT INTO messages (id, session_id, turn, role, kind, content, tool_calls, tool_call_id, tool_name, tokens,"
        " finish_reason, at, sender_id, sender_name, platform_message_ids, search_text, indexed)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
        (
            row_id,
            session,
            turn,
            row.role,
            row.kind,
            row.content,
            write_tool_calls(row.tool_calls),
            row.tool_call_id,
            row.tool_name,
            row.tokens,
            row.finish_reason,
            row.at,
            None if sender is None else sender.id,
            None if sender is None else sender.name,
            write_strings(row.platform_message_ids),
            glued,
        ),
    ).lastrowid
    assert message_id is not None
    indexer.add(message_id, row.kind, row.content if glued is None else glued)
    return message_id


def _account(connection: Connection, step: Step) -> None:
    """Counters, usage, preview and last activity stand on the session row, so that no list has to count."""
    counted = [row for row in step.messages if row.kind in {Kind.TALK, Kind.TOOL}]
    first = next((row.content for row in counted if row.role is Role.USER), "")
    usage = step.usage
    connection.execute(
        "UPDATE sessions SET message_count = message_count + ?, tool_call_count = tool_call_count + ?,"
        " preview = iif(preview = '', ?, preview), last_active = max(last_active, ?), api_calls = api_calls + ?,"
        " input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,"
        " cache_read_tokens = cache_read_tokens + ?, cache_write_tokens = cache_write_tokens + ?,"
        " reasoning_tokens = reasoning_tokens + ?, cost_usd = cost_usd + ? WHERE id = ?",
        (
            len(counted),
            sum(len(row.tool_calls) for row in counted),
            one_line(first, PREVIEW),
            max((row.at for row in counted), default=0.0),
            step.api_calls,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
            usage.cost_usd,
            step.session,
        ),
    )
    if step.snapshot is not None:
        take_snapshot(connection, step.session, step.snapshot)


def take_snapshot(connection: Connection, session: SessionId, snapshot: Snapshot) -> None:
    """Keep the stable start of the session's requests."""
    connection.execute(
        "UPDATE sessions SET model = ?, provider = ?, system_prompt = ?, tools = ? WHERE id = ?",
        (snapshot.model, snapshot.provider, snapshot.system_prompt, snapshot.tools, session),
    )
