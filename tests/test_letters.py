"""Which events make a turn, and what they add to the conversation. Pure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import Carried, ChatKind, Inbound, Origin
from hermes.gateway import wire
from hermes.gateway.letters import QUOTE_CAP, Letter, batch, joinable, notice, opened, reply, words
from hermes.sessions.model import InboxRow, Kind, Role, SessionKey

DIRECT = Origin(platform="loopback", chat_id="c1", user_id="u1", user_name="Ada")


def letter(text: str = "hi", *, number: int = 1, **facts: object) -> Letter:
    """An event that waits."""
    inbound = replace(Inbound(event_id=f"m:{number}", origin=DIRECT, text=text, at=5.0), **facts)  # type: ignore[arg-type]
    row = InboxRow(
        id=number,
        platform=inbound.origin.platform,
        chat_id=inbound.origin.chat_id,
        event_id=inbound.event_id,
        key=SessionKey("k"),
        origin=wire.origin_to_json(inbound.origin),
        payload=wire.inbound_to_json(inbound),
        received_at=6.0,
    )
    return Letter(row=row, inbound=inbound)


def test_rows_open_as_the_events_that_they_hold() -> None:
    one, two = letter("one"), letter("two", number=2)
    assert opened([one.row, two.row]) == [one, two]


@pytest.mark.parametrize(
    ("scene", "first"),
    [
        ("talk talk talk", 3),
        ("talk command talk", 1),
        ("talk talk alone talk", 2),
        ("alone talk", 1),
        ("alone alone", 1),
    ],
)
def test_a_turn_takes_what_was_said_in_a_row(scene: str, first: int) -> None:
    made = {"talk": letter(), "command": letter("/title x"), "alone": letter(alone=True)}
    letters = [made[kind] for kind in scene.split()]
    assert list(batch(letters)) == letters[:first]


def test_what_joins_a_running_turn_stops_at_the_first_that_must_not() -> None:
    asked = letter("asked").inbound
    assert joinable([letter("/new"), letter()], asked) == ()
    assert joinable([letter(alone=True), letter()], asked) == ()
    assert joinable([], asked) == ()
    assert len(joinable([letter(), letter("/etc/hosts is a file"), letter("/new")], asked)) == 2


def test_another_persons_words_and_another_conversations_get_a_turn_of_their_own() -> None:
    guest = letter(origin=replace(DIRECT, user_id="u2"))
    elsewhere = letter(continues="20270101_120000_abcdef01")
    for other in (guest, elsewhere):
        assert joinable([other], letter().inbound) == ()
        assert list(batch([letter(), other, letter()])) == [letter()]


def test_what_can_be_read_is_not_held_up_by_what_cannot() -> None:
    broken = replace(letter("x", number=2).row, payload="{}")
    assert opened([letter("one").row, broken, letter("three", number=3).row]) == [letter("one")]
    with pytest.raises(ValueError, match=r"\S"):
        opened([broken, letter("one").row])


@given(st.lists(st.sampled_from(["talk", "/new", "alone"]), min_size=1, max_size=8))
def test_a_batch_is_never_empty_and_always_a_beginning(scene: list[str]) -> None:
    letters = [letter(kind, number=n, alone=kind == "alone") for n, kind in enumerate(scene)]
    if letters[0].command is None:
        taken = list(batch(letters))
        assert taken
        assert taken == letters[: len(taken)]
        assert not any(one.command for one in taken)
        assert len(taken) == 1 or not any(one.inbound.alone for one in taken)


def test_a_message_becomes_a_row_with_its_sender() -> None:
    (row,) = words(letter("hello"))
    assert (row.role, row.kind, row.content, row.at) == (Role.USER, Kind.TALK, "hello", 5.0)
    assert row.sender is not None
    assert (row.sender.id, row.sender.name) == ("u1", "Ada")
    (nobody,) = words(letter(origin=replace(DIRECT, user_id=None)))
    assert nobody.sender is None


def test_history_that_a_caller_brings_comes_before_and_is_marked() -> None:
    carried = (Carried(role="user", text="old"), Carried(role="assistant", text="older"))
    rows = words(letter("new", carried=carried))
    assert [(row.role, row.kind, row.content) for row in rows] == [
        (Role.USER, Kind.CARRIED, "old"),
        (Role.ASSISTANT, Kind.CARRIED, "older"),
        (Role.USER, Kind.TALK, "new"),
    ]


@given(st.text(max_size=QUOTE_CAP * 2))
def test_a_quote_stays_one_bounded_marked_line_whatever_is_in_it(quoted: str) -> None:
    (row,) = words(letter("and?", quoted=quoted))
    if not quoted:
        assert row.content == "and?"
        return
    quote, blank, said = row.content.split("\n")
    assert quote.startswith("> ")
    assert len(quote) <= QUOTE_CAP + 2
    assert (blank, said) == ("", "and?")


class TestReplies:
    def test_they_go_to_the_stored_origin_of_the_question(self) -> None:
        asked = letter()
        duty = reply(asked, "hello", key="k", at=9.0)
        assert (duty.platform, duty.chat_id, duty.origin) == ("loopback", "c1", asked.row.origin)
        assert (duty.key, duty.markdown, duty.at, duty.answers) == ("k", "hello", 9.0, "m:1")

    @pytest.mark.parametrize(
        ("kind", "event", "reply_to"),
        [
            (ChatKind.GROUP, "m:7", "7"),
            (ChatKind.CHANNEL, "m:7", "7"),
            (ChatKind.DIRECT, "m:7", None),
            (ChatKind.GROUP, "cb:7", None),
        ],
    )
    def test_in_rooms_they_refer_to_the_message_that_they_answer(
        self, kind: ChatKind, event: str, reply_to: str | None
    ) -> None:
        asked = letter(origin=replace(DIRECT, kind=kind), event_id=event)
        assert reply(asked, "hello", key="k", at=9.0).reply_to == reply_to

    def test_what_belongs_to_one_process_stays_with_it(self) -> None:
        row = replace(letter().row, node="gateway-1")
        assert notice(row, "hello", key="k", at=9.0).node == "gateway-1"
