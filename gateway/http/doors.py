"""Who may come in: the owner's secret as a bearer token, or the browser's login that was bought with it."""

import hashlib
import hmac
import os
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from aiohttp import web

from hermes.adapters.base import Guard, Route
from hermes.adapters.http import Problem, member, read_json
from hermes.clock import Clock
from hermes.errors import ConfigError

COOKIE = "hermes_login"
CODE_SECONDS = 600.0
"""A one-time code is for the person who has just started Hermes."""
LOGIN_SECONDS = 30 * 86_400
"""A browser stays logged in for 30 days."""
WRONG_TRIES_PER_MINUTE = 10
"""Over all callers: there is one owner, and addresses can be borrowed."""
SHORTEST_SECRET = 8
"""Characters of a configured key; the generated one has 43."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def load_secret(path: Path, configured: str | None = None) -> str:
    """The configured key, or the one in the file at `path`, which is made (mode 0600) when it is missing.

    Raises ConfigError when either is too short to be a secret or the file cannot be used. Reads and writes the disk.
    """
    if configured is not None:
        return _long_enough(configured, "platforms.api_server.key", "choose a longer one")
    try:
        return _create_secret(path)
    except FileExistsError:
        return _long_enough(_read_secret(path), str(path), "delete the file and start again: a new one is made")
    except OSError as error:
        raise ConfigError(f"Cannot write the secret to {path}: {error.strerror}. Check the folder's owner.") from error


class Doors:
    """Judges callers by one secret. Logins are signed with it, so they survive a restart and end when it changes."""

    def __init__(self, secret: str, clock: Clock, *, base_path: str = "/") -> None:
        self._secret = secret.encode()
        self.key = secrets.token_urlsafe(32)
        """Opens like the secret while this process lives, to commands of the same home: they find it in the lock."""
        self._clock = clock
        self._base_path = base_path
        self._codes: dict[str, float] = {}
        self._wrong: deque[float] = deque(maxlen=WRONG_TRIES_PER_MINUTE)

    def new_code(self) -> str:
        """A code that logs one browser in, once, within ten minutes."""
        now = self._clock.monotonic()
        self._codes = {code: end for code, end in self._codes.items() if end > now}
        code = secrets.token_urlsafe(16)
        self._codes[code] = now + CODE_SECONDS
        return code

    def routes(self) -> Sequence[Route]:
        """Log in and log out."""
        return (
            Route(method="POST", path="/login", handler=self._login, guard=Guard.OPEN),
            Route(method="POST", path="/logout", handler=self._logout, guard=Guard.OPEN),
        )

    def guarded(self, route: Route) -> Handler:
        """The route's handler behind its guard."""
        if route.guard is Guard.OPEN:
            return route.handler

        async def handler(request: web.Request) -> web.StreamResponse:
            if not self.admits(request):
                raise Problem(
                    401,
                    "This needs the owner's key: send `Authorization: Bearer KEY`, or log in on the page. "
                    "The key is in $HERMES_HOME/web-token unless platforms.api_server.key is set.",
                    code="invalid_api_key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            return await route.handler(request)

        return handler

    def admits(self, request: web.Request) -> bool:
        """Whether the request comes from the owner.

        A browser sends the login by itself, so for anything that changes or opens a channel it must also say where it
        comes from; the server has compared that `Origin` with the address already.
        """
        given = _bearer(request)
        if self._is_secret(given) or hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.key.encode()):
            return True
        return self._is_login(request.cookies.get(COOKIE, "")) and (is_passive(request) or "Origin" in request.headers)

    async def _login(self, request: web.Request) -> web.Response:
        body = await read_json(request)
        code, secret = member(body, "code", str, ""), member(body, "secret", str, "")
        self._check_pace()
        if not (self._redeem(code) or self._is_secret(secret)):
            self._wrong.append(self._clock.monotonic())
            raise Problem(
                401,
                "That is not the secret, or the code was used or is older than ten minutes. "
                "The lasting secret is in $HERMES_HOME/web-token unless platforms.api_server.key is set.",
                code="wrong_login",
            )
        response = web.json_response({"ok": True})
        self._set_cookie(request, response)
        return response

    async def _logout(self, _request: web.Request) -> web.Response:
        response = web.json_response({"ok": True})
        response.del_cookie(COOKIE, path=self._base_path, httponly=True, samesite="Strict")
        return response

    def _set_cookie(self, request: web.Request, response: web.Response) -> None:
        response.set_cookie(
            COOKIE,
            self._login_until(int(self._clock.now()) + LOGIN_SECONDS),
            max_age=LOGIN_SECONDS,
            path=self._base_path,
            httponly=True,
            samesite="Strict",
            secure=request.secure,
        )

    def _check_pace(self) -> None:
        """Raises Problem 429 after too many wrong tries; even a right one must wait then."""
        full = len(self._wrong) == WRONG_TRIES_PER_MINUTE
        wait = self._wrong[0] + 60.0 - self._clock.monotonic() if full else 0.0
        if wait > 0:
            raise Problem(
                429,
                f"Too many wrong tries. Wait {wait:.0f} s.",
                code="too_many_tries",
                headers={"Retry-After": f"{wait:.0f}"},
            )

    def _redeem(self, code: str) -> bool:
        return self._codes.pop(code, 0.0) > self._clock.monotonic()

    def _is_secret(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._secret)

    def _is_login(self, cookie: str) -> bool:
        end = cookie.partition(".")[0]
        if not (end.isascii() and end.isdigit() and len(end) <= 12):
            return False
        signed = hmac.compare_digest(cookie.encode("utf-8", "surrogatepass"), self._login_until(int(end)).encode())
        return signed and int(end) > self._clock.now()

    def _login_until(self, end: int) -> str:
        signature = hmac.new(self._secret, f"{COOKIE}:{end}".encode(), hashlib.sha256).hexdigest()
        return f"{end}.{signature}"


def is_passive(request: web.Request) -> bool:
    """Whether a request only reads and then ends: no change, no websocket."""
    return request.method in SAFE_METHODS and "Upgrade" not in request.headers


def _bearer(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _create_secret(path: Path) -> str:
    secret = secrets.token_urlsafe(32)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return secret


def _read_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the secret in {path}: {error}. Correct the file, or delete it.") from error


def _long_enough(secret: str, where: str, remedy: str) -> str:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigError(f"The secret in {where} is shorter than {SHORTEST_SECRET} characters; {remedy}.")
    return secret
