"""The picker without a terminal: what matches, what is selected, and what would stand on the screen."""

import unicodedata
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.columns import columns_of
from hermes.cli.picker import Picker, Row, Shown, Tone, opened, plan, row_of, show
from hermes.sessions.model import ConversationId, Session, SessionId
from hermes.sessions.query import fold, tidy

NOW = 1_800_000_000.0
WORDS = (
    "auth",
    "Auth",
    "AUTH",
    "Zürich",
    "zurich",
    "Zu\u0308rich",
    "重构",
    "認証",
    "ＡＢＣ",
    "abc",
    "🎉",
    "q",
    "u",
    "",
)


def session(number: int, *, title: str | None = None, preview: str = "", source: str = "cli") -> Session:
    name = f"20250305_{number:06}_a1b2c3d4"
    return Session(
        id=SessionId(name),
        conversation=ConversationId(name),
        source=source,
        started_at=NOW - 60 * number,
        last_active=NOW - 60 * number,
        title=title,
        preview=preview,
    )


def picker(*sessions: Session) -> Picker:
    return opened([row_of(one) for one in sessions])


def names(rows: Sequence[Row]) -> list[str]:
    return [row.name for row in rows]


def lines(shown: Shown) -> list[str]:
    return ["".join(text for _, text in line) for line in shown.lines]


def look(one: Picker, *, width: int = 80, height: int = 24, words: Sequence[str] | None = ()) -> list[str]:
    return lines(show(one.scrolled(plan(height).table), width=width, height=height, now=NOW, words=words))


phrases = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
sessions = st.lists(
    st.tuples(st.none() | phrases, phrases, st.sampled_from(("cli", "telegram", "Café"))), max_size=12
).map(
    lambda facts: [
        session(number, title=title, preview=preview, source=source)
        for number, (title, preview, source) in enumerate(facts)
    ]
)
keys = st.lists(
    st.one_of(
        st.sampled_from(WORDS).map(lambda text: lambda one: one.with_more(text)),
        st.integers(-30, 30).map(lambda by: lambda one: one.moved(by)),
        st.just(Picker.with_less),
        st.just(Picker.unfiltered),
        st.integers(0, 8).map(lambda height: lambda one: one.scrolled(height)),
    ),
    max_size=20,
)
Key = Callable[[Picker], Picker]


def holds(one: Session, typed: str) -> bool:
    """The rule in other words: every word of the filter is in one of the four texts."""
    fields = [fold(tidy(text)) for text in (one.title or "", one.preview, one.source, one.id)]
    return all(any(word in field for field in fields) for word in fold(tidy(typed)).split())


# -- what matches ----------------------------------------------------------------------------------------------------


@given(sessions, phrases)
def test_what_is_found_is_exactly_what_matches_in_the_order_given(every: list[Session], typed: str) -> None:
    found = picker(*every).with_more(typed).found
    assert [row.id for row in found] == [one.id for one in every if holds(one, typed)]


@pytest.mark.parametrize(
    "typed", ["zurich", "ZÜRICH", "Zu\u0308rich", "zur  tele", "rain zurich", "weather", "000007", "telegram a1b2", " "]
)
def test_words_are_found_whatever_their_case_accents_order_and_field(typed: str) -> None:
    one = session(7, title="Zürich", preview="weather: Rain?", source="telegram")
    assert len(picker(session(1, title="other"), one).with_more(typed).found) == (2 if typed == " " else 1)


def test_a_word_never_runs_from_one_field_into_the_next() -> None:
    assert not picker(session(1, title="over", preview="time")).with_more("overtime").found


def test_what_is_typed_can_be_edited_and_what_is_pasted_stays_on_one_line_and_short() -> None:
    one = picker(session(1))
    assert one.with_more("ab").with_more("c").with_less().typed == "ab"
    assert one.with_less().typed == ""
    assert one.with_more("abc").unfiltered().typed == ""
    assert one.with_more("two\nlines\tand\x1b[2J\x07").typed == "two lines and[2J"
    assert len(one.with_more("x" * 5000).typed) == 200


