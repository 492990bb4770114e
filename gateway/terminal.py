"""The twin of the daemon's wiring for one terminal: the same line, one adapter, no HTTP, no lock on the home.

It may run beside the gateway on the same store; the turn lease keeps the two from thinking at once.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from hermes import ids
from hermes.adapters.base import PlatformAdapter
from hermes.clock import SystemClock
from hermes.gateway import config_file, models
from hermes.gateway.app import TERMINALS, App
from hermes.gateway.choices import choose_fallback, choose_model
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.node import Node
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
    if model is not None:
        choice = replace(choice, name=model)
    async with AsyncExitStack() as stack:
        store = await open_store(home.database)
        stack.push_async_callback(store.close)
        chat = models.build(choice, choose_fallback(config, environ), clock)
        stack.push_async_callback(chat.close)
        node = Node(
            id=ids.fresh(TERMINALS.rstrip("-")),
            place="a terminal",
            hex_digits=TERMINAL_HEX,
            store=store,
            clock=clock,
            config=lambda: config,
            texts=Texts(config.language),
            redactor=Redactor.from_environment(environ, extra=config.secrets),
            metrics=Metrics(),
            model_name=chat.card.name,
            zone=config.zone,
            source=source,
        )
        async with asyncio.TaskGroup() as tasks:
            app = App(node, home, adapters={PLATFORM: adapter}, model=chat, tasks=tasks)
            await app.recover(only_gateway=False)
            app.start()
            try:
                yield node
            finally:
                await app.stop(DRAIN_SECONDS)
