"""What people type into a search: read the same way by the full-text index and by a scan, and never an error."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.sessions import dbapi
from hermes.sessions.cjk import search_text
from hermes.sessions.dbapi import Connection
from hermes.sessions.query import MAX_TOKENS, parse
from hermes.sessions.snippet import WIDTH, snippet

ODD = [
    *("C++", "it's", "gateway/run.py", "user@host", "50%", "#42", "foo-bar", "AND", "a OR", "NEAR(", "NOT NOT", "(x"),
    *('unbalanced "quote', '""', "*", "-x", "^a", "a:b", "{a b}", "+", "a*b", '"a b"*', "()", "(((((((((((((a", ")a("),
]

syntax = st.lists(
    st.sampled_from([*ODD, "AND", "OR", "NOT", "(", ")", '"', "*", "部署", "字", "é", "word", "\x00", "\ud83d", "👩‍🚀"])
    | st.text(),
    max_size=12,
).map(" ".join)
han = st.text(st.sampled_from("修改服务端部署重启"), min_size=1, max_size=6)
words = st.sampled_from(["youer", "api", "docker", "run"])


@pytest.fixture(scope="module")
def index() -> Iterator[Connection]:
    """A full-text index of one row, as the store keeps it."""
    with closing(dbapi.connect(":memory:")) as connection:
        connection.execute(
            """CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = "unicode61 remove_diacritics 2")"""
        )
        yield connection


def found(index: Connection, query: str, content: str) -> bool:
    """Whether the index finds `content` by `query`."""
    expression = parse(query)
    assert expression is not None
    index.execute("DELETE FROM t")
    index.execute("INSERT INTO t VALUES (?)", (search_text(content) or content,))
    return index.execute("SELECT 1 FROM t WHERE t MATCH ?", (expression.match,)).fetchone() is not None


def holds(query: str, content: str) -> bool:
    """Whether a scan finds `content` by `query`."""
    expression = parse(query)
    return expression is not None and expression.holds(content)


MEANINGS = [
    ("docker deployment", "a deployment with Docker", "docker alone"),
    ('"exact phrase"', "an exact  phrase here", "a phrase that is exact"),
    ("docker OR kubernetes", "kubernetes it is", "neither"),
    ("python NOT java", "python here", "python and java"),
    ("NOT java python", "python here", "python and java"),
    ("deploy*", "deployment", "redo"),
    ('"to dep"*', "go to deployment", "dep to"),
    ("(docker OR podman) AND compose", "podman compose", "docker swarm"),
    ("a OR b c", "a", "b"),
    ("naive", "so NAÏVE", "native"),
    ("NOT java", "java", "python"),
    ("and", "this and that", "this"),
    ("AND", "this and that", "this"),
    ("foo-bar", "the foo-bar", "bar foo"),
    ("gateway/run.py", "see gateway/run.py:12", "run the gateway"),
    ("youer", "修改youer服务端", "修改服务端"),
    ("youer 服务端 修改", "修改youer服务端", "修改youer"),
    ("悬空引用", "重跑gen-itgc后50条悬空引用", "悬空的引用"),
    ("itgc", "重跑gen-itgc后50条悬空引用", "重跑"),
    ("用", "悬空引用", "悬空"),
    ("改youer", "修改youer服务端", "修youer改"),
    ("youer服", "修改youer服务端", "服youer"),
    ("部署*", "重新部署了", "部"),
    ("“上次讨论”", "我们上次讨论过", "讨论上次"),
    ("服务端，重启", "重启服务端", "服务端"),
    ("ＡＰＩ接口", "这个API接口", "接口"),
    ("ガギ", "ｶﾞｷﾞ", "カキ"),
    ("한글", "\u1112\u1161\u11ab\u1100\u1173\u11af", "한 글"),
]


@pytest.mark.parametrize(("query", "match", "other"), MEANINGS)
def test_a_query_means_the_same_to_the_index_and_to_a_scan(
    index: Connection, query: str, match: str, other: str
) -> None:
    assert found(index, query, match)
    assert not found(index, query, other)
    assert holds(query, match)
    assert not holds(query, other)


@pytest.mark.parametrize("query", ["", " ", "*", "()", '""', "\x00", "，。", "(", "（）"])
def test_a_query_without_anything_to_search_for_is_none(query: str) -> None:
    assert parse(query) is None


@pytest.mark.parametrize("query", ["->", "👩‍🚀", "%", "++"])
def test_punctuation_alone_is_for_the_scan_only(query: str) -> None:
    expression = parse(query)
    assert expression is not None
    assert expression.match is None
    assert expression.holds(f"before {query} after")
    assert not expression.holds("before after")


def test_punctuation_beside_words_asks_for_nothing_more(index: Connection) -> None:
    assert found(index, "deploy -> now", "deploy it now")


@settings(deadline=None, max_examples=2_000)
@given(syntax)
@example("(" * 10_000 + "a" + ")" * 10_000)
@example("NOT " * 5_000 + "a")
@example('a "' * 3_000)
@example("x" * 10_000)
@example("a OR (b " * 40)
def test_nothing_that_is_typed_raises_and_every_expression_is_one_for_fts5(index: Connection, text: str) -> None:
    read_and_match(index, text)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(deadline=None, max_examples=50_000)
@given(syntax | st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Po", "Sk"])))
def test_fifty_thousand_queries_raise_nothing(index: Connection, text: str) -> None:
    read_and_match(index, text)


def read_and_match(index: Connection, text: str) -> None:
    """Everything that a search does with what was typed."""
    expression = parse(text)
    if expression is not None:
        expression.holds(text)
        snippet(text, expression)
        assert len(expression.terms) <= MAX_TOKENS
        if expression.match is not None:
            index.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression.match,)).fetchone()


@pytest.mark.parametrize("query", [odd for odd in ODD if any(map(str.isalnum, odd))])
def test_odd_queries_find_the_text_they_quote(index: Connection, query: str) -> None:
    assert found(index, query, f"before {query} after")


@settings(deadline=None)
@given(before=han, term=han, after=han, word=words)
def test_every_piece_of_a_run_is_found_wherever_it_stands(
    index: Connection, before: str, term: str, after: str, word: str
) -> None:
    for content in (term, before + term + after, f"{word}{term}{after}", f"{before}{term}{word}", f"{before},{term}!"):
        assert found(index, term, content)
    assert found(index, word, f"{before}{word}{after}")
    assert found(index, f"{term}{word}{after}", f"{before}{term}{word}{after}{before}")


@settings(deadline=None)
@given(term=han, runs=st.lists(han, min_size=1, max_size=4))
def test_only_what_stands_together_is_found(index: Connection, term: str, runs: list[str]) -> None:
    assert found(index, term, ",".join(runs)) == any(term in run for run in runs)


@given(st.lists(st.sampled_from(["docker", "run", "部署", '"docker run"', "OR", "(", ")", "d*", "NOT"]), min_size=1))
@example(["NOT", "run"])
def test_the_scan_finds_whatever_the_index_finds(index: Connection, pieces: list[str]) -> None:
    query = " ".join(piece for piece in pieces if piece != "NOT")
    if parse(query) is not None:
        for content in ("docker run", "Run Docker", "部署docker", "重新部署", "d"):
            assert not found(index, query, content) or holds(query, content)


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_text_that_the_index_can_read_itself_is_not_kept_twice(text: str) -> None:
    assert search_text(text) is None


def test_runs_become_pairs_and_their_last_character() -> None:
    assert (search_text("修改youer服务端") or "").split() == ["修改", "改", "youer", "服务", "务端", "端"]


SNIPPETS = [
    ("run", "prune the Run", "prune the >>>Run<<<"),
    ("C++", "in C++ or Docker", "in >>>C++<<< or Docker"),
    ("foo-bar", "a foo bar", "a >>>foo bar<<<"),
    ("naive", "so NAÏVE", "so >>>NAÏVE<<<"),
    ("youer 服务端", "修改youer服务端", "修改>>>youer<<<>>>服务端<<<"),
    ("une", "prune", "pr>>>une<<<"),
    ("deploy*", "redeploy deployment", "redeploy >>>deploy<<<ment"),
    ("a NOT b", "a b", ">>>a<<< b"),
    ("zzz", "one\n\n two", "one two"),
]


@pytest.mark.parametrize(("query", "content", "expected"), SNIPPETS)
def test_a_snippet_marks_what_was_looked_for(query: str, content: str, expected: str) -> None:
    expression = parse(query)
    assert expression is not None
    assert snippet(content, expression) == expected


@given(before=st.text(max_size=400), after=st.text(max_size=400))
def test_a_snippet_is_short_and_holds_the_match(before: str, after: str) -> None:
    expression = parse("needle")
    assert expression is not None
    shown = snippet(f"{before} needle {after}", expression)
    assert ">>>needle<<<" in shown
    assert len(shown.replace(">>>", "").replace("<<<", "")) <= WIDTH + 2
    assert "\n" not in shown
