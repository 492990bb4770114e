"""What providers' refusals mean, and text that comes in pieces: the pure parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.completions import Answer
from hermes.agent.models.deltas import WholeCharacters
from hermes.agent.models.refusals import Place, Refusal, retry_after, verdict
from hermes.errors import BadTranscript, ContextOverflow, ModelUnavailable
from hermes.text import repair

SECRET = "correct-horse-battery"
PLACE = Place.at(f"https://bot:{SECRET}@models.example:8443/v1?key={SECRET}", model="m", secret=SECRET)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it"),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "Your input exceeds the context window of this model."),
        (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"),
        (400, "Please reduce the length of the messages or completion."),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 58910."),
        (413, "Payload Too Large"),
        (500, "prompt is too long"),
    ],
)
def test_an_overfull_window_is_known_by_its_words(status: int, words: str) -> None:
    assert type(verdict(Refusal(status=status, words=words), PLACE)) is ContextOverflow


@pytest.mark.parametrize(
    "words",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Please ensure that function call turn comes immediately after a user turn.",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_broken_history_is_known_by_its_words(status: int, words: str) -> None:
    assert type(verdict(Refusal(status=status, words=words), PLACE)) is BadTranscript


@pytest.mark.parametrize(
    ("status", "codes", "words", "retryable"),
    [
        (400, "", "API key not valid. Please pass a valid API key.", False),
        (400, "", "Unsupported parameter: 'max_tokens'", False),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota. Please retry in 36s.", True),
        (429, "insufficient_quota", "You exceeded your current quota.", False),
        (429, "", "Too many tokens per minute", True),
        (402, "", "Insufficient credits", False),
        (404, "", "<html>not found</html>", False),
        (408, "", "", True),
        (502, "", "<html>bad gateway</html>", True),
        (200, "overloaded_error", "Overloaded", True),
        (200, "authentication_error", "no", False),
    ],
)
def test_other_refusals_say_whether_waiting_helps(status: int, codes: str, words: str, retryable: bool) -> None:
    error = verdict(Refusal(status=status, codes=codes, words=words), PLACE)
    assert isinstance(error, ModelUnavailable)
    assert error.retryable is retryable


@given(st.integers(100, 599), st.text(), st.text())
def test_no_refusal_shows_the_key(status: int, before: str, after: str) -> None:
    text = str(verdict(Refusal(status=status, codes=SECRET, words=f"{before}{SECRET}{after}"), PLACE))
    assert SECRET not in text
    assert "\n" not in text
    assert "m at models.example:8443" in text


@pytest.mark.parametrize(
    "key", ["sk-proj-abcdefgh1234", "sk-ant-api03-xyz_123456", "gsk_0123456789abc", "Bearer abc.def"]
)
def test_another_key_in_the_words_is_not_shown_either(key: str) -> None:
    text = str(verdict(Refusal(status=500, words=f"upstream refused {key} today"), PLACE))
    assert key.removeprefix("Bearer ") not in text
    assert "today" in text


@pytest.mark.parametrize(
    ("body", "codes", "words"),
    [
        ({"error": {"message": "no", "type": "t", "code": 400, "param": "p"}}, "t 400 p", "no"),
        ({"type": "error", "error": {"type": "t", "message": "no"}}, "t", "no"),
        ({"message": "no", "code": None}, "", "no"),
        ({"error": "no"}, "", "no"),
        ("no", "", "no"),
        (None, "", ""),
    ],
)
def test_the_bodies_of_different_servers_are_read(body: object, codes: str, words: str) -> None:
    refusal = Refusal.read(400, body)
    assert (refusal.codes, refusal.words) == (codes, words)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 02 Dec 2026 10:00:30 GMT", "date": "Wed, 02 Dec 2026 10:00:00 GMT"}, 30),
        ({"retry-after": "Wed, 02 Dec 2026 09:00:00 GMT", "date": "Wed, 02 Dec 2026 10:00:00 GMT"}, 0),
        ({"retry-after": "Wed, 02 Dec 2026 10:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_the_asked_for_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(st.text(max_size=40), st.data())
def test_text_cut_between_utf16_units_comes_out_whole(text: str, data: st.DataObject) -> None:
    units = text.encode("utf-16-le")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units) // 2), max_size=8)))
    pieces = [
        units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
        for start, end in zip([0, *cuts], [*cuts, len(units) // 2], strict=True)
    ]
    joiner = WholeCharacters()
    shown = [joiner.add(piece) for piece in pieces] + [joiner.rest()]
    assert "".join(shown) == repair(text)
    for piece in shown:
        piece.encode()


@given(st.lists(st.text(alphabet=st.characters(), max_size=5)), st.sampled_from(["\ud83d", "\ude00"]))
def test_half_a_character_that_stays_alone_is_marked(pieces: list[str], half: str) -> None:
    joiner = WholeCharacters()
    shown = "".join([joiner.add(piece) for piece in [*pieces, half]]) + joiner.rest()
    assert shown.endswith("\ufffd")
    shown.encode()


def call_chunk(*pieces: dict[str, object]) -> dict[str, object]:
    return {"choices": [{"delta": {"tool_calls": list(pieces)}}]}


def joined(*chunks: dict[str, object]) -> list[tuple[str, str]]:
    answer = Answer()
    for chunk in chunks:
        list(answer.add(chunk))
    called = [event for event in answer.end() if hasattr(event, "calls")]
    return [(call.name, call.arguments) for event in called for call in event.calls]


def piece(name: str | None, arguments: str, **more: object) -> dict[str, object]:
    return {"function": {"name": name, "arguments": arguments}} | more


@pytest.mark.parametrize(
    "chunks",
    [
        [call_chunk(piece("a", "{}", index=0, id="1"), piece("b", "[]", index=1, id="2"))],
        [call_chunk(piece("a", "{}", index=0, id="1")), call_chunk(piece("b", "[]", index=0, id="2"))],
        [call_chunk(piece("a", "{", id="1")), call_chunk(piece(None, "}")), call_chunk(piece("b", "[]", id="2"))],
        [
            call_chunk(piece("a", "", index=0, id="1"), piece("b", "", index=1, id="2")),
            call_chunk(piece(None, "[", index=1), piece(None, "{", index=0)),
            call_chunk(piece(None, "}", index=0, id="1"), piece(None, "]", index=1, id="")),
        ],
    ],
)
def test_calls_are_joined_whatever_the_server_leaves_out(chunks: list[dict[str, object]]) -> None:
    assert joined(*chunks) == [("a", "{}"), ("b", "[]")]


@pytest.mark.parametrize("chunk", [{}, {"choices": None}, {"choices": []}, {"usage": None, "error": None}])
def test_a_chunk_without_choices_is_no_answer(chunk: dict[str, object]) -> None:
    answer = Answer()
    assert list(answer.add(chunk)) == []
    assert not answer.started
