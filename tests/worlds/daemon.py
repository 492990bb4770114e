"""A real gateway in a process of its own, with its own home, and the `hermes` commands that people run beside it."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import psutil
import yaml

from hermes.home import Home

SECRET = "the-owners-secret-of-the-tests"
BEARER = {"Authorization": f"Bearer {SECRET}"}

PATIENCE = 30.0
"""Seconds for whatever a process does at once on a machine that is not busy."""
POLL = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str


def asking(url: str) -> Mapping[str, Any]:
    """The model's block for a provider at `url`."""
    return {"provider": "openai", "base_url": url, "api_key": "test-key", "name": "fake"}


class Daemon:
    """`hermes gateway run` on one home and one port, started and ended as often as a test likes.

    Use as `async with Daemon(folder, model) as daemon`; it is running and ready inside. `model` and `gateway` are the
    configuration's blocks of these names; `blocks` are further ones, their platforms beside the two that are always on.
    """

    def __init__(
        self, folder: Path, model: Mapping[str, Any], *, blocks: Mapping[str, Any] | None = None, **gateway: Any
    ) -> None:
        self.home = Home(folder / "home")
        self.up = asyncio.Event()
        """Set while the gateway is ready."""
        self.extra: dict[str, str] = {}
        """What else stands in its environment."""
        self._port = _free_port()
        self._log = folder / "gateway.log"
        self._process: Process | None = None
        self._configure(model, gateway, blocks or {})

    def _configure(self, model: Mapping[str, Any], gateway: Mapping[str, Any], blocks: Mapping[str, Any]) -> None:
        self.home.root.mkdir(mode=0o700)
        config = {
            "auxiliary": {"title": {"provider": "none"}},  # the model hears what people say and nothing else
            **blocks,
            "language": "en",
            "model": dict(model),
            "gateway": {**gateway, "http": {"port": self._port}},
            "platforms": {
                "api_server": {"enabled": True, "key": SECRET},
                "web": {"enabled": True},
                **blocks.get("platforms", {}),
            },
        }
        self.home.config.write_text(yaml.safe_dump(config), encoding="utf-8")

    @property
    def url(self) -> str:
        """The address of the HTTP server, without a slash at its end."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """Everything that all runs have printed and logged."""
        return self._log.read_text(encoding="utf-8")

    @property
    def memory_in_use(self) -> int:
        """Bytes of resident memory."""
        assert self._process is not None
        return int(psutil.Process(self._process.pid).memory_info().rss)

    @property
    def environment(self) -> dict[str, str]:
        """What the gateway and the commands beside it see: nothing of the real user's."""
        root = str(self.home.root)
        return {"PATH": os.environ["PATH"], "HERMES_HOME": root, "HOME": root, "LANG": "C.UTF-8", **self.extra}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill()
        await self.ended()

    async def start(self) -> None:
        """Start a gateway and wait until it is ready. Fails with its log when it ends instead."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *_hermes("gateway", "run"), env=self.environment, stdin=DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as client:
            while not await _is_ready(client, self.url):
                assert self._process.returncode is None, self.log
                await asyncio.sleep(POLL)
        self.up.set()

    def kill(self) -> None:
        """SIGKILL, now. A gateway that has ended is left alone."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM, now."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        self.up.clear()
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def stopping(self) -> None:
        """Wait until a gateway that was told to stop is on its way out."""
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as client:
            while await _is_ready(client, self.url):
                await asyncio.sleep(POLL)

    async def ended(self) -> int:
        """Wait for the end of the process; gives its exit code, negative for a signal."""
        assert self._process is not None
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()

    async def restart(self) -> None:
        """Wait for the end, and start again."""
        await self.ended()
        await self.start()

    async def run(self, *arguments: str) -> Finished:
        """Run a `hermes` command on the same home to its end."""
        async with self.beside(*arguments) as process, asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Finished(code=process.returncode, out=out.decode(), err=err.decode())

    @asynccontextmanager
    async def beside(self, *arguments: str) -> AsyncIterator[Process]:
        """A `hermes` command on the same home while the block runs, with its output in pipes."""
        process = await asyncio.create_subprocess_exec(
            *_hermes(*arguments), env=self.environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def _hermes(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "hermes", *arguments)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _is_ready(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(f"{url}/readyz") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
