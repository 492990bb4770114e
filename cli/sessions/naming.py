"""`hermes sessions rename`."""

from hermes.cli.store import writable
from hermes.errors import UserError
from hermes.home import Home
from hermes.sessions import titles
from hermes.sessions.model import OWNER


async def rename(home: Home, reference: str, title: str) -> None:
    """Give the conversation a title. Raises UserError for one of which nothing is left, TitleTaken, SessionNotFound."""
    clean = titles.clean(title)
    if clean is None:
        raise UserError("Nothing is left of this title without its invisible characters. Choose another.")
    async with writable(home) as store:
        session = await store.resolve(reference, OWNER)
        renamed = await store.rename(session.id, clean, by_person=True)
    print(f"{renamed.id} is called {renamed.title!r} now.")
