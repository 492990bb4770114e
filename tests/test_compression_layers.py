"""Clearing old results, finding the cuts, and the policy that says when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.compression.boundaries import Cut, cut
from hermes.compression.policy import CompressionPolicy
from hermes.compression.prune import CLEARED, clear, is_cleared, view
from hermes.compression.repair import validate_and_repair
from hermes.compression.tokens import Meter
from hermes.sessions.model import Kind, Message, NewMessage, Role, ViewEntry
from worlds.histories import AT, assistant, broken, call, numbered, result, sound, talk, unhurried, user, work


class TestClearing:
    def test_a_placeholder_names_the_tool_the_size_and_the_message(self) -> None:
        history = numbered([assistant("", call("a")), result("a", "x" * 5000)])
        assert clear(history)[1].content == f"{CLEARED} read_file, 5000 characters, kept as message 2"

    def test_small_spared_and_cleared_results_stay_and_so_do_words(self) -> None:
        history = numbered([user("u" * 9000), *work(1, characters=150), *work(1, characters=900, start=1)])
        assert clear(history, spare={6, 7}) == history
        once = clear(history)
        assert [is_cleared(one) for one in once] == [False, False, False, False, False, True, True]
        assert clear(once) == once

    def test_a_view_keeps_the_placeholder_of_a_row_that_was_cleared_before(self) -> None:
        cleared = clear(numbered([assistant("", call("a")), result("a", "x" * 5000)]))
        assert view(cleared) == (ViewEntry(message_id=1), ViewEntry(message_id=2, replacement=cleared[1].content))

    def test_rows_that_stand_in_no_store_are_in_no_view(self) -> None:
        repaired = validate_and_repair(numbered([assistant("", call("a"))]), "unknown " * 100)
        assert [entry.message_id for entry in view(clear(repaired))] == [1]


def divide(history: tuple[Message, ...], *, first: int = 3, last: int = 4, tail_tokens: int = 0) -> Cut:
    return cut(history, first=first, last=last, tail_tokens=tail_tokens, meter=Meter())


class TestBoundaries:
    @unhurried
    @given(broken, st.integers(0, 8), st.integers(0, 12), st.integers(0, 5000))
    def test_every_row_is_in_one_part_and_each_part_is_sound(
        self, history: tuple[Message, ...], first: int, last: int, tail_tokens: int
    ) -> None:
        rows = validate_and_repair(history, "unknown")
        found = divide(rows, first=first, last=last, tail_tokens=tail_tokens)
        assert sorted(map(id, [*found.head, *found.middle, *found.tail])) == sorted(map(id, rows))
        assert all(sound(part) for part in (found.head, found.middle, found.tail))
        assert rows[: len(found.head)] == found.head

    @unhurried
    @given(broken, st.integers(0, 8), st.integers(0, 12))
    def test_the_last_request_and_what_it_answers_are_in_the_tail(
        self, history: tuple[Message, ...], first: int, last: int
    ) -> None:
        rows = validate_and_repair(history, "unknown")
        tail = divide(rows, first=first, last=last).tail
        requests = [at for at, one in enumerate(rows) if one.role is Role.USER]
        if requests:
            assert rows[requests[-1]] in tail
            answers = [one for one in rows[: requests[-1]] if one.role is Role.ASSISTANT]
            assert not answers or answers[-1] in tail

    @unhurried
    @given(st.integers(0, 40))
    def test_a_cut_at_any_row_keeps_parallel_calls_whole(self, last: int) -> None:
        found = divide(numbered([user("go"), *work(12, characters=10)]), last=last)
        assert sound(found.middle)
        assert sound(found.tail)
        assert len(found.tail) >= last or not found.middle

    def test_options_stay_beside_the_choice_however_much_work_follows(self) -> None:
        rows = [*talk(10), assistant("A, B or C?"), user("B"), *work(30, characters=4000)]
        found = divide(numbered(rows))
        assert [one.content for one in found.tail[:2]] == ["A, B or C?", "B"]
        assert found.tail[2].id > 100
        assert any(one.role is Role.TOOL for one in found.middle)

    def test_a_tail_budget_keeps_more_than_the_least(self) -> None:
        history = numbered(talk(40))
        size = Meter().rows(history[-10:])
        assert divide(history, tail_tokens=size).tail == history[-10:]

    def test_an_earlier_summary_is_always_in_the_middle(self) -> None:
        notes = NewMessage(role=Role.ASSISTANT, kind=Kind.SUMMARY, content="notes", at=AT)
        history = numbered([*talk(1), notes, *talk(2)])
        found = divide(history, first=20, last=20)
        assert found.head == history[:2]
        assert [one.content for one in found.summaries] == ["notes"]
        assert not found.news
        assert found.tail == history[3:]


class TestPolicy:
    def test_the_lower_threshold_counts(self) -> None:
        assert CompressionPolicy().trigger_tokens(200_000) == 100_000
        assert CompressionPolicy(threshold_tokens=64_000).trigger_tokens(200_000) == 64_000
        assert CompressionPolicy(threshold_tokens=640_000).trigger_tokens(200_000) == 100_000

    def test_it_is_due_at_the_threshold_and_not_before(self) -> None:
        policy = CompressionPolicy()
        assert not policy.due(49_999, 100_000)
        assert policy.due(50_000, 100_000)
        assert not CompressionPolicy(enabled=False).due(99_000, 100_000)

    def test_too_many_messages_make_it_due_and_the_reading_says_so(self) -> None:
        policy = CompressionPolicy(hygiene_hard_message_limit=400)
        assert policy.due(34_000, 100_000, messages=400)
        nearest = policy.triggers(34_000, 100_000, messages=396)[0]
        assert (nearest.key, nearest.share) == ("hygiene_hard_message_limit", 0.99)
        assert not CompressionPolicy(hygiene_hard_message_limit=0).due(1, 100_000, messages=10_000)

    def test_the_gateways_own_threshold_counts_where_the_other_is_higher(self) -> None:
        assert CompressionPolicy(threshold=1.0).due(85_000, 100_000)

    def test_clearing_ahead_of_time_is_off_unless_asked_for(self) -> None:
        assert not CompressionPolicy().prune_due(10**6)
        assert CompressionPolicy(proactive_prune_tokens=1000).prune_due(1000)
        assert not CompressionPolicy(proactive_prune_tokens=1000).prune_due(999)

    @pytest.mark.parametrize("wrong", [{"threshold": 0.0}, {"target_ratio": 1.5}, {"protect_last_n": -1}])
    def test_a_setting_outside_its_range_is_refused_by_name(self, wrong: dict[str, float]) -> None:
        with pytest.raises(ValueError, match=f"compression.{next(iter(wrong))}"):
            CompressionPolicy(**wrong)  # type: ignore[arg-type]
