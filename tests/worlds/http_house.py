"""The gateway's real HTTP server on a free port, and a client that keeps cookies like a browser."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from fakes import VirtualClock
from hermes.adapters.base import Route
from hermes.gateway.http.doors import Doors
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.http.server import Address, HttpSettings, Readiness, serve

SECRET = "the-owners-secret-of-the-tests"
BEARER = {"Authorization": f"Bearer {SECRET}"}


@dataclass(frozen=True, kw_only=True)
class House:
    """A running server: paths are relative to its base path."""

    address: Address
    doors: Doors
    clock: VirtualClock
    metrics: Metrics
    client: aiohttp.ClientSession

    def url(self, path: str) -> str:
        return self.address.url.rstrip("/") + path

    async def call(self, method: str, path: str, **options: Any) -> "Reply":
        """One request with nothing but this browser's cookies."""
        async with self.client.request(method, self.url(path), **options) as response:
            return Reply(status=response.status, headers=response.headers, text=await response.text())

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        """Status and JSON of one request with the owner's key."""
        reply = await self.call(method, path, headers=BEARER, **options)
        return reply.status, reply.json


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        """The members of an error in the one shape that all errors have."""
        assert set(self.json) == {"error"}
        error: dict[str, Any] = self.json["error"]
        assert set(error) == {"message", "type", "param", "code"}
        return error


def all_well() -> Readiness:
    return Readiness(ready=True, word="ready", adapters={"telegram": {"state": "listening"}})


@asynccontextmanager
async def house(
    routes: Sequence[Route] = (),
    *,
    settings: HttpSettings | None = None,
    readiness: Callable[[], Readiness] = all_well,
    clock: VirtualClock | None = None,
) -> AsyncIterator[House]:
    """The server with `routes`, and a client for it."""
    settings = settings or HttpSettings(port=0)
    clock = clock or VirtualClock()
    doors, metrics = Doors(SECRET, clock, base_path=settings.base_path), Metrics()
    async with (
        serve(settings, routes, doors, readiness=readiness, metrics=metrics) as address,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
    ):
        yield House(address=address, doors=doors, clock=clock, metrics=metrics, client=client)
