"""The OpenAI-compatible API: which conversation a request belongs to, repeats, ends and refusals."""

import asyncio
import json
from dataclasses import replace

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from fakes import settle
from hermes.adapters.api_server import place
from hermes.adapters.base import Accepted, Carried, ChatKind, Event, Inbound, Lifetime
from hermes.errors import Refusal, Rejected, StoreLocked
from worlds.api_world import SESSION, Gateway, says, silence, streamed, world
from worlds.http_house import BEARER


class TestConversations:
    async def test_without_a_session_the_clients_history_comes_along(self) -> None:
        history: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "reply"},
            {"role": "user", "content": "second"},
            {"role": "user", "content": [{"type": "text", "text": "third"}, {"type": "text", "text": "part"}]},
        ]
        async with world() as w:
            await w.client.chat.completions.create(model="any", messages=history)
        (asked,) = w.gateway.asked
        assert asked.text == "second\n\nthird\npart"
        assert asked.carried == (Carried(role="user", text="first"), Carried(role="assistant", text="reply"))
        assert asked.instructions == "Be kind."
        assert (asked.lifetime, asked.alone, asked.continues) == (Lifetime.CONNECTION, True, None)
        assert (asked.origin.platform, asked.origin.kind, asked.origin.user_id) == (
            "api_server",
            ChatKind.DIRECT,
            "owner",
        )

    async def test_two_requests_without_a_session_know_nothing_of_each_other(self) -> None:
        async with world() as w:
            await w.chat("x")
            await w.chat("x")
        one, two = w.gateway.asked
        assert one.origin.chat_id != two.origin.chat_id

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_named_session_is_continued_and_named_in_the_response(self, stream: bool) -> None:
        history: list[ChatCompletionMessageParam] = [
            {"role": "user", "content": "old"},
            {"role": "assistant", "content": "older"},
            {"role": "user", "content": "new"},
        ]
        async with world() as w:
            response = await w.client.chat.completions.with_raw_response.create(
                model="any", messages=history, stream=stream, extra_headers={place.SESSION_ID: "abc"}
            )
        (asked,) = w.gateway.asked
        assert (asked.continues, asked.text, asked.carried) == ("abc", "new", ())
        assert response.headers[place.SESSION_ID] == SESSION

    async def test_a_named_key_is_a_stable_chat_and_comes_back(self) -> None:
        async with world() as w:
            for _ in range(2):
                _, headers, _ = await w.chat("x", **{place.SESSION_KEY: "my key: ü"})
                assert headers[place.SESSION_KEY] == "my key: ü"
                assert headers[place.SESSION_ID] == SESSION
        assert [one.origin.chat_id for one in w.gateway.asked] == ["key:my key: ü"] * 2
        assert len({one.event_id for one in w.gateway.asked}) == 2

    async def test_a_stream_that_starts_quietly_echoes_the_session_that_was_asked_for(self) -> None:
        done = asyncio.Event()

        async def slow(gateway: Gateway, question: Inbound) -> None:
            await done.wait()
            await gateway.answer(question, "x")

        async with world(slow, heartbeat_seconds=0.01) as w:
            headers = {**BEARER, place.SESSION_ID: "abc"}
            body = {"messages": says("x"), "stream": True}
            url = w.house.url("/v1/chat/completions")
            async with w.house.client.post(url, json=body, headers=headers) as response:
                assert response.headers[place.SESSION_ID] == "abc"
                done.set()
                await response.read()

    @pytest.mark.parametrize("header", [place.SESSION_KEY, place.SESSION_ID])
    async def test_a_name_that_is_too_long_is_refused(self, header: str) -> None:
        async with world() as w:
            status, _, body = await w.chat("x", **{header: "k" * 257})
            assert (status, body["error"]["param"]) == (400, header)
            assert (await w.chat("x", **{header: "k" * 256}))[0] == 200

    async def test_bad_characters_are_repaired_where_they_enter(self) -> None:
        async with world() as w:
            await w.chat("a\ud800b\x00c \ud83d\ude00")
        assert w.gateway.asked[0].text == "a\ufffdb\ufffdc 😀"


