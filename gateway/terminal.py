"""The twin of the daemon's wiring for one terminal: the same line, one adapter, no HTTP, no lock on the home.

It may run beside the gateway on the same store; the turn lease keeps the two from thinking at once.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import structlog

from hermes import ids
from hermes.adapters.base import PlatformAdapter
from hermes.clock import SystemClock
from hermes.errors import ConfigError, StoreError
from hermes.gateway import config_file, log, models
from hermes.gateway.app import App
from hermes.gateway.choices import choose_fallback, choose_model
from hermes.gateway.crew import Crew
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.neighbours import TERMINAL, signed_in
from hermes.gateway.node import Node
from hermes.gateway.retention import Retention
from hermes.home import Home
from hermes.ids import TERMINAL_HEX
from hermes.redact import Redactor
from hermes.sessions.store import open_store
from hermes.texts import Texts

PLATFORM = "cli"
DRAIN_SECONDS = 2.0


@asynccontextmanager
async def terminal(
    home: Home, environ: Mapping[str, str], adapter: PlatformAdapter, *, model: str | None, source: str | None
) -> AsyncIterator[Node]:
    """Hermes for one person at one keyboard while the block runs; gives what the terminal reads sessions from.

    Raises ConfigError and StoreError when it cannot start.
    """
    environ = config_file.environment(home, environ)
    config = config_file.load(home, environ)
    clock, choice = SystemClock(), choose_model(config, environ)
    redactor = Redactor.from_environment(environ, extra=config.secrets)
    if model is not None:
        choice = replace(choice, name=model)
    async with AsyncExitStack() as stack:
        stack.enter_context(_log(home, redactor))
        store = await open_store(home.database)
        stack.push_async_callback(store.close)
        chat = models.build(choice, choose_fallback(config, environ), config.model, clock)
        stack.push_async_callback(chat.close)
        titles = models.for_titles(config, environ, choice, chat, clock, stack)
        name = ids.fresh(TERMINAL)
        stack.enter_context(signed_in(home.terminals, name))
        node = Node(
            id=name,
            place="a terminal",
            hex_digits=TERMINAL_HEX,
            store=store,
            clock=clock,
            config=lambda: config,
            texts=Texts(config.language),
            redactor=redactor,
            metrics=Metrics(),
            model_name=chat.card.name,
            zone=config.zone,
            cwd=str(Path.cwd()),
            git_branch=branch_of(Path.cwd()),
            source=source,
        )
        async with Crew() as tasks:
            app = App(node, home, adapters={PLATFORM: adapter}, model=chat, titles=titles, tasks=tasks)
            await app.recover()
            app.start()
            tasks.create_task(_keep(node), name="retention")
            try:
                yield node
            finally:
                await app.stop(DRAIN_SECONDS)


async def _keep(node: Node) -> None:
    """Where no gateway runs, terminals see to it that nothing is kept longer than it should be."""
    try:
        await Retention(node.store, node.clock).keep(node.config().sessions)
    except StoreError as error:
        structlog.get_logger(__name__).warning("retention.postponed", reason=str(error))


def branch_of(folder: Path) -> str | None:
    """The branch that is checked out where `folder` lies; None outside a repository or on no branch."""
    for place in (folder, *folder.parents):
        head = place / ".git" / "HEAD"
        if head.is_file():
            name, found, branch = head.read_text(encoding="utf-8", errors="replace").strip().partition("refs/heads/")
            return branch if found and name == "ref: " else None
    return None


@contextmanager
def _log(home: Home, redactor: Redactor) -> Iterator[None]:
    """Warnings go to `logs/terminal.log`: a person's screen and a script's pipes hold the conversation alone."""
    try:
        home.logs.mkdir(mode=0o700, exist_ok=True)
        stream = (home.logs / "terminal.log").open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{home.logs} cannot be written: {error.strerror}. Give it to this user (chown), or move it away."
        ) from error
    with stream:
        log.configure(redactor, stream=stream, level=logging.WARNING)
        yield
