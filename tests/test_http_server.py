"""What the gateway's HTTP server promises to everybody, whichever route they ask."""

import asyncio
import io
import json
import socket

import aiohttp
import pytest
from aiohttp import web

from hermes.adapters.base import Guard, Route
from hermes.adapters.http import Problem, read_json
from hermes.errors import (
    AmbiguousSession,
    ConfigError,
    HermesError,
    LeaseBusy,
    SessionNotFound,
    StoreLocked,
    StoreUnavailable,
    TitleTaken,
    UserError,
)
from hermes.gateway.http.metrics import Metrics
from hermes.gateway.http.server import LARGEST_BODY, Address, HttpSettings, Readiness
from worlds.http_house import BEARER, house


async def hello(_request: web.Request) -> web.Response:
    return web.json_response({"hello": "world"})


async def echo(request: web.Request) -> web.Response:
    return web.json_response(await read_json(request))


async def scheme(request: web.Request) -> web.Response:
    return web.json_response({"secure": request.secure, "host": request.host})


def open_route(handler: object, method: str = "GET", path: str = "/open") -> Route:
    return Route(method=method, path=path, handler=handler, guard=Guard.OPEN)  # type: ignore[arg-type]


HELLO = open_route(hello)
ECHO = open_route(echo, "POST", "/echo")
SCHEME = open_route(scheme, path="/scheme")
OWNERS = Route(method="GET", path="/owners", handler=hello, guard=Guard.OWNER)


def failing(error: BaseException) -> Route:
    async def handler(_request: web.Request) -> web.Response:
        raise error

    return open_route(handler, path="/fail")


class TestBinding:
    async def test_port_zero_gives_the_address_that_was_really_bound(self) -> None:
        async with house([HELLO]) as h:
            assert h.address.port > 0
            assert h.address.url == f"http://127.0.0.1:{h.address.port}/"
            assert await h.ask("GET", "/open") == (200, {"hello": "world"})

    async def test_a_port_in_use_says_what_where_and_what_to_do(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}.*gateway\.http\.port"):
                async with house(settings=HttpSettings(port=port)):
                    pass

    async def test_a_port_that_cannot_exist_is_a_configuration_error(self) -> None:
        with pytest.raises(ConfigError, match="cannot listen"):
            async with house(settings=HttpSettings(port=70_000)):
                pass

    @pytest.mark.parametrize("base_path", ["/hermes", "hermes/", "/hermes/"])
    async def test_a_base_path_comes_before_every_route(self, base_path: str) -> None:
        async with house([HELLO], settings=HttpSettings(port=0, base_path=base_path)) as h:
            assert h.address.base_path == "/hermes/"
            assert (await h.ask("GET", "/open"))[0] == 200
            assert (await h.ask("GET", "/healthz"))[0] == 200
            async with h.client.get(f"http://127.0.0.1:{h.address.port}/open") as outside:
                assert outside.status == 404

    async def test_the_server_is_gone_after_the_block(self) -> None:
        async with house([HELLO]) as h:
            port = h.address.port
        with pytest.raises(OSError, match=r"Connect|refused"):
            await asyncio.open_connection("127.0.0.1", port)


