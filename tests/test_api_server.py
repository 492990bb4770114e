"""The OpenAI-compatible API: what clients get."""

import asyncio

import openai
import pytest

from fakes import VirtualClock
from hermes.adapters.api_server import PLATFORM
from hermes.adapters.api_server.adapter import ApiServerConfig
from hermes.adapters.base import CanServe, CanStream, Carried, Inbound
from worlds.api_world import SESSION, Gateway, in_words, says, streamed, surroundings, world
from worlds.http_house import BEARER


class TestChatCompletions:
    async def test_a_question_is_answered(self) -> None:
        async with world() as w:
            done = await w.client.chat.completions.create(model="any", messages=says("hello 👋"))
        assert done.choices[0].message.content == "echo: hello 👋"
        assert done.choices[0].message.role == "assistant"
        assert done.choices[0].finish_reason == "stop"
        assert done.model == "hermes-test"
        assert done.id.startswith("chatcmpl-")
        assert done.created == int(w.gateway.asked[0].at)
        assert done.usage is not None
        assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (7, 3, 10)

    async def test_a_stream_brings_the_words_as_they_come(self) -> None:
        async with world(in_words) as w:
            stream = await w.client.chat.completions.create(model="any", messages=says("a b c"), stream=True)
            chunks = [chunk async for chunk in stream]
        assert len({chunk.id for chunk in chunks}) == 1
        assert chunks[0].choices[0].delta.role == "assistant"
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "echo: a b c "
        assert len(chunks) > 3
        assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
        assert all(chunk.usage is None for chunk in chunks)

    async def test_usage_joins_a_stream_when_asked_for(self) -> None:
        async with world() as w:
            stream = await w.client.chat.completions.create(
                model="any", messages=says("x"), stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
        assert chunks[-1].choices == []
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 10
        assert all(chunk.usage is None for chunk in chunks[:-1])

    async def test_the_clients_own_stream_reader_puts_it_together(self) -> None:
        async with (
            world(in_words) as w,
            w.client.chat.completions.stream(model="any", messages=says("a b")) as stream,
        ):
            final = await stream.get_final_completion()
        assert final.choices[0].message.content == "echo: a b "

    async def test_words_that_no_glimpse_showed_are_sent_at_the_end(self) -> None:
        async def half(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "The first")
            await gateway.answer(question, "The first and the second half.")

        async with world(half) as w:
            assert await streamed(w) == "The first and the second half."

    async def test_words_before_and_after_a_tool_stand_apart_and_are_not_repeated(self) -> None:
        async def with_tool(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "Let me look.")
            gateway.show(question, tool="read_file")
            gateway.show(question, "It is five.")
            await gateway.answer(question, "It is five.")

        async with world(with_tool) as w:
            assert await streamed(w) == "Let me look.\n\nIt is five."

    async def test_an_answer_that_differs_from_its_glimpses_follows_whole(self) -> None:
        async def changed(gateway: Gateway, question: Inbound) -> None:
            gateway.show(question, "My key is abc")
            await gateway.answer(question, "My key is [redacted]")

        async with world(changed) as w:
            assert await streamed(w) == "My key is abc\n\nMy key is [redacted]"

    async def test_an_empty_answer_is_an_answer(self) -> None:
        async with world(lambda gateway, question: gateway.answer(question, "")) as w:
            assert await streamed(w) == ""
            assert (await w.chat())[2]["choices"][0]["message"]["content"] == ""

    async def test_a_quiet_stream_shows_signs_of_life(self) -> None:
        quiet = asyncio.Event()

        async def slow(gateway: Gateway, question: Inbound) -> None:
            await quiet.wait()
            await gateway.answer(question, "late")

        async with world(slow, heartbeat_seconds=0.01) as w:
            body = {"messages": says("x"), "stream": True}
            async with w.house.client.post(w.house.url("/v1/chat/completions"), json=body, headers=BEARER) as response:
                assert await response.content.readline() == b": still thinking\n"
                quiet.set()
                rest = await response.text()
        assert '"content": "late"' in rest
        assert rest.endswith("data: [DONE]\n\n")

    async def test_heartbeats_do_not_disturb_the_client(self) -> None:
        async def slow(gateway: Gateway, question: Inbound) -> None:
            await asyncio.sleep(0.03)
            await gateway.answer(question, "late")

        async with world(slow, heartbeat_seconds=0.01) as w:
            assert await streamed(w) == "late"


class TestModels:
    async def test_the_agent_is_the_only_model(self) -> None:
        async with world() as w:
            assert [model.id async for model in w.client.models.list()] == ["hermes-test"]


class TestResponses:
    async def test_a_question_is_answered(self) -> None:
        async with world() as w:
            done = await w.client.responses.create(model="any", input="hello", instructions="Be brief.")
        assert done.output_text == "echo: hello"
        assert (done.status, done.model, done.instructions) == ("completed", "hermes-test", "Be brief.")
        assert done.usage is not None
        assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.total_tokens) == (7, 3, 10)
        assert w.gateway.asked[0].instructions == "Be brief."

    async def test_a_stream_has_every_event_in_order(self) -> None:
        async with world(in_words) as w:
            stream = await w.client.responses.create(model="any", input="a b", stream=True)
            events = [event async for event in stream]
        kinds = [event.type for event in events]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert kinds[:4] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
        ]
        assert kinds[-4:] == [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert set(kinds[4:-4]) == {"response.output_text.delta"}
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "echo: a b "

    async def test_the_clients_own_stream_reader_puts_it_together(self) -> None:
        async with world(in_words) as w:
            async with w.client.responses.stream(model="any", input="a b") as stream:
                final = await stream.get_final_response()
            assert final.output_text == "echo: a b"
            assert (await w.client.responses.retrieve(final.id)).output_text == "echo: a b"

    async def test_a_follow_up_goes_where_the_response_was_said(self) -> None:
        async with world() as w:
            first = await w.client.responses.create(model="any", input="one")
            second = await w.client.responses.create(model="any", input="two", previous_response_id=first.id)
        one, two = w.gateway.asked
        assert two.origin == one.origin
        assert (one.continues, two.continues) == (None, SESSION)
        assert two.event_id != one.event_id
        assert second.previous_response_id == first.id

    async def test_a_follow_up_works_after_a_restart(self) -> None:
        async with world() as w:
            first = await w.client.responses.create(model="any", input="one")
            chat = w.gateway.asked[0].origin.chat_id
        async with world() as restarted:
            await restarted.client.responses.create(model="any", input="two", previous_response_id=first.id)
            (asked,) = restarted.gateway.asked
        assert (asked.continues, asked.origin.chat_id) == (SESSION, chat)

    async def test_a_stored_response_can_be_read_again_and_deleted(self) -> None:
        async with world() as w:
            made = await w.client.responses.create(model="any", input="one")
            assert await w.client.responses.retrieve(made.id) == made
            await w.client.responses.delete(made.id)
            with pytest.raises(openai.NotFoundError, match="deleted"):
                await w.client.responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError):
                await w.client.responses.delete(made.id)

    async def test_one_that_should_not_be_stored_is_not(self) -> None:
        async with world() as w:
            made = await w.client.responses.create(model="any", input="one", store=False)
            with pytest.raises(openai.NotFoundError, match="store: false"):
                await w.client.responses.retrieve(made.id)

    async def test_reading_an_unknown_response_never_asks_anything(self) -> None:
        async with world() as w:
            with pytest.raises(openai.NotFoundError):
                await w.client.responses.retrieve("resp_unknown")
            assert w.gateway.asked == []

    async def test_input_may_be_a_list_of_messages(self) -> None:
        async with world() as w:
            await w.client.responses.create(
                model="any",
                input=[
                    {"role": "developer", "content": "Rhyme."},
                    {"role": "user", "content": "one"},
                    {"type": "message", "role": "assistant", "content": "two"},
                    {"role": "user", "content": [{"type": "input_text", "text": "three"}]},
                ],
            )
        (asked,) = w.gateway.asked
        assert asked.text == "three"
        assert asked.carried == (Carried(role="user", text="one"), Carried(role="assistant", text="two"))
        assert asked.instructions == "Rhyme."


class TestPlatform:
    async def test_streams_serves_and_may_send_twice(self) -> None:
        async with PLATFORM.open(ApiServerConfig(), surroundings(VirtualClock())) as adapter:
            assert isinstance(adapter, CanStream)
            assert isinstance(adapter, CanServe)
            assert adapter.limits.idempotent_sends

    def test_an_unknown_setting_is_refused(self) -> None:
        with pytest.raises(ValueError, match="extra"):
            ApiServerConfig(prot=1)  # type: ignore[call-arg]
