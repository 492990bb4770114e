"""`hermes status`: does it run, how are its links, do the books add up."""

import json
from collections.abc import Mapping
from typing import Any

from hermes.gateway import config_file
from hermes.gateway.lock import holder
from hermes.home import Home
from hermes.sessions.model import Counts
from hermes.sessions.store import open_store

TIMEOUT_SECONDS = 5.0


async def show(home: Home, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print what is known; 0 when the gateway runs and is ready, 1 otherwise."""
    process = holder(home.lock)
    store = await open_store(home.database)
    try:
        counts = await store.counts()
    finally:
        await store.close()
    ready = await _ask(home, environ) if process is not None else None
    if as_json:
        facts = {"process": process, "gateway": ready, "inbound": counts.inbound, "outbound": counts.outbound}
        print(json.dumps({**facts, "sessions": counts.sessions, "messages": counts.messages}, indent=1))
    else:
        print("\n".join(_lines(process, ready, counts)))
    return 0 if ready is not None and ready["status"] == "ready" else 1


async def _ask(home: Home, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """What the running gateway says of itself; None when it does not answer."""
    import aiohttp

    http = config_file.load(home, environ).gateway.http
    secret = home.web_token.read_text(encoding="utf-8").strip() if home.web_token.exists() else ""
    url = f"http://{http.host}:{http.port}{http.base_path.rstrip('/')}/readyz"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)) as client,
            client.get(url, headers={"Authorization": f"Bearer {secret}"}) as response,
        ):
            answer: dict[str, Any] = await response.json()
            return answer
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None


def _lines(process: int | None, ready: dict[str, Any] | None, counts: Counts) -> list[str]:
    lines = [_running(process, ready)]
    for name, facts in (ready or {}).get("adapters", {}).items():
        reason = f" ({facts['reason']})" if facts.get("reason") else ""
        lines.append(f"  {name:<12} {facts['state']}{reason}")
    lines.append(_book("Messages in", counts.inbound, "received"))
    lines.append(_book("Messages out", counts.outbound, "created"))
    kept = ", ".join(f"{source} {number}" for source, number in sorted(counts.sessions.items())) or "none"
    lines.append(f"Conversations: {kept}; {counts.messages} messages kept")
    return lines


def _running(process: int | None, ready: dict[str, Any] | None) -> str:
    if process is None:
        return "The gateway does not run. Start it with: hermes gateway run"
    if ready is None:
        return f"The gateway runs (process {process}) but does not answer. Look into its log."
    return f"The gateway runs (process {process}): {ready['status']}"


def _book(name: str, book: Mapping[str, int], total: str) -> str:
    """One book, with its own check: what came in is open or has ended, and nothing else."""
    ends = {key: number for key, number in book.items() if key != total}
    proof = "" if sum(ends.values()) == book[total] else "  ← does not add up; run `hermes doctor`"
    parts = " + ".join(f"{number} {key}" for key, number in sorted(ends.items()))
    return f"{name}: {book[total]} = {parts}{proof}"
