"""A stand-in for the Hugging Face Hub's HTTP API: who asks, data sets, and commits; as much as an upload needs."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz123456"
USER = "ann"


class Hub:
    """What was uploaded. `public` data sets are there before anybody uploads."""

    def __init__(self, *, public: tuple[str, ...] = (), trouble: int | None = None) -> None:
        self.private: dict[str, bool] = dict.fromkeys(public, False)
        self.files: dict[str, dict[str, str]] = {name: {} for name in public}
        self.trouble = trouble
        self.url = ""

    @contextmanager
    def running(self) -> Iterator["Hub"]:
        """Answers at `url` while the block runs."""
        hub = self

        class Answering(_Handler):
            world = hub

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def get(self, path: str) -> tuple[int, object]:
        """Who the token belongs to, and what a data set is."""
        if path == "/api/whoami-v2":
            return 200, {"type": "user", "name": USER, "auth": {"type": "access_token"}}
        name = path.removeprefix("/api/datasets/").removesuffix("/revision/main")
        if name in self.private:
            return 200, {"id": name, "sha": "0" * 40, "private": self.private[name], "siblings": [], "tags": []}
        return 404, {"error": "Repository not found"}

    def post(self, path: str, body: bytes) -> tuple[int, object]:
        """Make a data set, say how files travel, take a commit."""
        if self.trouble is not None:
            return self.trouble, {"error": "out of order"}
        if path == "/api/repos/create":
            facts = json.loads(body)
            name = f"{facts.get('organization') or USER}/{facts['name']}"
            if name in self.private:
                return 409, {"error": "You already created this dataset repo", "url": f"{self.url}/datasets/{name}"}
            self.private[name] = facts.get("visibility") == "private" or bool(facts.get("private"))
            self.files[name] = {}
            return 200, {"url": f"{self.url}/datasets/{name}"}
        name = path.removeprefix("/api/datasets/").partition("/preupload")[0].partition("/commit")[0]
        if "/preupload/" in path:
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return 200, {"files": files}
        return self._commit(name, body)

    def _commit(self, name: str, body: bytes) -> tuple[int, object]:
        for line in body.decode().splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                value: dict[str, Any] = entry["value"]
                self.files[name][value["path"]] = base64.b64decode(value["content"]).decode()
        url = f"{self.url}/datasets/{name}/commit/{'1' * 40}"
        return 200, {"success": True, "commitOid": "1" * 40, "commitUrl": url, "hookOutput": ""}


class _Handler(BaseHTTPRequestHandler):
    world: Hub

    def do_GET(self) -> None:
        self._answer(*self.world.get(self.path.partition("?")[0]))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(*self.world.post(self.path.partition("?")[0], body))

    def _answer(self, status: int, facts: object) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, facts = 401, {"error": "Invalid credentials"}
        data = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""