# -- what is selected ------------------------------------------------------------------------------------------------


@given(sessions, keys)
def test_the_selection_is_always_one_of_the_found_rows(every: list[Session], pressed: list[Key]) -> None:
    one = picker(*every)
    for key in pressed:
        one = key(one)
        assert (one.selected is None) == (not one.found)
        assert one.selected is None or any(row is one.selected for row in one.found)


@given(sessions, keys, phrases)
def test_the_selection_stays_on_its_session_while_that_matches(
    every: list[Session], pressed: list[Key], typed: str
) -> None:
    before = picker(*every)
    for key in pressed:
        before = key(before)
    after = before.unfiltered().with_more(typed)
    if before.selected in after.found:
        assert after.selected is before.selected


@given(sessions, keys, st.integers(1, 8))
def test_the_selected_row_is_in_sight_and_no_place_is_wasted(
    every: list[Session], pressed: list[Key], height: int
) -> None:
    one = picker(*every)
    for key in pressed:
        one = key(one)
    one = one.scrolled(height)
    assert one.top <= one.at
    assert one.at < one.top + height
    assert 0 <= one.top <= max(len(one.found) - height, 0)


def test_a_typing_error_that_hides_everything_does_not_lose_the_selection() -> None:
    one = picker(*(session(number, title=f"talk {number}") for number in range(5))).moved(3)
    assert one.with_more("talkk").selected is None
    back = one.with_more("talkk").with_less().selected
    assert back is not None
    assert back.name == "talk 3"


def test_moving_ends_at_the_ends() -> None:
    one = picker(*(session(number, title=str(number)) for number in range(3)))
    assert [one.moved(by).at for by in (-1, 1, 2, 99)] == [0, 1, 2, 2]
    assert picker().moved(1).selected is None


def test_the_table_scrolls_only_when_the_selection_would_leave_it() -> None:
    one = picker(*(session(number) for number in range(20))).scrolled(5)
    tops = []
    for step in (4, 1, -4, -1, 99, -99):
        one = one.moved(step).scrolled(5)
        tops.append(one.top)
    assert tops == [0, 1, 1, 0, 15, 0]


def test_a_terminal_that_grows_shows_more_rows_and_no_empty_ones() -> None:
    one = picker(*(session(number) for number in range(20))).moved(99).scrolled(5)
    assert (one.top, one.scrolled(8).top, one.scrolled(50).top) == (15, 12, 0)


# -- what stands on the screen ---------------------------------------------------------------------------------------


def test_a_screen_has_the_filter_the_table_the_preview_and_a_hint() -> None:
    one = picker(
        session(2, title="refactoring auth", preview="Help me"),
        session(180, preview="What about auth in 重构?", source="telegram"),
        session(3, title="weather"),
    ).with_more("auth")
    shown = look(one.moved(1), height=12, words=["● What about auth?", "◆ Good."])
    assert [line.rstrip() for line in shown] == [
        "Find: auth                                                                2 of 3",
        "  Title                          Last Active Source     ID",
        "  refactoring auth               2m ago      cli        20250305_000002_a1b2c3d4",
        "› What about auth in 重构?       3h ago      telegram   20250305_000180_a1b2c3d4",
        *[""] * 3,
        "── 20250305_000180_a1b2c3d4 " + "─" * 52,
        "● What about auth?",
        "◆ Good.",
        "",
        "Enter resumes · Esc leaves · Ctrl-U empties the filter",
    ]


