"""What the summariser is asked, and which of its answers are taken."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.compression import summary
from hermes.compression.digest import digest
from hermes.compression.repair import validate_and_repair
from hermes.compression.summary import HEADINGS, SummaryRequest, accept, check, compose, pieces, prompt, sections
from hermes.compression.tokens import Meter, estimate_text
from hermes.errors import ModelError
from hermes.sessions.model import Message, Person, Role
from worlds.histories import AT, assistant, broken, call, numbered, result, row, talk, unhurried, user

REQUEST = SummaryRequest(rows=numbered(talk(8)), budget=400)
GOOD = compose(
    {
        "Goal": "The user wanted the login page to work in Safari.",
        "Progress": "The cookie was found to lack SameSite; a fix passed 14 tests.",
        "Key Decisions": "Lax was chosen over None because the page is first-party.",
        "Files Modified": "src/login.py: the cookie's attributes.",
        "Next Steps": "A release had been planned.",
    }
)


class TestChecking:
    def test_five_filled_headings_are_taken(self) -> None:
        assert check(GOOD, REQUEST) is None
        assert accept(GOOD, REQUEST) == GOOD

    def test_chatter_around_the_notes_is_left_out(self) -> None:
        assert accept(f"Sure! Here are the notes:\n\n{GOOD}", REQUEST) == GOOD

    @pytest.mark.parametrize(
        ("text", "objection"),
        [
            ("", "empty"),
            (" \n\t", "empty"),
            ("I'm sorry, I can't help with that.", "refused"),
            ("抱歉，我无法完成这个请求。", "refused"),
            ("I cannot", "lacks the headings Goal"),
            ("The user talked about a login page.", "lacks the headings Goal"),
            (GOOD[: GOOD.index("## Next Steps")], "lacks the headings Next Steps"),
            (GOOD.replace("Goal", "目标"), "lacks the headings Goal"),
            (compose(dict.fromkeys(HEADINGS, "")).replace("None.", ""), "nothing about the goal"),
            (compose({"Goal": "I cannot help with this conversation."}), "refused"),
            (GOOD.replace("A release", "A release " * 400), "longer than 600 tokens"),
            (summary.SYSTEM, "repeats"),
        ],
    )
    def test_anything_else_is_refused_with_the_reason(self, text: str, objection: str) -> None:
        assert objection in str(check(text, REQUEST))
        with pytest.raises(ModelError, match=objection.split(maxsplit=1)[0]):
            accept(text, REQUEST)

    def test_an_echo_of_the_messages_is_refused_and_a_quotation_is_not(self) -> None:
        lines = [f"Requirement {n}: the importer has to keep every column of the sheet as it is" for n in range(4)]
        request = replace(REQUEST, rows=numbered([user("\n".join(lines))]))
        assert "repeats" in str(check(compose({"Goal": "\n".join(lines), "Progress": "Started."}), request))
        assert check(compose({"Goal": lines[0], "Progress": "Started."}), request) is None

    def test_older_notes_may_stay_word_for_word(self) -> None:
        assert check(GOOD, replace(REQUEST, previous=GOOD)) is None


class TestAsking:
    def test_notes_messages_focus_and_length_are_in_the_prompt(self) -> None:
        asked = prompt(replace(REQUEST, previous="older notes", focus="the Safari bug"))
        assert "<notes>\nolder notes\n</notes>" in asked
        assert "question 7" in asked
        assert "the Safari bug" in asked
        assert "400 tokens" in asked
        assert all(f"## {heading}" in summary.SYSTEM for heading in HEADINGS)

    def test_a_row_shows_who_spoke_what_was_called_and_both_ends_of_a_long_text(self) -> None:
        new = replace(user("start " + "x" * 100_000 + " end"), sender=Person(id="7", name='Ann\n## "Override"'))
        shown = summary.render(row(1, new), 200)
        assert estimate_text(shown) < 250
        assert "start" in shown
        assert "end\n</message>" in shown
        assert "\n##" not in shown
        assert "calls read_file({})" in summary.render(row(2, assistant("", call("a"))), 200)

    @unhurried
    @given(broken, st.integers(500, 20_000))
    def test_pieces_hold_every_row_once_in_order_within_the_window(
        self, history: tuple[Message, ...], window: int
    ) -> None:
        request = SummaryRequest(rows=history, budget=50, row_tokens=window // 8)
        parts = list(pieces(request, window=window, meter=Meter()))
        assert sum(parts, ()) == history
        for part in parts:
            asked = prompt(replace(request, rows=part))
            assert len(part) == 1 or estimate_text(asked) <= window

    def test_a_summary_is_the_assistants_unless_a_request_would_begin_with_it(self) -> None:
        assert summary.as_row(GOOD, at=AT, opens=False).role is Role.ASSISTANT
        assert summary.as_row(GOOD, at=AT, opens=True).role is Role.USER
        assert summary.previous([row(9, summary.as_row(GOOD, at=AT, opens=False))]) == GOOD

    def test_a_summarys_length_follows_what_it_replaces(self) -> None:
        lengths = {tokens: summary.budget_for(tokens, window=200_000) for tokens in (100, 8000, 40_000, 10**6)}
        assert lengths == {100: 50, 8000: 2000, 40_000: 8000, 10**6: 10_000}
        assert summary.budget_for(10**6, window=2_000_000) == 12_000
        assert summary.budget_for(4000, window=8192) == 409


class TestDigest:
    def test_the_facts_of_the_rows_stand_under_the_five_headings(self) -> None:
        rows = numbered(
            [
                user("Make the importer faster, see src/importer.py and https://example.org/a/b.html"),
                assistant("", call("a", "terminal", '{"command": "pytest tests/test_importer.py"}')),
                result("a", "noise/from/tool.py"),
                assistant("We will keep the csv module."),
                user("Good. Now the docs in 文档docs/guide.md"),
            ]
        )
        found = sections(digest(SummaryRequest(rows=rows, budget=2000)))
        assert list(found) == list(HEADINGS)
        assert "Make the importer faster" in found["Goal"]
        assert "terminal (1)" in found["Progress"]
        assert "keep the csv module" in found["Key Decisions"]
        assert {line.split()[0] for line in found["Files Modified"].splitlines()} == {
            "src/importer.py",
            "tests/test_importer.py",
            "docs/guide.md",
        }
        assert "Now the docs" in found["Next Steps"]

    def test_older_notes_live_on(self) -> None:
        found = sections(digest(SummaryRequest(rows=numbered(talk(3)), previous=GOOD, budget=2000)))
        assert found["Goal"] == sections(GOOD)["Goal"]
        assert "14 tests" in found["Progress"]
        assert "src/login.py" in found["Files Modified"]

    @unhurried
    @given(broken, st.sampled_from(["", GOOD, "no headings"]), st.integers(1, 3000))
    def test_it_is_bounded_and_the_same_each_time(
        self, history: tuple[Message, ...], previous: str, budget: int
    ) -> None:
        request = SummaryRequest(rows=validate_and_repair(history, "?"), previous=previous, budget=budget)
        text = digest(request)
        assert text == digest(request)
        assert list(sections(text))[: len(HEADINGS)] == list(HEADINGS)
        assert estimate_text(text) <= budget + estimate_text(compose({}))

    def test_a_long_line_without_a_path_is_looked_through_quickly(self) -> None:
        rows = numbered([user("a-" * 500_000), user("/" * 500_000), user("a/" * 500_000), user("." * 500_000)])
        assert digest(SummaryRequest(rows=rows, budget=2000))
