"""What every store promises. A test module makes a subclass of `StoreContract` and gives it a `store` fixture."""

from contracts.store.books import BooksContract
from contracts.store.chats import BookmarksContract, ChatsContract
from contracts.store.histories import HistoriesContract
from contracts.store.inbox import InboxContract
from contracts.store.leases import LeasesContract
from contracts.store.lineages import LineagesContract
from contracts.store.names import NamesContract
from contracts.store.outbox import OutboxContract
from contracts.store.readers import ReadersContract
from contracts.store.roles import RolesContract
from contracts.store.routes import RoutesContract
from contracts.store.rows import RowsContract
from contracts.store.search import SearchContract
from contracts.store.streams import StreamsContract
from contracts.store.upkeep import UpkeepContract
from contracts.store.views import ViewsContract


class StoreContract(
    RoutesContract,
    RowsContract,
    ViewsContract,
    NamesContract,
    LineagesContract,
    HistoriesContract,
    ReadersContract,
    LeasesContract,
    InboxContract,
    OutboxContract,
    StreamsContract,
    ChatsContract,
    BookmarksContract,
    SearchContract,
    RolesContract,
    BooksContract,
    UpkeepContract,
):
    """All suites at once, one a port or concern."""
