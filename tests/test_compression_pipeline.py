"""The three layers together: what is kept, what is said when it fails, and that rounds do not add up."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from hermes.compression.pipeline import (
    Budget,
    Compressed,
    Fitted,
    Pruned,
    Unchanged,
    compress,
    fit,
    plan,
)
from hermes.compression.policy import CompressionPolicy, OnFailure
from hermes.compression.prune import CLEARED, is_cleared
from hermes.compression.repair import validate_and_repair
from hermes.compression.summary import HEADINGS, PREAMBLE, Summarise, SummaryRequest, compose, prompt, sections
from hermes.compression.tokens import Meter, estimate_text
from hermes.errors import CompressionStuckError, ModelUnavailable
from hermes.sessions.model import Kind, Message, Role
from worlds.histories import (
    AT,
    assistant,
    broken,
    call,
    numbered,
    resolved,
    result,
    row,
    sound,
    talk,
    unhurried,
    user,
    work,
)

POLICY = CompressionPolicy()
NOTE = "interrupted, outcome unknown"


class Summariser:
    """A model for summaries that does as it should and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> str:
        self.asked.append(request)
        return compose({"Goal": "The goal.", "Progress": f"Round {len(self.asked)} of notes."})


def saying(text: str) -> Summarise:
    async def answer(_: SummaryRequest) -> str:
        return text

    return answer


def raising(error: BaseException) -> Summarise:
    async def fail(_: SummaryRequest) -> str:
        raise error

    return fail


async def echo(request: SummaryRequest) -> str:
    return prompt(request)


async def run(
    history: tuple[Message, ...],
    window: int,
    summarise: Summarise | None,
    policy: CompressionPolicy = POLICY,
    how: Callable[..., Awaitable[Fitted]] = fit,
) -> Fitted:
    return await how(history, budget=Budget(window=window), policy=policy, summarise=summarise, at=AT)


def check_promises(history: tuple[Message, ...], done: Fitted, policy: CompressionPolicy) -> tuple[Message, ...]:
    """What holds of every result; gives the history that follows."""
    before = validate_and_repair(history, NOTE)
    after = resolved(history, done)
    shown = validate_and_repair(after, NOTE)
    assert sound(shown)
    assert Meter().rows(shown) <= Meter().rows(before)
    requests = [one for one in before if one.role is Role.USER and one.kind is not Kind.SUMMARY]
    if requests:
        assert requests[-1] in shown
    assert sum(one.kind is Kind.SUMMARY for one in after) <= 1
    if isinstance(done, Compressed):
        kept = [entry.message_id for entry in (*done.head, *done.tail)]
        assert sorted([*kept, *done.covered]) == [one.id for one in sorted(history, key=lambda one: one.id)]
        assert [entry.message_id for entry in done.head] == [one.id for one in before if one.id][: len(done.head)]
        assert after[-1].kind is not Kind.SUMMARY
        assert Meter().rows(shown) == done.after
        words = {one.id: one.content for one in before if one.role is not Role.TOOL}
        assert all(words.get(one.id, one.content) == one.content for one in after if one.kind is not Kind.SUMMARY)
    return after


class TestAnyHistory:
    @unhurried
    @given(
        history=broken,
        window=st.integers(600, 60_000),
        summarise=st.sampled_from([Summariser(), None, saying(""), raising(ModelUnavailable("529"))]),
        policy=st.builds(
            CompressionPolicy,
            protect_first_n=st.integers(0, 5),
            protect_last_n=st.integers(0, 20),
            on_summary_failure=st.sampled_from(OnFailure),
            proactive_prune_tokens=st.sampled_from([0, 500]),
        ),
    )
    def test_a_result_is_sound_smaller_and_keeps_head_and_request(
        self, history: tuple[Message, ...], window: int, summarise: Summarise | None, policy: CompressionPolicy
    ) -> None:
        try:
            done = asyncio.run(run(history, window, summarise, policy))
        except CompressionStuckError:
            done = Unchanged(tokens=Meter().rows(validate_and_repair(history, NOTE)))
            event("stuck")
            assert done.tokens > window
        check_promises(history, done, policy)

    @settings(deadline=None, max_examples=30)
    @given(rounds=st.lists(broken, min_size=5, max_size=5), window=st.integers(2000, 60_000))
    def test_five_rounds_in_a_row_keep_every_promise(self, rounds: list[tuple[Message, ...]], window: int) -> None:
        history: tuple[Message, ...] = ()
        for news in rounds:
            first = max((one.id for one in history), default=0) + 1
            history += tuple(replace(one, id=first + at) for at, one in enumerate(news))
            try:
                done = asyncio.run(run(history, window, Summariser(), how=compress))
            except CompressionStuckError:
                return
            history = check_promises(history, done, POLICY)