class TestWhereRequestsComeFrom:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8642", "[::1]:80", "127.0.0.1:1"])
    async def test_names_of_this_machine_are_answered_with_any_port(self, host: str) -> None:
        async with house([HELLO]) as h:
            reply = await h.call("GET", "/open", headers={"Host": host})
            assert reply.status == 200

    @pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8642", "127.0.0.1.evil.example", "[::2]"])
    async def test_any_other_name_is_refused_with_the_setting_to_change(self, host: str) -> None:
        async with house([HELLO]) as h:
            reply = await h.call("GET", "/open", headers={"Host": host, **BEARER})
            assert reply.status == 403
            error = reply.error
        assert error["code"] == "host_not_allowed"
        assert "gateway.http.allowed_hosts" in str(error["message"])

    async def test_a_configured_name_with_a_port_is_allowed_with_this_port_only(self) -> None:
        settings = HttpSettings(port=0, allowed_hosts=("chat.example.org:8443",))
        async with house([HELLO], settings=settings) as h:
            for host, status in (("chat.example.org:8443", 200), ("chat.example.org", 403)):
                reply = await h.call("GET", "/open", headers={"Host": host})
                assert reply.status == status

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null", "", "http://[evil"])
    async def test_another_site_cannot_make_a_browser_change_something(self, origin: str) -> None:
        headers = {"Origin": origin, **BEARER}
        async with house([ECHO]) as h:
            reply = await h.call("POST", "/echo", json={}, headers=headers)
            assert reply.status == 403
            assert reply.error["code"] == "cross_site"

    async def test_our_own_page_and_programs_without_an_origin_may(self) -> None:
        async with house([ECHO]) as h:
            own: dict[str, str] = {"Origin": h.address.url.rstrip("/")}
            for headers in (own, {}):
                reply = await h.call("POST", "/echo", json={"a": 1}, headers=headers)
                assert (reply.status, reply.json) == (200, {"a": 1})

    async def test_another_site_cannot_open_a_websocket(self) -> None:
        async def socket_route(request: web.Request) -> web.StreamResponse:
            ws = web.WebSocketResponse()
            await ws.prepare(request)
            await ws.send_str("hi")
            return ws

        async with house([open_route(socket_route, path="/ws")]) as h:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await h.client.ws_connect(h.url("/ws"), origin="https://evil.example")
            async with h.client.ws_connect(h.url("/ws"), origin=h.address.url.rstrip("/")) as ws:
                assert await ws.receive_str() == "hi"

    async def test_only_a_trusted_proxy_is_believed_about_host_and_scheme(self) -> None:
        forwarded = {"X-Forwarded-Host": "spoofed.example, chat.example.org", "X-Forwarded-Proto": "https"}
        hosts = ("chat.example.org", "127.0.0.1")
        async with house([SCHEME], settings=HttpSettings(port=0, allowed_hosts=hosts)) as h:
            reply = await h.call("GET", "/scheme", headers=forwarded)
            assert reply.json == {"secure": False, "host": f"127.0.0.1:{h.address.port}"}
        behind = HttpSettings(port=0, allowed_hosts=hosts, trusted_proxies=("127.0.0.0/8",))
        async with house([SCHEME], settings=behind) as h:
            reply = await h.call("GET", "/scheme", headers=forwarded)
            assert reply.json == {"secure": True, "host": "chat.example.org"}

    async def test_a_proxy_that_is_no_address_is_a_configuration_error(self) -> None:
        with pytest.raises(ConfigError, match="trusted_proxies"):
            async with house(settings=HttpSettings(port=0, trusted_proxies=("proxy.local",))):
                pass


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (SessionNotFound("x"), 404, "session_not_found"),
            (AmbiguousSession("x", ["xa", "xb"]), 409, "ambiguous_session"),
            (TitleTaken("t", "s1", "telegram"), 409, "title_taken"),
            (LeaseBusy("telegram", 0.0), 409, "session_busy"),
            (StoreLocked("locked"), 503, "store_unavailable"),
            (StoreUnavailable("damaged"), 503, "store_unavailable"),
            (UserError("cannot"), 400, "invalid_request"),
            (HermesError("odd"), 500, "internal_error"),
            (Problem(418, "teapot", code="tea"), 418, "tea"),
        ],
    )
    async def test_our_errors_keep_their_words_and_get_a_status(
        self, error: HermesError, status: int, code: str
    ) -> None:
        async with house([failing(error)]) as h:
            reply = await h.call("GET", "/fail")
            assert reply.status == status
            shown = reply.error
        assert (shown["code"], shown["message"]) == (code, str(error))

    async def test_what_was_not_foreseen_shows_nothing_of_the_inside(self) -> None:
        async with house([failing(RuntimeError("the password is swordfish"))]) as h:
            reply = await h.call("GET", "/fail")
            assert reply.status == 500
            text = reply.text
            assert "swordfish" not in text
            assert "Traceback" not in text
            assert json.loads(text)["error"]["code"] == "internal_error"
            assert (await h.ask("GET", "/healthz"))[0] == 200

    async def test_a_failure_in_the_middle_of_an_answer_breaks_the_connection(self) -> None:
        async def half(request: web.Request) -> web.StreamResponse:
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b"half an ans")
            raise RuntimeError("broken")

        async with house([open_route(half)]) as h, h.client.get(h.url("/open")) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    async def test_an_unknown_address_is_a_404_in_json(self) -> None:
        async with house() as h:
            reply = await h.call("GET", "/nowhere")
            assert reply.status == 404
            assert reply.error["code"] == "not_found"

    async def test_a_wrong_method_names_the_right_ones(self) -> None:
        async with house([ECHO]) as h:
            reply = await h.call("GET", "/echo")
            assert reply.status == 405
            assert reply.headers["Allow"] == "POST"
            assert reply.error["code"] == "method_not_allowed"

    async def test_a_body_over_the_limit_is_a_413_and_one_at_the_limit_is_read(self) -> None:
        frame = len('{"a": ""}')
        async with house([ECHO]) as h:
            for size, status in ((LARGEST_BODY - frame, 200), (LARGEST_BODY - frame + 1, 413)):
                body = json.dumps({"a": "x" * size}).encode()
                reply = await h.call("POST", "/echo", data=io.BytesIO(body))
                assert reply.status == status
                if status == 413:
                    assert reply.error["code"] == "request_too_large"

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000])
    async def test_a_body_that_is_no_json_object_is_a_400(self, body: bytes) -> None:
        async with house([ECHO]) as h:
            reply = await h.call("POST", "/echo", data=body)
            assert reply.status == 400
            assert reply.error["code"] == "invalid_json"


