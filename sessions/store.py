"""The store over SQLite: each port's operation goes to the writer or to a reader. Nothing is decided here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import UserError
from hermes.sessions import books, lookup, naming, removal, routes, selecting, turns, views
from hermes.sessions.backup import before_migration
from hermes.sessions.bookmarks import SqliteBookmarks
from hermes.sessions.chats import SqliteChats
from hermes.sessions.database import open_writable
from hermes.sessions.dbapi import Connection, IntegrityError
from hermes.sessions.filters import Filter, Lineage, Stamp
from hermes.sessions.imports.arrival import Parcel, Receipt, take_in
from hermes.sessions.inbox import SqliteInbox
from hermes.sessions.indexer import Indexer
from hermes.sessions.leases import SqliteLeases
from hermes.sessions.model import (
    Birth,
    ConversationId,
    Counts,
    Lease,
    Message,
    Page,
    RouteRow,
    Scope,
    Session,
    SessionId,
    SessionKey,
    Split,
    Step,
    TurnId,
    ViewEntry,
)
from hermes.sessions.outbox import SqliteOutbox
from hermes.sessions.readers import Readers
from hermes.sessions.roles import SqliteRoles
from hermes.sessions.search import SqliteSearch
from hermes.sessions.upkeep import SqliteUpkeep
from hermes.sessions.writer import Lane, Writer


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """The `Store` port. Make it with `open_store`; end it with `close`."""

    writer: Writer
    readers: Readers
    indexer: Indexer
    leases: SqliteLeases
    inbox: SqliteInbox
    outbox: SqliteOutbox
    chats: SqliteChats
    bookmarks: SqliteBookmarks
    search: SqliteSearch
    roles: SqliteRoles
    upkeep: SqliteUpkeep

    async def open(self, key: SessionKey, birth: Birth) -> Session:
        return await self.writer.submit(lambda connection: routes.open_route(connection, key, birth))

    async def find(self, key: SessionKey) -> Session | None:
        return await self.readers.run(lambda connection: routes.find(connection, key))

    async def bind(self, key: SessionKey, conversation: ConversationId, *, origin: str, at: float) -> Session:
        return await self.writer.submit(lambda connection: routes.bind(connection, key, conversation, origin, at))

    async def start_over(self, lease: Lease, key: SessionKey, birth: Birth, *, reason: str) -> Session:
        return await self.writer.submit(lambda connection: routes.start_over(connection, lease, key, birth, reason))

    async def routes(self) -> tuple[RouteRow, ...]:
        return await self.readers.run(routes.index)

    async def key_of(self, conversation: ConversationId) -> tuple[SessionKey, str] | None:
        return await self.readers.run(lambda connection: routes.key_of(connection, conversation))

    async def commit(self, lease: Lease, step: Step) -> tuple[Message, ...]:
        return await self.writer.submit(lambda connection: turns.commit(connection, self.indexer, lease, step))

    async def get(self, session: SessionId, scope: Scope) -> Session:
        return await self.readers.run(lambda connection: lookup.get(connection, session, scope))

    async def tip(self, conversation: ConversationId) -> Session:
        return await self.readers.run(lambda connection: lookup.tip_of(connection, conversation))

    async def resolve(self, reference: str, scope: Scope) -> Session:
        return await self.readers.run(lambda connection: lookup.resolve(connection, reference, scope))

    async def latest(self, source: str, scope: Scope) -> Session:
        return await self.readers.run(lambda connection: lookup.latest(connection, source, scope))

    async def list(self, page: Page, scope: Scope) -> tuple[Session, ...]:
        return await self.readers.run(lambda connection: lookup.list_tips(connection, page, scope))

    async def history(self, session: SessionId) -> tuple[Message, ...]:
        return await self.readers.run(lambda connection: views.history(connection, session))

    async def transcript(
        self, conversation: ConversationId, scope: Scope, *, after: int = 0, limit: int = 500
    ) -> tuple[Message, ...]:
        return await self.readers.run(
            lambda connection: lookup.transcript(connection, conversation, scope, after, limit)
        )

    async def rename(self, session: SessionId, title: str | None, *, by_person: bool) -> Session:
        return await self.writer.submit(
            lambda connection: naming.rename(connection, session, title, by_person=by_person)
        )

    async def end(self, session: SessionId, *, reason: str, at: float) -> None:
        await self.writer.submit(lambda connection: routes.end(connection, session, reason, at))

    async def archive(self, conversation: ConversationId, scope: Scope, *, archived: bool) -> None:
        def op(connection: Connection) -> None:
            lookup.visible_tip(connection, conversation, scope)
            connection.execute("UPDATE conversations SET archived = ? WHERE id = ?", (archived, conversation))

        await self.writer.submit(op)

    async def select(self, wanted: Filter, scope: Scope) -> tuple[Lineage, ...]:
        return await self.readers.run(lambda connection: selecting.select(connection, wanted, scope))

    async def stamp(self, conversation: ConversationId, scope: Scope) -> Stamp:
        return await self.readers.run(lambda connection: selecting.stamp(connection, conversation, scope))

    async def delete(
        self, conversation: ConversationId, scope: Scope, *, now: float, unchanged: Stamp | None = None
    ) -> None:
        def op(connection: Connection) -> bool:
            removal.doom(connection, conversation, scope, now, unchanged)
            return removal.clear(connection)

        await self.writer.submit(op, lane=Lane.MAINTENANCE)
        await self.upkeep.clear()

    async def take_in(self, parcel: Parcel, ids: dict[int, int], *, at: float) -> Receipt:
        """Write a conversation that comes from elsewhere, in one transaction; see `imports.arrival`.

        Raises UserError for one that no store could hold; nothing of it is written then.
        """
        try:
            return await self.writer.submit(
                lambda connection: take_in(connection, self.indexer, parcel, ids, at), lane=Lane.MAINTENANCE
            )
        except IntegrityError as error:
            raise UserError(
                f"Conversation {parcel.conversation} contradicts itself ({error}): it was left out."
            ) from error

    async def split(self, lease: Lease, parent: SessionId, split: Split) -> Session:
        return await self.writer.submit(lambda connection: views.split(connection, self.indexer, lease, parent, split))

    async def replace(self, lease: Lease, session: SessionId, view: Sequence[ViewEntry]) -> None:
        await self.writer.submit(lambda connection: views.replace_view(connection, lease, session, view))

    async def mark_undone(self, lease: Lease, session: SessionId, first: int, *, by: int) -> int:
        return await self.writer.submit(lambda connection: views.mark_undone(connection, lease, session, first, by))

    async def answer_of(self, turn: TurnId) -> Message | None:
        return await self.readers.run(lambda connection: lookup.answer_of(connection, turn))

    async def turn_messages(self, turn: TurnId) -> tuple[Message, ...]:
        return await self.readers.run(lambda connection: lookup.turn_messages(connection, turn))

    async def counts(self) -> Counts:
        return await self.readers.run(books.counts)

    async def data_version(self) -> int:
        return await self.writer.submit(
            lambda connection: int(connection.execute("PRAGMA data_version").fetchone()[0]), lane=Lane.MAINTENANCE
        )

    async def purge(self, *, before: float) -> int:
        gone = 0
        while removed := await self.writer.submit(
            lambda connection: books.purge(connection, before), lane=Lane.MAINTENANCE
        ):
            gone += removed
        return gone

    async def mend_index(self) -> int:
        return await self.writer.submit(self.indexer.mend, lane=Lane.MAINTENANCE)

    async def close(self) -> None:
        await self.readers.close()
        await self.writer.close()


async def open_store(path: Path) -> SqliteStore:
    """The store at `path`, made and migrated as needed. Raises StoreUnavailable, SchemaTooNew."""
    indexer = Indexer()
    writer = Writer(path, lambda: open_writable(path, backup=before_migration(path)), indexer)
    await writer.start()
    readers = Readers(path)
    return SqliteStore(
        writer=writer,
        readers=readers,
        indexer=indexer,
        leases=SqliteLeases(writer),
        inbox=SqliteInbox(writer, readers),
        outbox=SqliteOutbox(writer, readers),
        chats=SqliteChats(writer, readers),
        bookmarks=SqliteBookmarks(writer, readers),
        search=SqliteSearch(readers),
        roles=SqliteRoles(writer, readers),
        upkeep=SqliteUpkeep(writer, readers),
    )