class TestTheThreeLayers:
    async def test_below_the_threshold_nothing_happens(self) -> None:
        model = Summariser()
        done = await run(numbered(talk(40)), 100_000, model)
        assert isinstance(done, Unchanged)
        assert not model.asked

    async def test_clearing_old_results_is_tried_before_any_model(self) -> None:
        model = Summariser()
        history = numbered([*talk(2), *work(30, characters=8000), *talk(8)])
        done = await run(history, 200_000, model)
        assert isinstance(done, Pruned)
        assert not model.asked
        assert done.after < done.before / 2
        shown = resolved(history, done)
        assert [one.id for one in shown] == [one.id for one in history]
        assert any(is_cleared(one) for one in shown)
        assert shown[-20:] == history[-20:]

    async def test_what_cannot_be_cleared_is_summed_up_between_head_and_tail(self) -> None:
        model = Summariser()
        history = numbered(talk(300))
        done = await run(history, 60_000, model)
        assert isinstance(done, Compressed)
        assert [entry.message_id for entry in done.head] == [1, 2, 3]
        assert [entry.message_id for entry in done.tail] == list(range(601 - len(done.tail), 601))
        assert len(done.tail) >= POLICY.protect_last_n
        assert done.summary.kind is Kind.SUMMARY
        assert done.summary.content.startswith(PREAMBLE)
        assert done.summary.at == AT
        assert [one.id for request in model.asked for one in request.rows] == list(done.covered)
        assert done.after < POLICY.trigger_tokens(60_000)

    async def test_a_large_result_in_a_small_tail_gives_way_only_when_nothing_else_helps(self) -> None:
        history = numbered([user("read it"), assistant("", call("a")), result("a", "x" * 400_000)])
        done = await run(history, 60_000, Summariser())
        assert isinstance(done, Pruned)
        assert resolved(history, done)[-1].content.startswith(CLEARED)
        assert done.after < 1000

    async def test_a_large_result_in_the_head_is_cleared_and_stays_cleared(self) -> None:
        head = [user("read it"), assistant("", call("a")), result("a", "x" * 20_000)]
        history = numbered([*head, *talk(300)])
        first = resolved(history, await run(history, 60_000, Summariser()))
        assert [one.id for one in first[:3]] == [1, 2, 3]
        assert first[2].content.startswith(CLEARED)
        again = (*first, *(row(1000 + at, one) for at, one in enumerate(talk(300))))
        stored = (*history[:3], *again[3:])
        assert resolved(stored, await run(again, 60_000, Summariser()))[2] == first[2]

    async def test_a_summariser_reads_a_long_middle_in_pieces_and_updates_its_notes(self) -> None:
        model = Summariser()
        history = numbered(talk(300))
        budget = Budget(window=60_000, summariser_window=8000)
        done = await fit(history, budget=budget, policy=POLICY, summarise=model, at=AT, focus="the rest")
        assert isinstance(done, Compressed)
        assert len(model.asked) > 3
        assert [one.id for request in model.asked for one in request.rows] == list(done.covered)
        assert all(estimate_text(prompt(request)) < 8000 for request in model.asked)
        assert "Round 1 of notes" in model.asked[1].previous
        assert {request.focus for request in model.asked} == {"the rest"}

    async def test_work_of_many_rounds_for_one_request_can_be_compressed_under_way(self) -> None:
        history = numbered([user("port it all"), *work(200, characters=1200)])
        done = await run(history, 60_000, Summariser(), replace(POLICY, protect_last_n=6))
        shown = resolved(history, done)
        assert done.after < 30_000 if isinstance(done, Pruned | Compressed) else False
        assert user("port it all").content in [one.content for one in shown]
        assert shown[-6:] == history[-6:]

    async def test_clearing_ahead_of_time_waits_until_it_is_worth_a_cache(self) -> None:
        policy = replace(POLICY, proactive_prune_tokens=1000)
        few = numbered([*talk(300), *work(1, characters=9000), *talk(15)])
        many = numbered([*talk(20), *work(10, characters=9000), *talk(15)])
        small = numbered([*talk(20), *work(10, characters=7000), *talk(15)])
        assert isinstance(await run(few, 10**6, None, policy), Unchanged)
        assert isinstance(await run(many, 10**6, None, policy), Pruned)
        assert isinstance(await run(small, 10**6, None, policy), Unchanged)

    async def test_too_many_messages_are_compressed_however_small(self) -> None:
        history = numbered([user("k")] * 400)
        done = await run(history, 10**6, Summariser(), replace(POLICY, hygiene_hard_message_limit=400))
        assert isinstance(done, Compressed)
        assert len(resolved(history, done)) < 200


