"""The secret, one-time codes, and the browser's login."""

import stat
from http.cookies import Morsel, SimpleCookie
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from fakes import VirtualClock
from hermes.adapters.base import Guard, Route
from hermes.errors import ConfigError
from hermes.gateway.http.doors import CODE_SECONDS, COOKIE, LOGIN_SECONDS, load_secret
from hermes.gateway.http.server import HttpSettings
from worlds.http_house import SECRET, House, Reply, house


async def hello(_request: web.Request) -> web.Response:
    return web.json_response({"hello": "owner"})


ROUTES = [Route(method=method, path="/mine", handler=hello, guard=Guard.OWNER) for method in ("GET", "POST")]


async def login(h: House, body: dict[str, str]) -> int:
    return (await h.call("POST", "/login", json=body)).status


async def visit(h: House, method: str = "GET", headers: dict[str, str] | None = None) -> int:
    """Ask for the owner's page with nothing but the cookies of this browser."""
    return (await h.call(method, "/mine", headers=headers)).status


def cookie_of(reply: Reply) -> Morsel[str]:
    return SimpleCookie(reply.headers["Set-Cookie"])[COOKIE]


class TestSecretFile:
    def test_the_first_start_makes_a_long_secret_that_only_its_owner_reads(self, tmp_path: Path) -> None:
        path = tmp_path / "web-token"
        secret = load_secret(path)
        assert len(secret) >= 43
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text(encoding="ascii").strip() == secret

    def test_later_starts_use_the_same_one(self, tmp_path: Path) -> None:
        path = tmp_path / "web-token"
        assert load_secret(path) == load_secret(path)

    def test_a_configured_key_wins_and_writes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "web-token"
        assert load_secret(path, "configured-key") == "configured-key"
        assert not path.exists()

    @pytest.mark.parametrize("content", ["", "\n", "short"])
    def test_a_file_without_a_secret_opens_no_door(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "web-token"
        path.write_text(content, encoding="ascii")
        with pytest.raises(ConfigError, match=r"web-token.*delete the file"):
            load_secret(path)

    def test_a_short_configured_key_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"platforms\.api_server\.key"):
            load_secret(tmp_path / "web-token", "1234")

    def test_a_folder_that_is_not_there_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="nowhere"):
            load_secret(tmp_path / "nowhere" / "web-token")

    def test_a_file_that_is_no_text_is_said(self, tmp_path: Path) -> None:
        path = tmp_path / "web-token"
        path.write_bytes(b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe")
        with pytest.raises(ConfigError, match="Cannot read the secret"):
            load_secret(path)


class TestLogin:
    async def test_a_code_logs_in_once(self) -> None:
        async with house(ROUTES) as h:
            code = h.doors.new_code()
            assert await visit(h) == 401
            assert await login(h, {"code": code}) == 200
            assert await visit(h) == 200
            assert await login(h, {"code": code}) == 401

    async def test_a_code_ends_after_ten_minutes(self) -> None:
        async with house(ROUTES) as h:
            code = h.doors.new_code()
            await h.clock.advance(CODE_SECONDS)
            assert await login(h, {"code": code}) == 401

    async def test_old_codes_are_forgotten_and_young_ones_are_not(self) -> None:
        async with house(ROUTES) as h:
            old = h.doors.new_code()
            await h.clock.advance(CODE_SECONDS / 2)
            young = h.doors.new_code()
            await h.clock.advance(CODE_SECONDS / 2)
            h.doors.new_code()
            assert await login(h, {"code": old}) == 401
            assert await login(h, {"code": young}) == 200

    async def test_the_secret_logs_in_as_often_as_wanted(self) -> None:
        async with house(ROUTES) as h:
            assert [await login(h, {"secret": SECRET}) for _ in range(3)] == [200, 200, 200]
            assert await visit(h) == 200

    @pytest.mark.parametrize("body", [{}, {"code": ""}, {"secret": ""}, {"secret": "wrong"}, {"secret": "\ud800"}])
    async def test_nothing_else_does(self, body: dict[str, str]) -> None:
        async with house(ROUTES) as h:
            assert await login(h, body) == 401
            assert await visit(h) == 401

    async def test_a_body_of_another_shape_is_a_400(self) -> None:
        async with house(ROUTES) as h:
            reply = await h.call("POST", "/login", json={"code": 5})
            assert (reply.status, reply.error["param"]) == (400, "code")

    async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(self) -> None:
        settings = HttpSettings(port=0, base_path="/hermes")
        async with house(ROUTES, settings=settings) as h:
            morsel = cookie_of(await h.call("POST", "/login", json={"secret": SECRET}))
        assert morsel["httponly"] is True
        assert morsel["samesite"] == "Strict"
        assert morsel["path"] == "/hermes"
        assert morsel["secure"] == ""

    async def test_behind_a_trusted_https_proxy_the_cookie_is_for_https_only(self) -> None:
        settings = HttpSettings(port=0, trusted_proxies=("127.0.0.1",))
        headers = {"X-Forwarded-Proto": "https"}
        async with house(ROUTES, settings=settings) as h:
            reply = await h.call("POST", "/login", json={"secret": SECRET}, headers=headers)
            assert cookie_of(reply)["secure"] is True

    async def test_a_login_survives_a_restart_and_ends_after_thirty_days(self) -> None:
        clock = VirtualClock()
        async with house(ROUTES, clock=clock) as h:
            morsel = cookie_of(await h.call("POST", "/login", json={"secret": SECRET}))
            cookie = {"Cookie": f"{COOKIE}={morsel.value}"}
        async with house(ROUTES, clock=clock) as restarted:
            await clock.advance(LOGIN_SECONDS - 1)
            assert await visit(restarted, headers=cookie) == 200
            await clock.advance(1)
            assert await visit(restarted, headers=cookie) == 401

    @pytest.mark.parametrize("value", ["", "x", "9999999999", "9999999999.", f"9999999999.{'0' * 64}", "²."])
    async def test_a_cookie_that_we_did_not_sign_is_worth_nothing(self, value: str) -> None:
        async with house(ROUTES) as h:
            assert await visit(h, headers={"Cookie": f"{COOKIE}={value}"}) == 401

    async def test_a_cookie_with_a_later_end_than_signed_is_worth_nothing(self) -> None:
        async with house(ROUTES) as h:
            end, signature = cookie_of(await h.call("POST", "/login", json={"secret": SECRET})).value.split(".")
            h.client.cookie_jar.clear()
            assert await visit(h, headers={"Cookie": f"{COOKIE}={int(end) + 1}.{signature}"}) == 401

    async def test_logging_out_takes_the_cookie_away(self) -> None:
        async with house(ROUTES) as h:
            await login(h, {"secret": SECRET})
            assert (await h.call("POST", "/logout")).status == 200
            assert await visit(h) == 401

    async def test_a_cookie_alone_changes_nothing_unless_the_browser_says_where_it_comes_from(self) -> None:
        async with house(ROUTES) as h:
            await login(h, {"secret": SECRET})
            assert await visit(h, "POST") == 401
            assert await visit(h, "POST", {"Origin": h.address.url.rstrip("/")}) == 200


class TestGuessing:
    async def test_after_ten_wrong_tries_even_the_right_one_waits_a_minute(self) -> None:
        async with house(ROUTES) as h:
            for _ in range(10):
                assert await login(h, {"secret": "guess"}) == 401
            refused = await h.call("POST", "/login", json={"secret": SECRET})
            assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
            await h.clock.advance(60)
            assert await login(h, {"secret": SECRET}) == 200

    async def test_right_tries_are_not_counted(self) -> None:
        async with house(ROUTES) as h:
            for _ in range(15):
                assert await login(h, {"secret": SECRET}) == 200


async def test_a_login_reaches_websockets_of_the_own_page() -> None:
    async def socket(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        await ws.send_str("in")
        return ws

    route = Route(method="GET", path="/ws", handler=socket, guard=Guard.OWNER)
    async with house([route]) as h:
        await login(h, {"secret": SECRET})
        async with h.client.ws_connect(h.url("/ws"), origin=h.address.url.rstrip("/")) as ws:
            assert await ws.receive_str() == "in"
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await h.client.ws_connect(h.url("/ws"))
