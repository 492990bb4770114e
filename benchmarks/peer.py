"""The peer's side: `hermes-agent`, unpatched, in its own virtual environment. Of ours it reads the corpus alone."""

import json
import os
import random
import resource
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from corpus import QUERIES, Said, conversation, rows, six, talk, texts_of
from side import LockWatch, Stopwatch, p95, serve, spread, tail


class Peer:
    """One store at a time, in a folder that `HERMES_HOME` names."""

    def open(self, folder: str) -> Mapping[str, Any]:
        os.environ["HERMES_HOME"] = folder
        from hermes_state import SessionDB

        self._folder = Path(folder)
        self._db = SessionDB(self._folder / "state.db")
        level = self._db._conn.execute("PRAGMA synchronous").fetchone()[0]
        return {"sqlite": sqlite3.sqlite_version, "synchronous": {1: "NORMAL", 2: "FULL"}[level]}

    def append(self, kind: str, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        """One message a call, as the peer's gateway does: its lock lets one thread in at a time."""
        said = texts_of(kind, seed, count)
        names = [f"append-{kind}-{seed}-{number}" for number in range(sessions)]
        for name in names:
            self._db.create_session(name, "telegram")
        with Stopwatch() as watch:
            for number, one in enumerate(said):
                self._append(names[number % sessions], one)
        return watch.per(len(said))

    def turn(self, seed: int, turns: int, commits: int) -> Mapping[str, Any]:
        """Six messages in one session."""
        chance = random.Random(seed)
        self._db.create_session(f"turn-{seed}", "telegram")
        every = [six(chance) for _ in range(turns)]
        with Stopwatch() as watch:
            for turn in every:
                for one in turn:
                    self._append(f"turn-{seed}", one)
        return watch.per(turns)

    def fill(self, seed: int, count: int) -> None:
        """A conversation a transaction, by the way in which the peer rewrites a transcript."""
        for number, one in enumerate(rows(seed, count)):
            self._db.create_session(f"fill-{seed}-{number}", "telegram")
            self._db.replace_messages(f"fill-{seed}-{number}", [_message(said) for said in one])

    def size(self) -> Mapping[str, Any]:
        self._db._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (count,) = self._db._conn.execute("SELECT count(*) FROM messages").fetchone()
        return {"bytes": (self._folder / "state.db").stat().st_size / count}

    def late_appends(self, seed: int, count: int) -> Mapping[str, Any]:
        """How long single appends take in a store that is full already."""
        self._db.create_session(f"late-{seed}", "telegram")
        took = []
        for one in texts_of("mix", seed, count):
            began = time.perf_counter()
            self._append(f"late-{seed}", one)
            took.append(time.perf_counter() - began)
        return tail(took)

    def crowd(self, seed: int, sessions: int) -> None:
        """So many short conversations."""
        chance = random.Random(seed)
        for number in range(sessions):
            self._db.create_session(f"crowd-{number}", "telegram")
            said = [_message(one) for one in conversation(chance, 1)]
            self._db.replace_messages(f"crowd-{number}", said)

    def list(self, times: int) -> Mapping[str, Any]:
        with Stopwatch() as watch:
            for _ in range(times):
                assert len(self._db.list_sessions_rich(limit=20, order_by_last_active=True)) == 20
        return watch.per(times)

    def browse(self, times: int) -> Mapping[str, Any]:
        from tools.session_search_tool import session_search

        with Stopwatch() as watch:
            for _ in range(times):
                assert json.loads(session_search(limit=20, db=self._db)).get("success", True)
        return watch.per(times)

    def long(self, seed: int, count: int) -> None:
        chance = random.Random(seed)
        self._db.create_session("long", "telegram")
        self._db.replace_messages("long", [_message(one) for one in conversation(chance, count)[:count]])

    def load(self, times: int) -> Mapping[str, Any]:
        with Stopwatch() as watch:
            for _ in range(times):
                assert len(self._db.get_messages_as_conversation("long")) > 1000
        return watch.per(times)

    def discover(self, times: int) -> Mapping[str, Any]:
        """Its tool, each query so often."""
        from tools.session_search_tool import session_search

        figures = []
        for query in QUERIES:
            took = []
            for _ in range(times):
                began = time.perf_counter()
                session_search(query=query, db=self._db)
                took.append(time.perf_counter() - began)
            figures.append(p95(took))
        return spread(figures)

    def scroll(self, seed: int, times: int, *, writing: bool) -> Mapping[str, Any]:
        """Its tool around random messages, alone or while a thread appends."""
        from tools.session_search_tool import session_search

        (last,) = self._db._conn.execute("SELECT max(id) FROM messages").fetchone()
        chance, places = random.Random(seed), []
        while len(places) < times:
            row = self._db._conn.execute(
                "SELECT session_id, id FROM messages WHERE id >= ? AND role IN ('user', 'assistant') LIMIT 1",
                (chance.randrange(1, last),),
            ).fetchone()
            places += [] if row is None else [tuple(row)]
        over = threading.Event()
        beside = threading.Thread(target=self._append_until, args=(over, f"beside-{seed}"))
        if writing:
            beside.start()
        took = []
        for session, message in places:
            began = time.perf_counter()
            session_search(session_id=session, around_message_id=message, window=10, db=self._db)
            took.append(time.perf_counter() - began)
        over.set()
        if writing:
            beside.join()
        return {"p95": p95(took)}

    def _append_until(self, over: threading.Event, name: str) -> None:
        self._db.create_session(name, "telegram")
        while True:
            for one in texts_of("mix", 1, 500):
                if over.is_set():
                    return
                self._append(name, one)

    def prune(self, seed: int, count: int) -> Mapping[str, Any]:
        """Delete so many sessions, in the one call that it has for that."""
        names = [f"fill-{seed}-{number}" for number in range(count)]
        path = str(self._folder / "state.db")
        with LockWatch(lambda: sqlite3.connect(path, timeout=600, isolation_level=None)) as watch, Stopwatch() as whole:
            gone = self._db.delete_sessions(names)
        assert gone == count, gone
        return {"longest": watch.longest, "wall": whole.wall}

    def learn(self, conversations: Sequence[Sequence[str]]) -> None:
        """Conversations of plain talk."""
        for number, texts in enumerate(conversations):
            self._db.create_session(f"recall-{number}", "telegram")
            said = [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(texts)]
            self._db.replace_messages(f"recall-{number}", said)

    def recall(self, queries: Sequence[str], limit: int) -> Mapping[str, Any]:
        """Which conversations each query finds, by number."""
        return {"found": [self._found(query, limit) for query in queries]}

    def _found(self, query: str, limit: int) -> Sequence[int]:
        try:
            hits = self._db.search_messages(query, role_filter=["user", "assistant"], limit=limit)
        except sqlite3.Error:
            return []
        return sorted({int(hit["session_id"].rpartition("-")[2]) for hit in hits})

    def routes(self, keys: int) -> None:
        """A gateway's session store that knows so many chats."""
        from gateway.config import GatewayConfig, Platform
        from gateway.session import SessionEntry, SessionSource, SessionStore, build_session_key

        store = SessionStore(self._folder / "sessions", GatewayConfig())
        store._ensure_loaded()
        self._sources = [
            SessionSource(platform=Platform.TELEGRAM, chat_id=str(number), user_id=str(number))
            for number in range(keys)
        ]
        first = store.get_or_create_session(self._sources[0])
        for source in self._sources[1:]:  # one by one would rewrite the whole index each time: hours
            key = build_session_key(source)
            facts = {
                **first.to_dict(),
                "session_key": key,
                "session_id": f"s-{source.chat_id}",
                "origin": source.to_dict(),
            }
            store._entries[key] = SessionEntry.from_dict(facts)
            store._db.create_session(f"s-{source.chat_id}", "telegram")
        self._store, self._keys = store, [build_session_key(source) for source in self._sources]
        store.update_session(self._keys[0])

    def route(self, times: int) -> Mapping[str, Any]:
        with Stopwatch() as watch:
            for number in range(times):
                self._store.update_session(self._keys[number * 7 % len(self._keys)])
        return watch.per(times)

    def gateway(self, seed: int, sessions: int, count: int) -> Mapping[str, Any]:
        """What the peer's gateway stores for each message, without its agent: session, two rows, the routing index."""
        chance = random.Random(seed)
        with Stopwatch() as watch:
            for number in range(count):
                entry = self._store.get_or_create_session(self._sources[number % sessions])
                question = {"role": "user", "content": talk(chance, 20)}
                answer = {"role": "assistant", "content": talk(chance, 60)}
                self._store.append_to_transcript(entry.session_id, question)
                self._store.append_to_transcript(entry.session_id, answer)
                self._store.update_session(entry.session_key)
        return watch.per(count)

    def memory(self) -> Mapping[str, Any]:
        return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    def _append(self, session: str, one: Said) -> None:
        facts = _message(one)
        self._db.append_message(session, facts.pop("role"), **facts)


def _message(one: Said) -> dict[str, Any]:
    facts: dict[str, Any] = {"role": one.role, "content": one.text}
    if one.call is not None:
        call, tool, arguments = one.call
        facts["tool_calls"] = [{"id": call, "type": "function", "function": {"name": tool, "arguments": arguments}}]
    if one.answers is not None:
        facts |= {"tool_call_id": one.answers, "tool_name": "terminal"}
    return facts


if __name__ == "__main__":
    peer = Peer()
    serve({name: getattr(peer, name) for name in dir(peer) if not name.startswith("_")})
