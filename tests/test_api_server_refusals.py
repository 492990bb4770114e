"""The OpenAI-compatible API: requests that are not answered."""

import openai
import pytest

from worlds.api_world import says, world


class TestRefusals:
    async def test_a_wrong_key_is_a_401(self) -> None:
        async with world() as w:
            stranger = w.client.with_options(api_key="sk-wrong")
            with pytest.raises(openai.AuthenticationError, match="owner's key"):
                await stranger.chat.completions.create(model="any", messages=says("x"))
            assert w.gateway.asked == []

    async def test_a_wrong_host_is_a_403(self) -> None:
        async with world() as w:
            status, _, body = await w.chat("x", Host="evil.example")
        assert (status, body["error"]["code"]) == (403, "host_not_allowed")

    async def test_a_huge_body_is_a_413(self) -> None:
        async with world() as w:
            with pytest.raises(openai.APIStatusError, match="larger than 2 MB") as refused:
                await w.client.chat.completions.create(model="any", messages=says("x" * 2**21))
        assert refused.value.status_code == 413

    @pytest.mark.parametrize(
        ("change", "param", "code"),
        [
            ({"messages": None}, "messages", "missing_user_message"),
            ({"messages": []}, "messages", "missing_user_message"),
            ({"messages": "hi"}, "messages", "invalid_type"),
            ({"messages": {}}, "messages", "invalid_type"),
            ({"messages": ["hi"]}, "messages[0]", "unsupported_item"),
            ({"messages": [{"content": "hi"}]}, "messages[0].role", "invalid_role"),
            ({"messages": [{"role": [], "content": "hi"}]}, "messages[0].role", "invalid_role"),
            ({"messages": [{"role": "tool", "content": "hi"}]}, "messages[0].role", "invalid_role"),
            ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "invalid_type"),
            ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]", "invalid_type"),
            (
                {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
                "messages[0].content[0].text",
                "invalid_type",
            ),
            (
                {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
                "messages[0].content[0]",
                "unsupported_content_type",
            ),
            (
                {"messages": [{"role": "user", "content": [{"type": {}}]}]},
                "messages[0].content[0]",
                "unsupported_content_type",
            ),
            ({"messages": [{"role": "user", "content": ""}]}, "messages", "missing_user_message"),
            ({"messages": [{"role": "user", "content": None}]}, "messages", "missing_user_message"),
            ({"messages": [{"role": "user", "content": " \n"}]}, "messages", "missing_user_message"),
            ({"messages": [{"role": "system", "content": "hi"}]}, "messages", "missing_user_message"),
            (
                {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]},
                "messages",
                "missing_user_message",
            ),
            ({"stream": "yes"}, "stream", "invalid_type"),
            ({"stream": 1}, "stream", "invalid_type"),
            ({"stream_options": True}, "stream_options", "invalid_type"),
            ({"stream_options": {"include_usage": "yes"}}, "include_usage", "invalid_type"),
            ({"n": 2}, "n", "unsupported_parameter"),
            ({"n": 0}, "n", "unsupported_parameter"),
            ({"n": True}, "n", "invalid_type"),
            ({"tools": [{"type": "function"}]}, "tools", "unsupported_parameter"),
            ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter"),
        ],
    )
    async def test_a_chat_request_that_cannot_be_answered_names_what_is_wrong(
        self, change: dict[str, object], param: str, code: str
    ) -> None:
        async with world() as w:
            status, _, body = await w.post("/v1/chat/completions", {"messages": says("hi")} | change)
            assert w.gateway.asked == []
        assert status == 400
        error = body["error"]
        assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error")
        assert error["message"].endswith(".")

    @pytest.mark.parametrize(
        ("change", "param", "code"),
        [
            ({"input": None}, "input", "missing_user_message"),
            ({"input": ""}, "input", "missing_user_message"),
            ({"input": 5}, "input", "invalid_type"),
            ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0]", "unsupported_item"),
            (
                {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
                "input[0].content[0]",
                "unsupported_content_type",
            ),
            ({"instructions": 5}, "instructions", "invalid_type"),
            ({"store": "no"}, "store", "invalid_type"),
            ({"previous_response_id": 5}, "previous_response_id", "invalid_type"),
            ({"previous_response_id": "resp_nonsense"}, "previous_response_id", "previous_response_not_found"),
            ({"previous_response_id": "ü"}, "previous_response_id", "previous_response_not_found"),
            ({"tools": [{"type": "web_search"}]}, "tools", "unsupported_parameter"),
        ],
    )
    async def test_so_does_a_responses_request(self, change: dict[str, object], param: str, code: str) -> None:
        async with world() as w:
            status, _, body = await w.post("/v1/responses", {"input": "hi"} | change)
            assert w.gateway.asked == []
        assert (status, body["error"]["param"], body["error"]["code"]) == (400, param, code)

    async def test_what_hermes_does_not_know_is_ignored(self) -> None:
        async with world() as w:
            body = {"messages": says("hi"), "temperature": 2, "tools": [], "n": None, "user": 5, "x": {"y": []}}
            assert (await w.post("/v1/chat/completions", body))[0] == 200