class TestHeaders:
    async def test_every_response_is_hardened_even_a_404(self) -> None:
        async with house([HELLO]) as h:
            for path in ("/open", "/nowhere"):
                reply = await h.call("GET", path)
                assert reply.headers["X-Content-Type-Options"] == "nosniff"
                assert reply.headers["Referrer-Policy"] == "no-referrer"
                assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]

    async def test_a_page_keeps_its_own_content_policy(self) -> None:
        async def page(_request: web.Request) -> web.Response:
            return web.Response(text="hi", headers={"Content-Security-Policy": "default-src 'self'"})

        async with house([open_route(page)]) as h:
            reply = await h.call("GET", "/open")
            assert reply.headers["Content-Security-Policy"] == "default-src 'self'"


class TestGuards:
    async def test_the_owners_routes_need_the_key(self) -> None:
        async with house([OWNERS]) as h:
            assert (await h.ask("GET", "/owners"))[0] == 200
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
                reply = await h.call("GET", "/owners", headers=headers)
                assert reply.status == 401
                assert reply.headers["WWW-Authenticate"] == "Bearer"
                assert reply.error["code"] == "invalid_api_key"


class TestHealth:
    async def test_alive_is_open(self) -> None:
        async with house() as h:
            reply = await h.call("GET", "/healthz")
            assert (reply.status, reply.json) == (200, {"status": "alive"})

    async def test_readiness_shows_the_adapters_only_to_the_owner(self) -> None:
        async with house() as h:
            reply = await h.call("GET", "/readyz")
            assert (reply.status, reply.json) == (200, {"status": "ready"})
            assert await h.ask("GET", "/readyz") == (
                200,
                {"status": "ready", "adapters": {"telegram": {"state": "listening"}}},
            )

    async def test_not_ready_is_a_503_with_a_word(self) -> None:
        async with house(readiness=lambda: Readiness(ready=False, word="starting")) as h:
            reply = await h.call("GET", "/readyz")
            assert (reply.status, reply.json) == (503, {"status": "starting"})

    async def test_figures_are_the_owners_and_say_what_happened(self) -> None:
        async with house() as h:
            h.metrics.inbound.labels(platform="telegram", outcome="answered").inc()
            h.metrics.turn_seconds.observe(3)
            reply = await h.call("GET", "/metrics")
            assert reply.status == 401
            reply = await h.call("GET", "/metrics", headers=BEARER)
            assert reply.headers["Content-Type"].startswith("text/plain")
            text = reply.text
        assert 'hermes_inbound_total{outcome="answered",platform="telegram"} 1.0' in text
        assert "hermes_turn_seconds_sum 3.0" in text

    async def test_two_servers_in_one_process_keep_their_own_figures(self) -> None:
        one, two = Metrics(), Metrics()
        one.turns.labels(ending="done").inc()
        assert b'hermes_turns_total{ending="done"} 1.0' in one.render()
        assert b'ending="done"' not in two.render()

    async def test_the_loops_lag_is_measured(self) -> None:
        async with house() as h, asyncio.TaskGroup() as group:
            watch = group.create_task(h.metrics.watch_loop(h.clock))
            await asyncio.sleep(0)
            await h.clock.advance(1.0)
            assert b"hermes_loop_lag_seconds 0.0" in h.metrics.render()
            watch.cancel()


async def test_a_client_that_hangs_up_ends_its_handler() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.Request) -> web.Response:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    async with house([open_route(slow)]) as h:
        _reader, writer = await asyncio.open_connection("127.0.0.1", h.address.port)
        writer.write(b"GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await started.wait()
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)


def test_a_server_that_listens_everywhere_is_named_as_this_machine_reaches_it() -> None:
    assert Address(host="0.0.0.0", port=80, base_path="/").url == "http://127.0.0.1:80/"
    assert Address(host="::", port=80, base_path="/h/").url == "http://[::1]:80/h/"
    assert Address(host="10.0.0.5", port=80, base_path="/").url == "http://10.0.0.5:80/"
