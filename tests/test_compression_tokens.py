"""Estimates: cheap, close, and never thinner than the text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from hermes.compression.tokens import Meter, clip, estimate_row, estimate_text, excerpt
from worlds.histories import assistant, call, numbered, talk, texts, unhurried, user


def test_a_chinese_character_is_a_token_and_four_latin_ones_are() -> None:
    assert estimate_text("压缩会话" * 100) == 400
    assert estimate_text("word" * 100) == 100
    assert estimate_text("") == 0


@unhurried
@given(texts, texts)
def test_a_longer_text_never_costs_less(one: str, other: str) -> None:
    assert estimate_text(one + other) >= max(estimate_text(one), estimate_text(other))
    assert estimate_text(one + other) <= estimate_text(one) + estimate_text(other)


def test_arguments_of_calls_count_and_so_does_each_row() -> None:
    plain = estimate_row(assistant("ok"))
    assert plain > estimate_text("ok")
    assert estimate_row(assistant("ok", call("a", arguments=json.dumps({"text": "x" * 4000})))) > plain + 1000


@unhurried
@given(texts, st.integers(0, 3000))
def test_a_clipped_text_is_a_start_that_keeps_its_bound(text: str, tokens: int) -> None:
    clipped = clip(text, tokens)
    assert text.startswith(clipped)
    assert estimate_text(clipped) <= tokens
    if estimate_text(text) <= tokens:
        assert clipped == text


@unhurried
@given(texts, st.integers(20, 3000))
def test_an_excerpt_keeps_both_ends_within_its_bound(text: str, tokens: int) -> None:
    cut = excerpt(text, tokens)
    assert estimate_text(cut) <= tokens + 2
    assert cut[:1] == text[:1]
    assert cut[-1:] == text[-1:]


def test_a_calibrated_meter_gives_the_providers_count_for_the_same_prompt() -> None:
    rows = talk(50)
    estimated = Meter().rows(rows)
    assert abs(Meter.calibrated(estimated=estimated, counted=2 * estimated).rows(rows) - 2 * estimated) <= 1


def test_a_calibration_by_another_prompt_is_kept_within_reason() -> None:
    assert Meter.calibrated(estimated=100, counted=23_400).ratio == 4
    assert Meter.calibrated(estimated=23_400, counted=100).ratio == 0.25
    assert Meter.calibrated(estimated=0, counted=100) == Meter()
    assert Meter.calibrated(estimated=100, counted=0) == Meter()


def test_the_providers_count_stands_and_only_newer_rows_are_estimated() -> None:
    history = numbered([*talk(10), user("new " * 100)])
    assert Meter().grown(58_000, through=20, history=history) == 58_000 + estimate_row(history[-1])
    assert Meter().grown(58_000, through=21, history=history) == 58_000
