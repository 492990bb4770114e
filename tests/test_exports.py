"""Exports: what each format holds, that nothing secret or foreign gets through, and that an import gives it back."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from contracts.store.facts import T0, tell, texts
from hermes.errors import SessionNotFound, UserError
from hermes.redact import Redactor
from hermes.sessions import records, selecting
from hermes.sessions.database import open_readable, snapshot
from hermes.sessions.exports import document as documents
from hermes.sessions.exports import files, html, manifest, markdown, prompts, redaction, trace
from hermes.sessions.exports.document import Document, Reading
from hermes.sessions.filters import Filter, Lineage
from hermes.sessions.imports import jsonl
from hermes.sessions.model import OWNER, Message, Query, Role, Session, SessionId
from hermes.sessions.store import SqliteStore, open_store
from worlds.archive import CHILD, KEY, fill

Export = Callable[[Path], str]


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(tmp_path / "state.db")
    await fill(store)
    yield store
    await store.close()


@pytest.fixture
def reading(store: SqliteStore, tmp_path: Path) -> Iterator[Reading]:
    assert store is not None
    with closing(open_readable(tmp_path / "state.db")) as connection:
        yield Reading(partial(snapshot, connection))


@pytest_asyncio.fixture
async def compressed(store: SqliteStore) -> Lineage:
    return next(one for one in await store.select(Filter(), OWNER) if one.tip.id == CHILD)


async def as_jsonl(store: SqliteStore, reading: Reading, target: Path) -> Path:
    found = await store.select(Filter(), OWNER)
    files.write(target, (piece for one in found for pair in reading.records(one) for piece in records.line(*pair)))
    return target


async def bring_in(store: SqliteStore, source: Path) -> list[bool]:
    ids: dict[int, int] = {}
    return [(await store.take_in(parcel, ids, at=T0)).fresh for parcel in jsonl.parcels(source)]


# -- the round trip -------------------------------------------------------------------------------------------------


async def test_an_empty_store_becomes_an_equal_one(store: SqliteStore, reading: Reading, tmp_path: Path) -> None:
    first = await as_jsonl(store, reading, tmp_path / "first.jsonl")
    other = await open_store(tmp_path / "other.db")
    assert await bring_in(other, first) == [True, True, True]
    with closing(open_readable(tmp_path / "other.db")) as connection:
        second = await as_jsonl(other, Reading(partial(snapshot, connection)), tmp_path / "second.jsonl")
    assert second.read_bytes() == first.read_bytes()
    assert texts(await other.history(CHILD)) == texts(await store.history(CHILD))
    found = await other.search.discover(Query(text="修复"), OWNER)
    assert [hit.session.id for hit in found.hits] == ["20270115_080000_a"]
    assert (await other.search.discover(Query(text="undo that"), OWNER)).hits == ()
    assert await bring_in(other, first) == [False, False, False]
    await other.close()


async def test_a_used_store_numbers_the_rows_anew(store: SqliteStore, reading: Reading, tmp_path: Path) -> None:
    first = await as_jsonl(store, reading, tmp_path / "first.jsonl")
    other = await open_store(tmp_path / "other.db")
    mine = await tell(other, "z", "mine", title="proj")
    await bring_in(other, first)
    assert texts(await other.transcript(mine.conversation, OWNER)) == ["mine"]
    assert texts(await other.history(CHILD)) == texts(await store.history(CHILD))
    brought = await other.get(CHILD, OWNER)
    assert brought.title == "proj #3"
    assert (await other.resolve("proj", OWNER)).id == mine.id
    assert (await other.counts()).messages == (await store.counts()).messages + 1
    await other.close()


async def test_a_bad_line_brings_nothing_in(store: SqliteStore, reading: Reading, tmp_path: Path) -> None:
    bad = await as_jsonl(store, reading, tmp_path / "first.jsonl")
    bad.write_text(bad.read_text() + "{}\n")
    with pytest.raises(UserError, match=r"line 5: it is no session.*Nothing was imported"):
        list(jsonl.parcels(bad))
    good = "".join(line for line in first_lines(bad))
    bad.write_text(good + good)
    with pytest.raises(UserError, match="line 5: it repeats session 20270115_080000_a of line 1"):
        list(jsonl.parcels(bad))
    for content in (b"\xff\xfe", b"SQLite format 3\0"):
        bad.write_bytes(content)
        with pytest.raises(UserError):
            list(jsonl.parcels(bad))
    with pytest.raises(UserError, match="cannot be read"):
        list(jsonl.parcels(tmp_path))


async def test_lines_may_stand_in_any_order(store: SqliteStore, reading: Reading, tmp_path: Path) -> None:
    first = await as_jsonl(store, reading, tmp_path / "first.jsonl")
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join([lines[0], lines[2], lines[3], "\n", lines[1]]))
    other = await open_store(tmp_path / "other.db")
    assert await bring_in(other, first) == [True, True, True]
    assert texts(await other.history(CHILD)) == texts(await store.history(CHILD))
    await other.close()


async def test_a_conversation_that_was_cut_off_goes_on_at_its_last_segment(
    store: SqliteStore, reading: Reading, tmp_path: Path
) -> None:
    first = await as_jsonl(store, reading, tmp_path / "first.jsonl")
    kept = [line for line in first.read_text().splitlines(keepends=True) if f'"id": "{CHILD}"' not in line]
    first.write_text("".join(kept))
    other = await open_store(tmp_path / "other.db")
    assert await bring_in(other, first) == [True, True, True]
    assert (await other.resolve("proj", OWNER)).id == "20270115_080000_a"
    await other.close()


def first_lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)[:4]


# -- reading --------------------------------------------------------------------------------------------------------


async def test_a_long_conversation_is_read_in_short_pages(
    store: SqliteStore, reading: Reading, compressed: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reading.whole(compressed)
    expected = list(whole.pages())
    monkeypatch.setattr(documents, "PAGE", 2)
    assert list(whole.pages()) == expected
    assert texts(tuple(expected)) == [
        "Fix the auth module 修复",
        "I look.",
        "def login(): ...",
        "Done.",
        "/undo",
        "and now the tests",
    ]
    assert [row.content for row in reading.single(compressed.tip, compressed).pages()] == ["and now the tests"]


async def test_what_is_deleted_while_it_is_read_ends_the_export(
    store: SqliteStore, reading: Reading, compressed: Lineage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(documents, "PAGE", 2)
    rows = reading.whole(compressed).pages()
    next(rows)
    await store.delete(compressed.conversation, OWNER, now=T0 + 1e6)

    with pytest.raises(SessionNotFound):
        files.write(tmp_path / "half", (row.content for row in rows))
    assert not (tmp_path / "half").exists()
    assert not list(tmp_path.glob("*.part"))


# -- Markdown -------------------------------------------------------------------------------------------------------


def test_markdown_has_facts_words_and_a_footer_that_proves_it(reading: Reading, compressed: Lineage) -> None:
    text = "".join(markdown.markdown(reading.whole(compressed), exported_at=T0, zone=UTC))
    assert text.startswith('---\ntitle: "proj #2"\nsession_id: "20270115_090000_child"\n')
    assert 'lineage_session_ids: ["20270115_080000_a", "20270115_090000_child"]' in text
    assert "### User — 2027-01-15 08:00:00 +00:00\n\n*Ann:*\n\nFix the auth module 修复\n" in text
    assert "*Calls terminal*\n\n```json\n" in text
    assert "undo that" not in text
    assert "so far" not in text
    above, _, footer = text.partition("\n---\n\n## Export verification")
    assert f"- Messages: {text.count(chr(10) + '### ')}\n" in footer
    assert hashlib.sha256(above.encode()).hexdigest() in footer


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("```python\nx", "```python\nx\n```"),
        ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~"),
        ("```\na\n```", "```\na\n```"),
        ("a ``` b", "a ``` b"),
    ],
)
async def test_a_fence_that_somebody_left_open_ends_with_their_words(
    store: SqliteStore, reading: Reading, said: str, shown: str
) -> None:
    session = await tell(store, "f", said, "next")
    text = "".join(markdown.markdown(await whole(store, reading, session), exported_at=T0, zone=UTC))
    assert f"\n{shown}\n\n### User" in text


async def whole(store: SqliteStore, reading: Reading, session: Session) -> Document:
    found = await store.select(Filter(), OWNER)
    return reading.whole(next(one for one in found if one.conversation == session.conversation))


async def test_quarto_runs_includes_and_sets_nothing(store: SqliteStore, reading: Reading) -> None:
    hostile = "```{python}\nimport os\n```\n\n{{< include ~/.ssh/id_rsa >}}\n\n---\nexecute: {enabled: true}\n---"
    session = await tell(store, "q", hostile, title="{{< x >}}")
    text = "".join(markdown.quarto(await whole(store, reading, session), exported_at=T0, zone=UTC))
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    assert 'engine: "markdown"' in front
    assert re.search(r"(?<!\{)\{\{<", body) is None
    assert re.search(r"^---\s*\nexecute", body, re.MULTILINE) is None


def test_files_are_named_after_the_conversation(compressed: Lineage) -> None:
    from dataclasses import replace

    tip = compressed.tip
    assert markdown.file_name(tip, "md") == "20270115_090000_child-proj-2.md"
    hostile = replace(tip, title="../../etc/passwd\n\0 " + "長" * 200)
    name = markdown.file_name(hostile, "md")
    assert "/" not in name
    assert len(name.encode()) < 255
    assert markdown.file_name(replace(tip, title="!!!", preview="!"), "md") == "20270115_090000_child.md"


def test_the_manifest_keeps_one_row_a_file(reading: Reading, compressed: Lineage, tmp_path: Path) -> None:
    shown = reading.whole(compressed)
    (tmp_path / manifest.NAME).write_text('not ours\n{"path": "other.md"}\n')
    for _ in range(2):
        pieces = markdown.markdown(shown, exported_at=T0, zone=UTC)
        written = files.write(tmp_path / "a.md", pieces)
        manifest.update(tmp_path, [(shown, written)], form="md", exported_at=T0)
    foreign, other, row = (tmp_path / manifest.NAME).read_text().splitlines()
    assert (foreign, json.loads(other)["path"]) == ("not ours", "other.md")
    facts = json.loads(row)
    assert facts["sha256"] == hashlib.sha256((tmp_path / "a.md").read_bytes()).hexdigest()
    assert facts["message_count"] == 6
    assert facts["lineage_session_ids"] == ["20270115_080000_a", CHILD]


# -- trace, prompts -------------------------------------------------------------------------------------------------


def test_a_trace_is_a_chain_of_lines_with_the_true_moments(reading: Reading, compressed: Lineage) -> None:
    lines = [json.loads(line) for line in trace.trace(reading.whole(compressed))]
    assert [one["parentUuid"] for one in lines] == [None, *(one["uuid"] for one in lines[:-1])]
    assert [one["timestamp"] for one in lines][:2] == ["2027-01-15T08:00:00.000Z", "2027-01-15T08:00:01.000Z"]
    assert [one["type"] for one in lines] == ["user", "assistant", "user", "assistant", "user", "user"]
    call = lines[1]["message"]["content"][1]
    assert (call["type"], call["id"], call["input"]["cmd"]) == ("tool_use", "c1", "ls")
    (result,) = lines[2]["message"]["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "c1")
    assert {one["cwd"] for one in lines} == {"/home/me/proj"}


def test_prompts_are_what_people_said_and_nothing_else(reading: Reading, compressed: Lineage) -> None:
    lines = [json.loads(line) for line in prompts.jsonl(reading.whole(compressed))]
    assert [(one["index"], one["text"]) for one in lines] == [
        (1, "Fix the auth module 修复"),
        (2, "/undo"),
        (3, "and now the tests"),
    ]
    text = "".join(prompts.markdown(reading.whole(compressed), UTC))
    assert text.startswith("# proj #2\n\n## 1 — 2027-01-15 08:00:00 +00:00\n\nFix the auth module 修复\n")


# -- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "md", "qmd", "html", "trace", "prompts"])
async def test_no_format_lets_a_secret_through(store: SqliteStore, reading: Reading, form: str) -> None:
    live = "correct horse battery"
    redactor = Redactor([live])
    words = f"my key is {KEY} and {live}"
    session = await tell(store, "s", words, title=f"about {live}", cwd=f"/home/{live}", git_branch=live, chat_id=live)
    found = await store.select(Filter(), OWNER)
    clean = [redaction.document(reading.whole(one), redactor) for one in found]
    if form == "jsonl":
        lines = [
            "".join(records.line(redaction.record(record, redactor), redaction.messages(rows, redactor)))
            for one in found
            for record, rows in reading.records(one)
        ]
        text = "".join(lines)
    else:
        formats: dict[str, Callable[[Document], Iterator[str]]] = {
            "md": partial(markdown.markdown, exported_at=T0, zone=UTC),
            "qmd": partial(markdown.quarto, exported_at=T0, zone=UTC),
            "html": lambda one: html.page([one], exported_at=T0, zone=UTC),
            "trace": trace.trace,
            "prompts": prompts.jsonl,
        }
        text = "".join(piece for one in clean for piece in formats[form](one))
    assert "my key is" in text
    assert live not in text
    assert KEY not in text
    assert KEY[:12] not in text
    assert live.replace(" ", "-") not in "".join(markdown.file_name(one.session, "md") for one in clean)
    assert session.id in text


def test_a_cut_preview_does_not_show_half_a_secret() -> None:
    session = Session(
        id=SessionId("s"),
        conversation=SessionId("s"),  # type: ignore[arg-type]
        source="cli",
        started_at=T0,
        last_active=T0,
        preview="Help me refactor the auth module please, key sk-proj-abcdef…",
    )
    assert redaction.session(session, Redactor()).preview == "Help me refactor the auth module please, key…"


@given(
    st.recursive(
        st.text() | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_arguments_stay_json_without_secrets(value: object) -> None:
    from hermes.sessions.model import ToolCall

    arguments = json.dumps({"deep": value, "token": KEY})
    row = Message(
        id=1,
        session_id=SessionId("s"),
        role=Role.ASSISTANT,
        content="",
        at=T0,
        tool_calls=(ToolCall(id="c", name="n", arguments=arguments),),
    )
    (clean,) = redaction.messages([row], Redactor())
    assert KEY not in clean.tool_calls[0].arguments
    assert json.loads(clean.tool_calls[0].arguments).keys() == {"deep", "token"}


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "a"
    written = files.write(target, ["one ", "two é"])
    assert target.stat().st_mode & 0o777 == 0o600
    assert (written.bytes, written.sha256) == (10, hashlib.sha256("one two é".encode()).hexdigest())
    files.verify(written)

    def fails() -> Iterator[str]:
        yield "new"
        raise SessionNotFound("gone")

    with pytest.raises(SessionNotFound):
        files.write(target, fails())
    assert target.read_text() == "one two é"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    target.write_text("something else")
    with pytest.raises(UserError, match="does not hold"):
        files.verify(written)
    with pytest.raises(UserError, match="cannot be written"):
        files.write(tmp_path / "no" / "such", ["x"])
    with pytest.raises(UserError, match="is a file"):
        files.folder(target)


def test_selecting_one_lineage_is_selecting_among_all(store: SqliteStore, tmp_path: Path, compressed: Lineage) -> None:
    assert store is not None
    with closing(open_readable(tmp_path / "state.db")) as connection:
        assert selecting.lineage(connection, compressed.conversation, OWNER).segments == compressed.segments
        assert [(source, sessions) for source, sessions, _ in selecting.totals(connection)] == [
            ("telegram", 2),
            ("cli", 1),
        ]
