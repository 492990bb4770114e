"""The benchmarks measure what they say: the corpus is realistic and the same for all, and our side does its work."""

import asyncio
import random
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest
from benchmarks.corpus import conversation, conversations, rows, six, texts_of
from benchmarks.ours import Ours
from benchmarks.run import Row, figure


class TestCorpus:
    def test_the_same_seed_says_the_same(self) -> None:
        assert list(islice(conversations(7), 50)) == list(islice(conversations(7), 50))
        assert list(islice(conversations(7), 50)) != list(islice(conversations(8), 50))

    def test_it_is_as_mixed_as_it_says(self) -> None:
        said = texts_of("mix", 1, 5000)
        size = sum(len(one.text.encode()) for one in said) / len(said)
        chinese = sum(any("\u4e00" <= c <= "\u9fff" for c in one.text) for one in said) / len(said)
        assert 300 < size < 600
        assert 0.15 < chinese < 0.4
        assert {one.role for one in said} == {"user", "assistant", "tool"}
        assert any("```python" in one.text for one in said)

    def test_every_result_answers_the_call_before_it(self) -> None:
        for one in islice(conversations(3), 200):
            for before, after in pairwise(one):
                assert (before.call is None) == (after.answers is None)
                assert before.call is None or before.call[0] == after.answers

    def test_it_is_as_long_as_was_asked_for(self) -> None:
        assert sum(map(len, rows(5, 1234))) == 1234
        assert all(1900 <= len(one.text.encode()) <= 2600 for one in texts_of("2k", 1, 20))
        assert len(six(random.Random(1))) == 6
        assert len(conversation(random.Random(1), 3)) >= 6


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Ours]:
    with asyncio.Runner() as runner:
        side = Ours(runner)
        side.open(str(tmp_path))
        yield side
        runner.run(side.store.close())


class TestOurSide:
    def test_it_writes_reads_and_lists(self, ours: Ours) -> None:
        assert ours.append("mix", 1, 4, 40)["wall"] > 0
        assert ours.turn(1, 2, 4)["wall"] > 0
        ours.fill(2, 200)
        assert ours.late_appends(3, 100)["max"] > 0
        assert 300 < ours.size()["bytes"] < 20_000
        ours.crowd(4, 30)
        assert ours.list(1)["wall"] > 0
        assert ours.browse(1)["wall"] > 0
        ours.long(5, 1100)
        assert ours.load(1)["wall"] > 0

    def test_it_routes_and_converses(self, ours: Ours) -> None:
        ours.routes(20)
        assert ours.route(5)["wall"] > 0
        assert ours.gateway(1, 5, 20)["cpu"] > 0


class TestTable:
    def test_the_ratio_comes_first_and_figures_have_units(self) -> None:
        row = Row("1", "append", 0.0002, 0.001, "≥ 6×", "/s")
        assert row.cells == ("1", "append", "**5.0×**", "5,000 /s", "1,000 /s", "≥ 6×")
        assert [figure(0.0123, "ms"), figure(61_000_000, "MB"), figure(812.4, "B")] == ["12.30 ms", "61 MB", "812 B"]
