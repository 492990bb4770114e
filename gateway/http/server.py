"""The gateway's one HTTP server: binds, checks where requests come from, and answers errors in one shape."""

import ipaddress
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from hermes.adapters.base import Guard, Route
from hermes.adapters.http import Problem
from hermes.errors import (
    AmbiguousSession,
    ConfigError,
    HermesError,
    LeaseBusy,
    LeaseLost,
    SessionNotFound,
    StoreError,
    TitleTaken,
    UserError,
)
from hermes.gateway.http.doors import Doors, is_passive
from hermes.gateway.http.metrics import CONTENT_TYPE, Metrics

log = structlog.get_logger(__name__)

LARGEST_BODY = 2 * 1024 * 1024
"""Bytes: a long history fits, a flood does not."""
CLOSING_SECONDS = 2.0
"""How long open requests may take when the server closes; turns have been drained before."""

_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""On every response that does not say otherwise: a page brings its own content policy."""

_STATUS: Mapping[type[HermesError], tuple[int, str]] = {
    SessionNotFound: (404, "session_not_found"),
    AmbiguousSession: (409, "ambiguous_session"),
    TitleTaken: (409, "title_taken"),
    LeaseBusy: (409, "session_busy"),
    LeaseLost: (409, "session_busy"),
    StoreError: (503, "store_unavailable"),
    UserError: (400, "invalid_request"),
    HermesError: (500, "internal_error"),
}
"""What an error of ours is over HTTP; the nearest class counts."""

_CODES: Mapping[int, str] = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}
_SAYINGS: Mapping[int, str] = {
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    413: f"The request is larger than {LARGEST_BODY // 1024 // 1024} MB. Send less at once.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Where the server listens and which names it answers to.

    An allowed host without a port is allowed with any port; behind one of the `trusted_proxies` (addresses or
    networks) the forwarded host and scheme count.
    """

    host: str = "127.0.0.1"
    port: int = 8642
    """0: any free one."""
    base_path: str = "/"
    allowed_hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]")
    trusted_proxies: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server really listens."""

    host: str
    port: int
    base_path: str

    @property
    def url(self) -> str:
        """The address for a browser on this machine, with a slash at its end."""
        near = _reachable(self.host)
        host = f"[{near}]" if ":" in near else near
        return f"http://{host}:{self.port}{self.base_path}"


def _reachable(host: str) -> str:
    """What reaches a server on this machine: nobody can call the address that stands for all of them."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether Hermes takes messages, in a word (`ready`, `starting`, `stopping`), and the facts of each adapter."""

    ready: bool
    word: str
    adapters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@asynccontextmanager
async def serve(
    settings: HttpSettings,
    routes: Sequence[Route],
    doors: Doors,
    *,
    readiness: Callable[[], Readiness],
    metrics: Metrics,
) -> AsyncIterator[Address]:
    """Answer `routes`, login, health and metrics while the block runs. Raises ConfigError when it cannot listen."""
    base = "/" + settings.base_path.strip("/")
    runner = web.AppRunner(
        _application(settings, base, (*own_routes(doors, readiness, metrics), *doors.routes(), *routes), doors),
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,  # a client that hangs up ends its handler
        shutdown_timeout=CLOSING_SECONDS,
    )
    await runner.setup()
    try:
        await _listen(runner, settings)
        host, port = runner.addresses[0][:2]
        yield Address(host=host, port=port, base_path=base if base == "/" else base + "/")
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, settings: HttpSettings) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"The web server cannot listen on {settings.host}:{settings.port}: {error}. "
            "Stop what uses the port (another Hermes?), or set another gateway.http.port in config.yaml."
        ) from error


def _application(settings: HttpSettings, base: str, routes: Sequence[Route], doors: Doors) -> web.Application:
    app = web.Application(
        client_max_size=LARGEST_BODY,
        middlewares=(_answer_errors, _believe_proxies(settings.trusted_proxies), _check_source(settings.allowed_hosts)),
    )
    app.on_response_prepare.append(_add_headers)
    for route in routes:
        app.router.add_route(route.method, base.rstrip("/") + route.path, doors.guarded(route))
    return app


def own_routes(doors: Doors, readiness: Callable[[], Readiness], metrics: Metrics) -> Sequence[Route]:
    """What the server answers for itself: health and figures."""

    async def alive(_request: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def ready(request: web.Request) -> web.Response:
        now = readiness()
        facts = {"adapters": now.adapters} if doors.admits(request) else {}
        return web.json_response({"status": now.word, **facts}, status=200 if now.ready else 503)

    async def figures(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    return (
        Route(method="GET", path="/healthz", handler=alive, guard=Guard.OPEN),
        Route(method="GET", path="/readyz", handler=ready, guard=Guard.OPEN),
        Route(method="GET", path="/metrics", handler=figures, guard=Guard.OWNER),
    )


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The one place where errors become responses; what was not foreseen is logged and named, not shown."""
    try:
        return await handler(request)
    except HermesError as error:
        return _problem(error).response()
    except web.HTTPException as error:
        if error.status < 400:
            raise
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        message, code = _SAYINGS.get(error.status, error.text or error.reason), _CODES.get(error.status, "http_error")
        return Problem(error.status, message, code=code, headers=headers).response()
    except ConnectionError:
        raise  # the client is gone
    except Exception:
        log.exception("http.failed", method=request.method, path=request.path)
        if request.writer.output_size:
            raise  # half an answer is out: only a broken connection can say that it failed
        return Problem(500, "Hermes failed at this request; its log says why.", code="internal_error").response()


def _problem(error: HermesError) -> Problem:
    if isinstance(error, Problem):
        return error
    status, code = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    return Problem(status, str(error), code=code)


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


def _believe_proxies(trusted: Sequence[str]) -> Middleware:
    """Requests through a trusted proxy are seen as their senders made them."""
    networks = [_network(text) for text in trusted]

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        peer = _peer(request)
        if peer is not None and any(peer in network for network in networks):
            return await handler(
                request.clone(
                    host=_last(request, "X-Forwarded-Host") or request.host,
                    scheme=_last(request, "X-Forwarded-Proto") or request.scheme,
                )
            )
        return await handler(request)

    return middleware


def _check_source(allowed_hosts: Sequence[str]) -> Middleware:
    """Refuse names that are not ours (DNS rebinding) and requests that other sites make a browser send."""
    allowed = {host.lower() for host in allowed_hosts}

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.host.lower()
        if host not in allowed and _without_port(host) not in allowed:
            raise Problem(
                403,
                f"This server does not answer to the name {host!r}. If it is yours, add it to "
                "gateway.http.allowed_hosts in config.yaml.",
                code="host_not_allowed",
            )
        origin = request.headers.get("Origin")
        if origin is not None and not is_passive(request) and _place_of(origin) != host:
            raise Problem(403, "Another site may not send this request.", code="cross_site")
        return await handler(request)

    return middleware


def _place_of(origin: str) -> str | None:
    """Host and port of an Origin header; None for one that is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    return re.sub(r":\d*$", "", host)


def _last(request: web.Request, header: str) -> str:
    """What the nearest proxy wrote: each one adds its word at the end."""
    return request.headers.get(header, "").rpartition(",")[2].strip()


def _peer(request: web.Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(request.remote or "")
    except ValueError:
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ConfigError(
            f"gateway.http.trusted_proxies: {text!r} is no address or network. Write it like 10.0.0.5 or 10.0.0.0/8."
        ) from error
