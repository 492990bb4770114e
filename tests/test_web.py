"""The web chat's adapter: real routes on a real port, real sockets, and what the gateway is told."""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import CanServe, CanStream, Guard, Origin, Outbound
from hermes.adapters.web import frames
from hermes.adapters.web.adapter import BACK_SECONDS, QUEUED_FRAMES, QUEUED_GLIMPSES, Peer
from hermes.adapters.web.page import FOLDER, assemble
from hermes.errors import StoreLocked
from worlds.web_world import COOKIE, SECRET, WebWorld

SAY = {"t": "say", "id": "a1", "chat": "kitchen", "session": None, "text": "Hello"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WebWorld]:
    async with WebWorld().running(tmp_path) as running:
        yield running


@asynccontextmanager
async def page_of(world: WebWorld) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession(cookies={COOKIE: SECRET}, cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
        client.ws_connect(f"{world.url}ws") as socket,
    ):
        yield socket


async def heard(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    frame: dict[str, Any] = await socket.receive_json(timeout=10)
    return frame


async def test_a_message_is_acknowledged_once_the_gateway_has_it(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_json(SAY)
        assert await heard(socket) == {"t": "ack", "id": "a1"}
    said = await world.next_said()
    assert (said.event_id, said.text, said.at, said.continues) == ("m:a1", "Hello", world.clock.now(), None)
    assert said.origin == Origin(platform="web", chat_id="kitchen", user_id="owner", user_name="Owner")


async def test_a_message_sent_again_is_acknowledged_again_and_heard_once(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_json(SAY)
        await heard(socket)
        await socket.send_json(SAY)
        assert await heard(socket) == {"t": "ack", "id": "a1"}
    assert world.heard.qsize() == 1


async def test_a_message_may_continue_a_stored_session(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_json({**SAY, "session": "20270101_120000_abcdef01"})
        await heard(socket)
    assert (await world.next_said()).continues == "20270101_120000_abcdef01"


async def test_other_pages_see_what_was_said_and_every_page_sees_the_answer(world: WebWorld) -> None:
    async with page_of(world) as speaker, page_of(world) as other:
        await speaker.send_json(SAY)
        assert await heard(speaker) == {"t": "ack", "id": "a1"}
        assert await heard(other) == {"t": "said", "chat": "kitchen", "id": "a1", "text": "Hello"}
        await world.say(await world.next_said(), "Hi!", key="k1", session="s1")
        expected = {
            "t": "answer", "chat": "kitchen", "answers": "m:a1", "key": "k1", "session": "s1", "markdown": "Hi!",
        }  # fmt: skip
        assert await heard(speaker) == expected
        assert await heard(other) == expected


async def test_glimpses_of_words_and_tools_are_streamed(world: WebWorld) -> None:
    assert isinstance(world.adapter, CanStream)
    async with page_of(world) as socket:
        await socket.send_json(SAY)
        await heard(socket)
        question = await world.next_said()
        world.glimpse(question, "Hel")
        world.glimpse(question, tool="memory")
        world.glimpse(question, tool="memory", done=True)
        delta, begun, ended = [await heard(socket) for _ in range(3)]
    assert (delta["t"], delta["answers"], delta["text"]) == ("delta", "m:a1", "Hel")
    assert (begun["t"], begun["name"], begun["done"]) == ("tool", "memory", False)
    assert ended["done"] is True


async def test_what_is_due_just_after_a_start_waits_for_the_pages_that_were_open_before(world: WebWorld) -> None:
    assert world.adapter is not None
    notice = Outbound(key="k8", origin=Origin(platform="web", chat_id="kitchen"), markdown="Put aside.")
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(world.adapter.send(notice))
        await asyncio.sleep(0)
        assert not sending.done()
        async with page_of(world) as socket:
            assert (await heard(socket))["markdown"] == "Put aside."


async def test_an_answer_without_any_open_page_is_sent_all_the_same(world: WebWorld) -> None:
    assert world.adapter is not None
    await world.clock.advance(BACK_SECONDS)
    receipt = await world.adapter.send(Outbound(key="k9", origin=Origin(platform="web", chat_id="c"), markdown="Hi"))
    assert receipt.message_ids == ("k9",)


async def test_stop_reaches_the_gateway_as_the_command(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_json({"t": "stop", "id": "b2", "chat": "kitchen"})
        assert await heard(socket) == {"t": "ack", "id": "b2"}
    stop = await world.next_said()
    assert (stop.event_id, stop.text, stop.origin.chat_id) == ("m:b2", "/stop", "kitchen")


async def test_a_gateway_that_cannot_take_a_message_says_why(world: WebWorld) -> None:
    world.refuse = StoreLocked("The store is busy. Try again in a minute.")
    async with page_of(world) as socket:
        await socket.send_json(SAY)
        assert await heard(socket) == {
            "t": "error", "id": "a1", "message": "The store is busy. Try again in a minute.",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("frame", "named", "sentence"),
    [
        ("no json", None, "not JSON"),
        ("[" * 100_000, None, "not JSON"),
        ("[]", None, "JSON object"),
        ('{"t": "dance", "id": "x"}', "x", "no known type"),
        ('{"t": ["say"]}', None, "no known type"),
        (json.dumps({**SAY, "text": " \n"}), "a1", "empty"),
        (json.dumps({**SAY, "text": 7}), "a1", "empty"),
        (json.dumps({**SAY, "text": "x" * 100_001}), "a1", "100,001 characters"),
        (json.dumps({**SAY, "chat": ""}), "a1", "`chat`"),
        (json.dumps({**SAY, "id": "<script>"}), None, "`id`"),
        (json.dumps({**SAY, "session": 5}), "a1", "`session`"),
        (json.dumps({**SAY, "more": "é" * 140_000}, ensure_ascii=False), None, "larger than 256 KB"),
    ],
)
async def test_a_bad_frame_is_answered_with_a_sentence_and_the_socket_stays(
    world: WebWorld, frame: str, named: str | None, sentence: str
) -> None:
    async with page_of(world) as socket:
        await socket.send_str(frame)
        error = await heard(socket)
        assert (error["t"], error["id"]) == ("error", named)
        assert sentence in error["message"]
        await socket.send_json({"t": "ping"})
        assert await heard(socket) == {"t": "pong"}
    assert world.heard.empty()


async def test_a_binary_frame_is_answered_with_a_sentence(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_bytes(b"\x00")
        assert "text frames" in (await heard(socket))["message"]


async def test_bad_text_is_repaired_at_the_edge(world: WebWorld) -> None:
    async with page_of(world) as socket:
        await socket.send_str(json.dumps({**SAY, "text": "a\ud800b\x00c"}))
        await heard(socket)
    assert (await world.next_said()).text == "a\ufffdb\ufffdc"


async def test_a_stopping_gateway_takes_nothing_more_and_still_shows_its_last_answers(tmp_path: Path) -> None:
    world = WebWorld()
    async with world.running(tmp_path), page_of(world) as socket:
        adapter = world.adapter
        assert adapter is not None
        async with asyncio.timeout(10):
            await socket.send_json(SAY)
            question = await world.next_said()
            assert (await heard(socket))["t"] == "ack"
            await world.stop_listening()
            await socket.send_json({**SAY, "id": "too-late"})
            with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                async with page_of(world):
                    pass
            await world.answer(question, "The last word")
            assert (await heard(socket))["markdown"] == "The last word"  # and no acknowledgement came before it
            adapter.close()
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_a_page_that_falls_behind_loses_glimpses_first() -> None:
    peer = Peer()
    for _ in range(QUEUED_FRAMES * 2):
        peer.glimpse("glimpse")
    for _ in range(QUEUED_FRAMES - QUEUED_GLIMPSES):
        peer.post("answer")
    assert peer.waiting == ("glimpse",) * QUEUED_GLIMPSES + ("answer",) * (QUEUED_FRAMES - QUEUED_GLIMPSES)


async def test_a_page_that_cannot_even_take_answers_is_let_go() -> None:
    peer = Peer()
    for _ in range(QUEUED_FRAMES + 1):
        peer.post("answer")
    assert peer.waiting == ()
    peer.post("too late")
    assert peer.waiting == ()


async def test_the_page_is_for_anybody_and_the_socket_for_the_owner(world: WebWorld) -> None:
    assert isinstance(world.adapter, CanServe)
    doors = {(route.method, route.path): route.guard for route in world.adapter.routes()}
    assert doors == {("GET", "/"): Guard.OPEN, ("GET", "/ws"): Guard.OWNER}


async def test_the_page_allows_exactly_its_own_style_and_script(world: WebWorld) -> None:
    async with aiohttp.ClientSession() as client, client.get(world.url) as response:
        page, policy = await response.text(), response.headers["Content-Security-Policy"]
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    for tag in ("style", "script"):
        (inline,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    for rule in ("default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy.split("; ")
    assert "unsafe" not in policy


def test_the_page_names_nothing_outside_itself_and_never_builds_markup_from_text() -> None:
    page = assemble("web").body.decode()
    assert re.findall(r"""\s(?:src|href|action)=["'](?!#|data:)[^"']+""", page) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|\balert\(", page) == []


def test_the_instance_is_named_on_the_page_as_text() -> None:
    assert b'data-instance="web@&quot;&lt;b&gt;"' in assemble('web@"<b>').body


def test_a_file_that_would_end_its_own_element_is_refused(tmp_path: Path) -> None:
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat.js").write_text('"</SCRIPT>"')
    with pytest.raises(ValueError, match="</script"):
        assemble("web", tmp_path)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_no_frame_breaks_the_reader(value: object) -> None:
    data = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(frames.BadFrame, match=r"\."):
        frames.decode(data)


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_that_a_page_can_send_arrives(text: str) -> None:
    frame = frames.decode(json.dumps({**SAY, "text": text}))
    assert isinstance(frame, frames.Say)
    assert frame.text == text.replace("\x00", "\ufffd")
