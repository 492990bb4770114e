"""The pure parts of the OpenAI-compatible API: decoding requests, and which words are still to be shown."""

import string
from collections.abc import Callable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.api_server import decode, place
from hermes.adapters.api_server.waiting import LONGEST_ANSWER, Waiter, remainder
from hermes.adapters.base import Lifetime, Origin, Outbound, Progress
from hermes.adapters.http import Problem
from hermes.text import repair

A = TypeVar("A")
T = TypeVar("T")

ORIGIN = Origin(platform="api_server", chat_id="c")
SESSION = "20270115_080000_abcdef01"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant"]), "content": st.text(st.characters())}
    ),
    max_size=6,
)


printable = st.text().map(lambda text: "".join(filter(str.isprintable, text)))


def tried(read: Callable[[A], T], given_: A) -> T | Problem:
    """What came of it: a value, or the refusal."""
    try:
        return read(given_)
    except Problem as problem:
        return problem


class TestDecoding:
    @given(st.dictionaries(st.sampled_from(["messages", "input", "stream", "n", "tools", "store"]), json_values))
    def test_any_json_is_decoded_or_refused_with_a_400(self, body: dict[str, object]) -> None:
        for got in (tried(decode.chat, body), tried(decode.responses, body)):
            if isinstance(got, Problem):
                assert got.status == 400
                assert got.param

    @given(messages, st.text(st.characters(), min_size=1).filter(lambda text: not text.isspace()))
    def test_no_word_is_lost_or_moved(self, history: list[dict[str, str]], question: str) -> None:
        said = [*history, {"role": "user", "content": question}]
        talk = decode.chat({"messages": said}).talk
        spoken = [repair(message["content"]) for message in said if message["role"] in {"user", "assistant"}]
        kept = [line.text for line in talk.carried] + [talk.text]
        assert "".join("".join(kept).split()) == "".join("".join(spoken).split())
        assert talk.text.endswith(repair(question))
        assert not talk.carried or {line.role for line in talk.carried} <= {"user", "assistant"}

    @given(printable, printable, printable)
    def test_a_response_id_carries_its_place_and_is_safe_in_a_url(self, session: str, chat: str, event: str) -> None:
        said = place.ResponseId(session=session, chat=chat, event=event)
        assert place.ResponseId.parse(str(said)) == said
        assert set(str(said)) <= set(string.ascii_letters + string.digits + "-_=")

    @given(st.text())
    def test_any_other_text_is_refused_as_a_response_id(self, text: str) -> None:
        got = tried(place.ResponseId.parse, text)
        if isinstance(got, place.ResponseId):
            assert (got.session + got.chat + got.event).isprintable()
        else:
            assert got.code == "previous_response_not_found"

    @given(st.dictionaries(st.sampled_from([place.SESSION_ID, place.SESSION_KEY, place.IDEMPOTENCY_KEY]), st.text()))
    def test_any_header_is_taken_or_refused(self, headers: dict[str, str]) -> None:
        who = tried(place.caller, headers)
        if isinstance(who, Problem):
            assert who.param in headers
            return
        where = place.place(who, None, fingerprint="f", fresh="call-1")
        assert (where.lifetime is Lifetime.CHAT) == (who.idempotency_key is not None)
        assert where.remembered == (who.session_id is not None or who.session_key is not None)


class TestWords:
    @given(st.text(), st.text())
    def test_the_final_text_is_always_seen_whole(self, said: str, final: str) -> None:
        assert (said + remainder(said, final)).strip().endswith(final.strip())

    @given(st.text(), st.integers(0, 50))
    def test_a_beginning_is_only_completed(self, final: str, shown: int) -> None:
        assert final[:shown] + remainder(final[:shown], final) == final

    @given(st.lists(st.text(min_size=1)), st.integers(0, 5))
    def test_whatever_the_client_reads_in_between_it_gets_every_word_once(self, pieces: list[str], every: int) -> None:
        waiter, got = Waiter(), ""
        for number, piece in enumerate(pieces):
            waiter.glimpse(Progress(origin=ORIGIN, answers="e", session=SESSION, text=piece))
            if every and number % every == 0:
                got += waiter.take()[0]
        out = Outbound(key="k", origin=ORIGIN, markdown="".join(pieces))
        waiter.finish(out)
        words, answer = waiter.take()
        assert (got + words, answer) == ("".join(pieces), out)

    def test_a_client_that_does_not_read_costs_no_more_than_one_answer(self) -> None:
        waiter = Waiter()
        for _ in range(20):
            waiter.glimpse(Progress(origin=ORIGIN, answers="e", session=SESSION, text="x" * (LONGEST_ANSWER // 10)))
        final = "x" * (2 * LONGEST_ANSWER)
        waiter.finish(Outbound(key="k", origin=ORIGIN, markdown=final))
        assert waiter.take()[0] == final