class TestIdempotency:
    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_repeat_gets_the_stored_answer_and_asks_nothing(self, stream: bool) -> None:
        async with world() as w:
            seen = []
            for _ in range(2):
                headers = {**BEARER, "Idempotency-Key": "k1"}
                body = {"messages": says("x"), "stream": stream}
                url = w.house.url("/v1/chat/completions")
                async with w.house.client.post(url, json=body, headers=headers) as response:
                    seen.append((response.headers.get("Idempotency-Replayed"), await response.text()))
        (first, words), (second, same_words) = seen
        assert (first, second) == (None, "true")
        assert words == same_words
        assert "echo: x" in words
        (asked,) = w.gateway.asked
        assert asked.lifetime is Lifetime.CHAT

    async def test_a_repeat_is_known_after_a_restart(self) -> None:
        async with world() as w:
            await w.chat("x", **{"Idempotency-Key": "k1"})
        async with world() as restarted:
            restarted.gateway.settled |= w.gateway.settled
            _, headers, body = await restarted.chat("x", **{"Idempotency-Key": "k1"})
            assert restarted.gateway.asked == []
        assert headers["Idempotency-Replayed"] == "true"
        assert body["choices"][0]["message"]["content"] == "echo: x"

    async def test_the_same_key_for_another_question_is_a_conflict(self) -> None:
        async with world() as w:
            await w.chat("x", **{"Idempotency-Key": "k1"})
            status, _, body = await w.chat("y", **{"Idempotency-Key": "k1"})
            assert (status, body["error"]["code"]) == (409, "idempotency_key_conflict")
            status, _, body = await w.chat("x", **{"Idempotency-Key": "k1", place.SESSION_KEY: "elsewhere"})
            assert (status, body["error"]["code"]) == (409, "idempotency_key_conflict")
        assert len(w.gateway.asked) == 1

    async def test_a_repeat_while_the_first_one_waits_gets_the_same_answer(self) -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "the same ")
            asked.set()
            await go.wait()
            gateway.show(question, "answer")
            await gateway.answer(question, "the same answer")

        async with world(slow) as w, asyncio.TaskGroup() as group:
            body = {"messages": says("x"), "stream": True}
            headers = {**BEARER, "Idempotency-Key": "k1"}

            async def ask() -> str:
                url = w.house.url("/v1/chat/completions")
                async with w.house.client.post(url, json=body, headers=headers) as response:
                    lines = [line async for line in response.content if line.startswith(b"data: {")]
                chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines]
                return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)

            first = group.create_task(ask())
            await asked.wait()
            second = group.create_task(ask())
            await w.gateway.repeated.wait()
            go.set()
        assert (first.result(), second.result()) == ("the same answer", "the same answer")
        assert len(w.gateway.asked) == 1

    async def test_one_that_ended_without_an_answer_says_so(self) -> None:
        async with world() as w:
            await w.chat("x", **{"Idempotency-Key": "k1"})
            for name in w.gateway.settled:
                w.gateway.settled[name] = None
            status, _, body = await w.chat("x", **{"Idempotency-Key": "k1"})
        assert (status, body["error"]["code"]) == (409, "no_answer")

    @pytest.mark.parametrize("key", ["", "k" * 256, "ü"])
    async def test_a_key_that_nobody_could_repeat_is_refused(self, key: str) -> None:
        async with world() as w:
            status, _, body = await w.chat("x", **{"Idempotency-Key": key})
        assert (status, body["error"]["param"]) == (400, "Idempotency-Key")