def test_a_small_terminal_keeps_names_times_and_a_bit_of_the_preview() -> None:
    one = picker(*(session(number, title=f"talk number {number} about much") for number in range(30))).moved(9)
    assert [line.rstrip() for line in look(one, width=40, height=10, words=["● one", "◆ two", "● three"])] == [
        "Find:                           30 of 30",
        "  Title                      Last Active",
        "  talk number 6 about much   6m ago",
        "  talk number 7 about much   7m ago",
        "  talk number 8 about much   8m ago",
        "› talk number 9 about much   9m ago",
        "── 20250305_000009_a1b2c3d4 ────────────",
        "◆ two",
        "● three",
        "Enter resumes · Esc leaves · Ctrl-U emp…",
    ]


def test_the_selected_row_is_reversed_and_what_is_secondary_is_dim() -> None:
    one = picker(session(1, title="first"), session(2, title="second")).moved(1)
    first, second = show(one, width=80, height=24, now=NOW, words=None).lines[2:4]
    assert [tone for tone, _ in first] == [Tone.PLAIN, Tone.DIM]
    assert [tone for tone, _ in second] == [Tone.CHOSEN]
    assert columns_of(second[0][1]) == 80, "the bar goes from edge to edge"


@given(
    st.lists(st.tuples(st.text(max_size=50), st.text(max_size=20)), max_size=8),
    st.text(max_size=60),
    st.none() | st.lists(st.text(max_size=90), max_size=12),
    st.tuples(st.integers(0, 140), st.integers(0, 40)),
    st.integers(0, 8),
)
def test_no_line_is_wider_and_there_are_no_more_than_the_terminal_has(
    facts: list[tuple[str, str]], typed: str, words: list[str] | None, size: tuple[int, int], down: int
) -> None:
    width, height = size
    every = [session(number, title=title, source=source) for number, (title, source) in enumerate(facts)]
    for one in (picker(*every), picker(*every).with_more(typed).moved(down)):
        shown = show(one.scrolled(plan(height).table), width=width, height=height, now=NOW, words=words)
        assert len(shown.lines) == (height if width else 0)
        assert max(map(columns_of, lines(shown)), default=0) <= width
        assert shown.cursor <= len("".join(lines(shown)[:1]))


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_nothing_that_others_wrote_can_steer_the_terminal(title: str, source: str, said: str) -> None:
    shown = "".join(look(picker(session(1, title=title, source=source)), words=[said]))
    assert not {unicodedata.category(one) for one in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("title", ["a\x1b[2Jb", "a\x00b", "a\nb", "a\u202eb", "a\u2028b", "a\x9b1mb"])
def test_a_title_of_controls_is_shown_without_them(title: str) -> None:
    (line,) = [line for line in look(picker(session(1, title=title))) if line.startswith("›")]
    assert line.startswith("› a")
    assert line.endswith("20250305_000001_a1b2c3d4")


@pytest.mark.parametrize("title", ["👩\u200d👩\u200d👧 " * 9, "重构认证" * 20, "❤\ufe0f👍🏽🇨🇳", "e\u0301" * 60, "—"])
def test_wide_joined_and_coloured_pictures_keep_the_columns_straight(title: str) -> None:
    (line,) = [line for line in look(picker(session(1, title=title, preview="x"))) if line.startswith("›")]
    before = line[: line.index("1m ago")]
    assert (
        sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in before) == 33
    )


def test_a_flag_is_shown_as_its_letters() -> None:
    assert any(line.startswith("› to CN ") for line in look(picker(session(1, title="to 🇨🇳"))))


def test_nothing_found_says_how_to_go_on_and_a_preview_says_that_it_is_on_its_way() -> None:
    one = picker(session(1, title="first"))
    assert "Nothing matches. Ctrl-U empties the filter." in look(one.with_more("zebra"))
    assert "…" in look(one, words=None)
    assert "No words are kept of it." in look(one, words=[])


def test_a_filter_longer_than_the_line_shows_its_end_where_the_cursor_is() -> None:
    one = picker(session(1)).with_more("the beginning of many words and their end")
    shown = show(one, width=30, height=10, now=NOW, words=None)
    first = lines(shown)[0]
    assert first[: shown.cursor].endswith("their end")
    assert shown.cursor < 30
