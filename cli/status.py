"""`hermes status`: does it run, how are its links, do the books add up."""

import json
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from hermes.cli.listing import ago
from hermes.gateway.lock import holder
from hermes.home import Home
from hermes.sessions import dbapi
from hermes.sessions.books import counts
from hermes.sessions.database import open_readable, unavailable
from hermes.sessions.model import Counts

TIMEOUT_SECONDS = 5.0
READY = "ready"
EMPTY = Counts(inbound={"received": 0, "open": 0}, outbound={"created": 0, "open": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What is known of the gateway of a home."""

    process: int | None = None
    """None: none runs."""
    url: str | None = None
    """Where it listens; None: it does not say so yet."""
    word: str | None = None
    """What it says of itself; None: it does not answer."""
    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """For people, with what to do."""
        if self.process is None:
            return "The gateway does not run. Start it with: hermes gateway run"
        if self.word is not None:
            return f"The gateway runs (process {self.process}, {self.url}): {self.word}"
        if self.url is None:
            return f"The gateway starts (process {self.process})."
        return (
            f"The gateway runs (process {self.process}) but does not answer at {self.url}. Look into its log; "
            f"if it stays so, end it with `kill -9 {self.process}` and start it again. What was received is kept."
        )


def show(home: Home, *, as_json: bool) -> int:
    """Print what is known; 0 when the gateway runs and is ready, 1 otherwise. Raises StoreError."""
    gateway, books = look(home), _books(home)
    if as_json:
        facts = {"process": gateway.process, "url": gateway.url, "status": gateway.word, "adapters": gateway.links}
        kept = {"inbound": books.inbound, "outbound": books.outbound, "sessions": books.sessions}
        print(json.dumps({**facts, **kept, "messages": books.messages}, ensure_ascii=False, indent=1))
    else:
        print("\n".join([gateway.sentence, *_links(gateway, time.time()), *_sums(books)]))
    return 0 if gateway.word == READY else 1


def look(home: Home, *, patience: float = TIMEOUT_SECONDS) -> Gateway:
    """Ask the gateway of this home, if one runs. Waits `patience` seconds at the most."""
    found = holder(home.lock)
    if found is None:
        return Gateway()
    if found.url is None:
        return Gateway(process=found.process)
    said = _ask(found.url, found.key or "", patience)
    return Gateway(process=found.process, url=found.url, word=said.get("status"), links=said.get("adapters", {}))


def _ask(url: str, key: str, patience: float) -> dict[str, Any]:
    """What the running gateway says of itself; nothing when it does not answer."""
    address = urlsplit(url)
    try:
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=patience)) as connection:
            connection.request("GET", f"{address.path}readyz", headers={"Authorization": f"Bearer {key}"})
            said: dict[str, Any] = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return {}
    return said


def _books(home: Home) -> Counts:
    if not home.database.exists():
        return EMPTY
    try:
        with closing(open_readable(home.database)) as connection:
            return counts(connection)
    except dbapi.Error as error:
        raise unavailable(home.database, error) from error


SIGNS = {"last_sign": "alive", "last_inbound": "heard", "last_send": "sent"}
"""What is known of a link's past, in words."""


def _links(gateway: Gateway, now: float) -> list[str]:
    return [f"  {name:<12} {_link(facts, now)}" for name, facts in gateway.links.items()]


def _link(facts: Mapping[str, Any], now: float) -> str:
    """A link's state, why it is so, and when it last did something."""
    reason = f": {facts['reason']}" if facts.get("reason") else ""
    past = [f"{word} {ago(now - facts[name])}" for name, word in SIGNS.items() if facts.get(name)]
    return f"{facts['state']}{reason}" + (f" ({', '.join(past)})" if past else "")


def _sums(books: Counts) -> list[str]:
    kept = ", ".join(f"{source} {number}" for source, number in sorted(books.sessions.items())) or "none"
    return [
        sum_of("Messages in", books.inbound, "received"),
        sum_of("Messages out", books.outbound, "created"),
        f"Conversations: {kept}; {books.messages} messages kept",
    ]


def sum_of(name: str, book: Mapping[str, int], total: str) -> str:
    """One book, with its own check: what came in is open or has ended, and nothing else."""
    ends = {key: number for key, number in book.items() if key != total}
    proof = "" if sum(ends.values()) == book[total] else "  ← does not add up; run `hermes doctor`"
    parts = " + ".join(f"{number} {key}" for key, number in sorted(ends.items()))
    return f"{name}: {book[total]} = {parts}{proof}"
