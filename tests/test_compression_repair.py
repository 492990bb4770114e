"""Whatever a history went through, a provider takes it after the repair."""

from hypothesis import given

from hermes.compression.repair import SYNTHETIC, validate_and_repair
from hermes.sessions.model import Message, Role
from worlds.histories import assistant, broken, call, numbered, result, sound, talk, unhurried, user, work

NOTE = "interrupted, outcome unknown"


@unhurried
@given(broken)
def test_every_history_becomes_sound_and_a_second_repair_changes_nothing(history: tuple[Message, ...]) -> None:
    repaired = validate_and_repair(history, NOTE)
    assert sound(repaired)
    assert validate_and_repair(repaired, NOTE) == repaired


@unhurried
@given(broken)
def test_no_words_of_people_or_of_the_assistant_are_lost_or_moved(history: tuple[Message, ...]) -> None:
    def words(rows: tuple[Message, ...]) -> list[tuple[int, str]]:
        return [(one.id, one.content) for one in rows if one.role is not Role.TOOL]

    assert words(validate_and_repair(history, NOTE)) == words(history)


@unhurried
@given(broken)
def test_results_are_only_dropped_or_made_never_changed(history: tuple[Message, ...]) -> None:
    stored = {one.id: one.content for one in history}
    for one in validate_and_repair(history, NOTE):
        assert one.content == (NOTE if one.id == SYNTHETIC else stored[one.id])


def test_a_sound_history_comes_back_equal() -> None:
    history = numbered([*talk(3), *work(4, characters=10), assistant("done")])
    assert validate_and_repair(history, NOTE) == history


def test_calls_of_a_turn_that_died_are_answered_with_the_note() -> None:
    history = numbered([user("go"), assistant("", call("a"), call("b"), call("c")), result("b", "B"), user("well?")])
    repaired = validate_and_repair(history, NOTE)
    assert [(one.role, one.tool_call_id, one.content) for one in repaired[2:]] == [
        (Role.TOOL, "a", NOTE),
        (Role.TOOL, "b", "B"),
        (Role.TOOL, "c", NOTE),
        (Role.USER, None, "well?"),
    ]


def test_late_and_unordered_results_move_behind_their_call() -> None:
    history = numbered(
        [assistant("", call("a"), call("b")), user("hurry"), result("b", "B"), assistant("hm"), result("a", "A")]
    )
    assert [one.content for one in validate_and_repair(history, NOTE)] == ["", "A", "B", "hurry", "hm"]


def test_orphans_and_second_results_are_dropped() -> None:
    history = numbered([result("gone", "?"), assistant("", call("a")), result("a", "first"), result("a", "second")])
    assert [one.content for one in validate_and_repair(history, NOTE)] == ["", "first"]


def test_a_result_is_never_given_to_a_later_call_with_the_same_id() -> None:
    history = numbered([result("call_0", "of a call that is gone"), assistant("", call("call_0"))])
    assert [one.content for one in validate_and_repair(history, NOTE)] == ["", NOTE]


def test_an_id_that_is_used_again_is_renamed_with_its_result() -> None:
    history = numbered([*[assistant("", call("call_0")), result("call_0", "one")] * 2])
    repaired = validate_and_repair(history, NOTE)
    assert [one.tool_calls[0].id for one in repaired if one.tool_calls] == ["call_0", "call_0_2"]
    assert [one.tool_call_id for one in repaired if one.role is Role.TOOL] == ["call_0", "call_0_2"]


def test_a_row_that_appears_twice_is_shown_once() -> None:
    history = numbered([user("go"), assistant("done")])
    assert validate_and_repair(history + history, NOTE) == history