class TestRounds:
    async def test_a_second_compression_updates_the_notes_and_never_nests(self) -> None:
        model = Summariser()
        history = numbered(talk(200))
        first = await run(history, 60_000, model)
        again = (*resolved(history, first), *(row(1000 + at, one) for at, one in enumerate(talk(200))))
        second = await run(again, 60_000, model)
        assert isinstance(second, Compressed)
        assert second.summary.content.count(PREAMBLE) == 1
        assert second.head == first.head if isinstance(first, Compressed) else False
        assert 401 in second.covered
        assert model.asked[1].previous == compose({"Goal": "The goal.", "Progress": "Round 1 of notes."})
        assert all(one.kind is not Kind.SUMMARY for one in model.asked[1].rows)

    async def test_right_after_a_compression_there_is_nothing_to_do(self) -> None:
        model = Summariser()
        history = numbered(talk(200))
        shown = resolved(history, await run(history, 60_000, model))
        assert isinstance(await run(shown, 60_000, model), Unchanged)
        assert len(model.asked) == 1

    async def test_the_newest_words_of_a_person_follow_the_notes(self) -> None:
        history = numbered([*talk(200), user("forget that, do B"), *work(40, characters=100)])
        shown = resolved(history, await run(history, 60_000, Summariser(), how=compress))
        notes = next(at for at, one in enumerate(shown) if one.kind is Kind.SUMMARY)
        assert "forget that, do B" in [one.content for one in shown[notes + 1 :]]
        assert [one for one in shown if one.role is Role.USER][-1].content == "forget that, do B"
        assert shown[notes].role is Role.ASSISTANT

    async def test_a_request_never_begins_with_the_assistants_notes(self) -> None:
        history = numbered(talk(200))
        shown = resolved(history, await run(history, 60_000, Summariser(), replace(POLICY, protect_first_n=0)))
        assert (shown[0].kind, shown[0].role) == (Kind.SUMMARY, Role.USER)


FAULTS: dict[str, Summarise | None] = {
    "none": None,
    "error": raising(ModelUnavailable("the endpoint says 529")),
    "timeout": raising(TimeoutError()),
    "empty": saying(""),
    "blank": saying("  \n"),
    "refusal": saying("I'm sorry, but I can't help with that."),
    "half": saying("## Goal\nSome\n## Progress\nHal"),
    "too long": saying(compose({"Goal": "go " * 90_000, "Progress": "far"})),
    "headings translated": saying("## 目标\n登录\n## 进展\n完成"),
    "echo": echo,
}


@pytest.mark.parametrize("fault", FAULTS)
class TestFaultsOfTheSummariser:
    async def test_everything_is_kept_and_the_reason_given(self, fault: str) -> None:
        history = numbered(talk(300))
        done = await run(history, 60_000, FAULTS[fault])
        assert isinstance(done, Unchanged)
        assert done.trouble

    async def test_a_digest_takes_over_where_the_history_cannot_be_sent(self, fault: str) -> None:
        history = numbered(talk(300))
        await self.digested(history, 20_000, fault, POLICY)

    async def test_a_digest_takes_over_at_once_where_the_policy_says_drop(self, fault: str) -> None:
        history = numbered(talk(300))
        await self.digested(history, 60_000, fault, replace(POLICY, on_summary_failure=OnFailure.DROP))

    async def digested(self, history: tuple[Message, ...], window: int, fault: str, policy: CompressionPolicy) -> None:
        done = await run(history, window, FAULTS[fault], policy)
        assert isinstance(done, Compressed)
        assert done.trouble
        assert done.after <= window
        assert list(sections(done.summary.content)) == list(HEADINGS)
        assert [entry.message_id for entry in done.head] == [1, 2, 3]
        assert done.tail[-1].message_id == 600
        assert len(done.tail) >= policy.protect_last_n
        assert "question 2 why" in done.summary.content


class TestTheEnd:
    async def test_a_history_that_cannot_shrink_and_cannot_be_sent_is_stuck(self) -> None:
        history = numbered([user("读" * 50_000), assistant("ok"), user("and?")])
        with pytest.raises(CompressionStuckError) as stuck:
            await run(history, 40_000, Summariser())
        assert stuck.value.before > 40_000
        assert stuck.value.after >= 0.9 * stuck.value.before

    async def test_a_history_that_cannot_shrink_but_can_be_sent_stays_and_no_model_is_asked(self) -> None:
        model = Summariser()
        history = numbered([user("读" * 30_000), assistant("ok"), user("and?")])
        assert isinstance(await run(history, 40_000, model), Unchanged)
        assert not model.asked

    async def test_cancelling_and_bugs_go_through(self) -> None:
        history = numbered(talk(300))
        for error in (asyncio.CancelledError(), KeyError("a bug")):
            with pytest.raises(type(error)):
                await run(history, 60_000, raising(error))

    async def test_compression_can_be_asked_for_at_any_time(self) -> None:
        history = numbered(talk(60))
        assert isinstance(await run(history, 10**6, Summariser()), Unchanged)
        assert isinstance(await run(history, 10**6, Summariser(), how=compress), Compressed)

    async def test_a_plan_tells_beforehand_what_stays_and_the_most_it_will_cost(self) -> None:
        history = numbered(talk(300))
        planned = plan(history, budget=Budget(window=60_000), policy=POLICY)
        done = await run(history, 60_000, Summariser())
        assert isinstance(done, Compressed)
        assert done.before == planned.before
        assert done.after <= planned.after
        assert len(planned.cut.tail) == len(done.tail)

    async def test_system_prompt_tools_and_the_last_count_belong_to_the_measure(self) -> None:
        history = numbered(talk(100))
        plain = Meter().rows(history)
        for budget in (Budget(window=4 * plain, system_tokens=plain), Budget(window=3 * plain, meter=Meter(2.0))):
            done = await fit(history, budget=budget, policy=POLICY, summarise=Summariser(), at=AT)
            assert isinstance(done, Compressed)
            assert done.before == 2 * plain