class TestEnds:
    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_client_that_hangs_up_takes_its_question_back(self, stream: bool) -> None:
        asked = asyncio.Event()

        async def never(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "a word")
            asked.set()

        async with world(never) as w, asyncio.TaskGroup() as group:
            create = w.client.chat.completions.create(model="any", messages=says("x"), stream=stream)
            request = group.create_task(create)
            await asked.wait()
            if stream:
                await (await request).close()  # type: ignore[union-attr]
            else:
                request.cancel()
            hangup = await asyncio.wait_for(w.gateway.hangups.get(), 5)
            (question,) = w.gateway.asked
            assert (hangup.origin, hangup.event_id) == (question.origin, question.event_id)
            with pytest.raises(Rejected) as refused:
                await w.gateway.answer(question, "too late")
            assert refused.value.refusal is Refusal.GONE

    async def test_with_an_idempotency_key_the_question_stays(self) -> None:
        asked = asyncio.Event()

        async def never(gateway: Gateway, question: Inbound) -> None:
            asked.set()

        async with world(never) as w, asyncio.TaskGroup() as group:
            request = group.create_task(w.chat("x", **{"Idempotency-Key": "k1"}))
            await asked.wait()
            request.cancel()
        assert w.gateway.hangups.empty()

    async def test_an_answered_request_is_not_taken_back(self) -> None:
        async with world() as w:
            await w.chat("x")
            await settle()
            assert w.gateway.hangups.empty()

    async def test_no_answer_in_time_is_a_504_and_takes_the_question_back(self) -> None:
        async with world(silence, request_timeout_seconds=0.05) as w:
            status, _, body = await w.chat("x")
            assert (status, body["error"]["code"]) == (504, "timeout")
            assert "request_timeout_seconds" in body["error"]["message"]
            assert w.gateway.hangups.qsize() == 1
            with pytest.raises(openai.InternalServerError):
                await streamed(w)

    async def test_a_stream_that_is_open_by_then_ends_with_an_error(self) -> None:
        async def one_word(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "well")

        async with world(one_word, request_timeout_seconds=0.05) as w:
            with pytest.raises(openai.APIError, match="No answer within"):
                await streamed(w)
            stream = await w.client.responses.create(model="any", input="x", stream=True)
            last = [event async for event in stream][-1]
        assert last.type == "response.failed"
        assert last.response.error is not None
        assert "No answer within" in last.response.error.message

    async def test_before_the_gateway_listens_the_answer_is_try_again(self) -> None:
        async with world(listening=False) as w:
            status, headers, body = await w.chat("x")
        assert (status, headers["Retry-After"], body["error"]["code"]) == (503, "2", "not_ready")

    async def test_a_request_that_waits_when_listening_ends_is_still_answered(self) -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(gateway: Gateway, question: Inbound) -> None:
            asked.set()
            await go.wait()
            await gateway.answer(question, "last words")

        async with world(slow, listening=False) as w, asyncio.TaskGroup() as group:
            listen = group.create_task(w.adapter.listen(w.gateway.emit))
            await settle()
            request = group.create_task(w.chat("x"))
            await asked.wait()
            listen.cancel()
            await settle()
            assert (await w.chat("y"))[0] == 503
            go.set()
            assert (await request)[2]["choices"][0]["message"]["content"] == "last words"

    async def test_a_store_that_cannot_take_the_question_is_a_503(self) -> None:
        async def locked(event: Event, /) -> Accepted:
            raise StoreLocked("The store is busy; try again.")

        async with world(listening=False) as w, asyncio.TaskGroup() as group:
            listen = group.create_task(w.adapter.listen(locked))
            await settle()
            status, _, body = await w.chat("x")
            listen.cancel()
        assert (status, body["error"]["code"]) == (503, "store_unavailable")

    async def test_an_answer_to_nobody_is_gone(self) -> None:
        async with world() as w:
            await w.chat("x")
            (question,) = w.gateway.asked
            with pytest.raises(Rejected) as refused:
                await w.gateway.answer(question, "again")
            assert refused.value.refusal is Refusal.GONE
            (said,) = w.gateway.settled.values()
            assert said is not None
            with pytest.raises(Rejected):
                await w.adapter.send(replace(said, answers=None))
