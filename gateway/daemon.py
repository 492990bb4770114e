"""`hermes gateway run`: from a home folder to a gateway that takes messages, and back to silence in stages."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

import structlog

from hermes import ids
from hermes.adapters.base import CanServe, PlatformAdapter, Route
from hermes.agent.models.base import ChatModel
from hermes.clock import SystemClock
from hermes.gateway import config_file, log, models, platforms
from hermes.gateway.app import App
from hermes.gateway.choices import choose_fallback, choose_model
from hermes.gateway.chores import do_chores
from hermes.gateway.config import Config
from hermes.gateway.copies import Copies
from hermes.gateway.crew import Crew
from hermes.gateway.fuse import Fuse, burning
from hermes.gateway.housekeeping import Housekeeper
from hermes.gateway.http.browse import Browser
from hermes.gateway.http.doors import Doors, load_secret
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.http.server import Address, HttpSettings, serve
from hermes.gateway.lock import only_gateway
from hermes.gateway.neighbours import GATEWAY, Neighbours
from hermes.gateway.node import Node
from hermes.gateway.retention import Retention
from hermes.gateway.systemd import Notifier
from hermes.gateway.watch import Watch
from hermes.home import Home, network_filesystem
from hermes.ids import GATEWAY_HEX
from hermes.redact import Redactor
from hermes.sessions import dbapi
from hermes.sessions.store import SqliteStore, open_store
from hermes.texts import Texts

logger = structlog.get_logger(__name__)

WRITER_SECONDS = 60.0
"""The longest that waiting work may stand still in the store while another process holds the lock."""

STOP_MARGIN = 45.0
"""Seconds that the service manager is asked for on top of the drain: flushing, closing the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a person is told when the gateway takes messages."""

    address: Address
    code: str
    """Opens the web chat once, as the fragment of its address."""
    model: str
    """Which model answers, and why that one."""
    warning: str | None
    """What is not as it should be, and what to do."""


Announce = Callable[[Started], None]

START_SECONDS = 900.0
"""How long a start may take: a large store may have to be migrated first. The unit's TimeoutStartSec= is the same."""


def serve_forever(home: Home, environ: Mapping[str, str], announce: Announce) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError and StoreError when it cannot start.

    From the first moment on something watches that this makes progress.
    """
    with burning(sys.stderr, START_SECONDS) as fuse:
        spare_the_collector()
        asyncio.run(run(home, environ, announce, fuse))


def spare_the_collector() -> None:
    """What has been imported stays, so the collector need not look at it again and again; and it comes more rarely,
    because a history is thousands of objects of which none is garbage (measured: a third of the time to load one).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def run(home: Home, environ: Mapping[str, str], announce: Announce, fuse: Fuse) -> None:
    """The same inside a loop, with the fuse lit by whoever called."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    environ = config_file.environment(home, environ)
    config = config_file.load(home, environ)
    secret = await asyncio.to_thread(load_secret, home.web_token, _configured_key(config))
    redactor = Redactor.from_environment(environ, extra=(secret, *config.secrets))
    log.configure(redactor)
    choice = choose_model(config, environ)
    async with AsyncExitStack() as stack:
        listens_at = stack.enter_context(only_gateway(home.lock))
        store = await open_store(home.database)
        stack.push_async_callback(store.close)
        model = models.build(choice, choose_fallback(config, environ), config.model, SystemClock())
        stack.push_async_callback(model.close)
        titles = models.for_titles(config, environ, choice, model, SystemClock(), stack)
        node = _node(config, store, redactor, model)
        links = await stack.enter_async_context(AsyncExitStack())
        adapters = await platforms.opened(config, environ, home=home, store=store, clock=node.clock, stack=links)
        async with Crew() as tasks:
            app = App(node, home, adapters=adapters, model=model, titles=titles, tasks=tasks)
            doors = Doors(secret, node.clock, base_path=config.gateway.http.base_path)
            watch = Watch(
                app.links, {"store": partial(_late, store.writer.stuck_for), "delivery": app.deliverer.vital.late}
            )
            async with serve(
                _http(config), _routes(adapters, node), doors, readiness=watch.readiness, metrics=node.metrics
            ) as address:
                listens_at(address.url, doors.key)
                started = Started(address=address, code=doors.new_code(), model=choice.why, warning=_warning(home))
                await _live(home, app, node, watch, fuse, stopping, tasks, lambda: announce(started))
                fuse.light(2 * STOP_MARGIN)
                await links.aclose()  # before the server: what hangs on open connections is let go of first


async def _live(
    home: Home,
    app: App,
    node: Node,
    watch: Watch,
    fuse: Fuse,
    stopping: asyncio.Event,
    tasks: Crew,
    announce: Callable[[], None],
) -> None:
    """From the first message to the last word."""
    notifier, config = Notifier(), node.config()
    mirror = home.mirror if config.gateway.write_sessions_json else None
    neighbours = Neighbours(node.store, home.terminals, me=node.id)
    await neighbours.bury(node.clock.now())
    await app.recover()
    app.start()
    retention, copies = Retention(node.store, node.clock), Copies(home, node.store, node.clock)
    chores = (lambda: retention.keep(node.config().sessions), lambda: copies.keep(node.config().backups))
    keeper = Housekeeper(node.store, node.clock, neighbours=neighbours, wake=app.wake, mirror=mirror)
    watch.add("housekeeping", keeper.vital.late)
    tasks.create_task(keeper.run(), name="housekeeping")
    tasks.create_task(do_chores(chores, node.clock), name="chores")
    tasks.create_task(node.metrics.watch_loop(node.clock), name="loop-lag")
    tasks.create_task(watch.feed(notifier, fuse, node.clock), name="watchdog")
    watch.word = "ready"
    announce()
    notifier.ready()
    await stopping.wait()
    watch.word = "stopping"
    notifier.stopping(config.gateway.drain_seconds + STOP_MARGIN)
    logger.info("gateway.stopping", drain_seconds=config.gateway.drain_seconds)
    await app.stop(config.gateway.drain_seconds)


def _node(config: Config, store: SqliteStore, redactor: Redactor, model: ChatModel) -> Node:
    return Node(
        id=ids.fresh(GATEWAY),
        place="the gateway",
        hex_digits=GATEWAY_HEX,
        store=store,
        clock=SystemClock(),
        config=lambda: config,
        texts=Texts(config.language),
        redactor=redactor,
        metrics=Metrics(),
        model_name=model.card.name,
        zone=config.zone,
    )


def _late(stuck_for: Callable[[], float]) -> float:
    """Seconds that the writer is behind: it has said that its waits are shorter than this."""
    return max(0.0, stuck_for() - WRITER_SECONDS)


def _http(config: Config) -> HttpSettings:
    http = config.gateway.http
    return HttpSettings(
        host=http.host,
        port=http.port,
        base_path=http.base_path,
        allowed_hosts=(*http.allowed_hosts, "[::1]"),
        trusted_proxies=http.trusted_proxies,
    )


def _routes(adapters: Mapping[str, PlatformAdapter], node: Node) -> tuple[Route, ...]:
    mounted = (route for adapter in adapters.values() if isinstance(adapter, CanServe) for route in adapter.routes())
    return (*mounted, *Browser(node.store, node.clock).routes())


def _configured_key(config: Config) -> str | None:
    block = config.platforms.get("api_server")
    return None if block is None else block.settings.get("key")


def _warning(home: Home) -> str | None:
    return network_filesystem(home.root) or dbapi.weakness()
