"""`hermes sessions …` as a person uses it: the real command on a real store."""

import asyncio
import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.store.facts import HOUR, T0, begin, take, tell, user, write
from hermes.sessions.filters import Filter, Selection
from hermes.sessions.model import OWNER, Link, ViewEntry
from hermes.sessions.pruning import prune, stamps
from hermes.sessions.store import open_store
from worlds.archive import CHILD, KEY, fill
from worlds.shell import Shell


async def _fill(path: Path) -> None:
    store = await open_store(path)
    await fill(store)
    for name in "de":
        session = await tell(store, name, f"chat of {name}", at=T0 + 2 * HOUR, source="cli")
        await store.end(session.id, reason="cli_close", at=T0 + 2 * HOUR)
    await store.close()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path, timezone="Asia/Shanghai")
    asyncio.run(_fill(shell.home.database))
    return shell


def ids(shell: Shell) -> set[str]:
    facts = json.loads(shell.hermes("sessions", "list", "--include-archived", "--json").stdout)
    return {one["id"].rpartition("_")[2] for one in facts}


# -- finding --------------------------------------------------------------------------------------------------------


def test_list_shows_folders_on_demand_and_archived_ones_marked(shell: Shell) -> None:
    shown = shell.hermes("sessions", "list", "--workspace", "PROJ").stdout.splitlines()
    assert shown[0].split() == ["Title", "Workspace", "Last", "Active", "ID"]
    assert [line.split()[-1] for line in shown[2:]] == [CHILD]
    shell.hermes("sessions", "archive", "proj")
    assert CHILD not in shell.hermes("sessions", "list").stdout
    assert f"{CHILD} (archived)" in shell.hermes("sessions", "list", "--include-archived").stdout
    nothing = shell.hermes("sessions", "list", "--workspace", "nowhere")
    assert "No conversations were held in a folder with 'nowhere'" in nothing.stdout


@pytest.mark.parametrize("name", ["proj", "proj #2", "20270115_080000_a", CHILD, "20270115_0900"])
def test_show_leads_to_the_live_segment_by_any_of_its_names(shell: Shell, name: str) -> None:
    shown = shell.hermes("sessions", "show", name).stdout
    assert f"Session      {CHILD}" in shown
    assert "20270115_080000_a → 20270115_090000_child" in shown
    assert "ended 2027-01-15 16:00 (done)" in shown, "in the configured zone"
    assert shown.rstrip().endswith("and now the tests")
    facts = json.loads(shell.hermes("sessions", "show", name, "--json", "--limit", "2").stdout)
    assert [row["content"] for row in facts["messages"]] == ["/undo", "and now the tests"]


@pytest.mark.parametrize("command", ["show", "delete", "rename", "archive", "unarchive"])
@pytest.mark.parametrize(("name", "why"), [("nobody", "No session answers to 'nobody'"), ("2027", "fits several")])
def test_a_name_that_leads_nowhere_is_an_error(shell: Shell, command: str, name: str, why: str) -> None:
    more = ["title"] if command == "rename" else []
    done = shell.hermes("sessions", command, name, *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr


def test_stats_count_whole_conversations(shell: Shell) -> None:
    lines = shell.hermes("sessions", "stats").stdout.splitlines()
    assert lines[:4] == ["Total sessions: 5", "Total messages: 12", "  cli: 3 sessions", "  telegram: 2 sessions"]
    assert lines[4].startswith("Database size: ")
    facts = json.loads(shell.hermes("sessions", "stats", "--json").stdout)
    assert facts["by_source"] == {"cli": 3, "telegram": 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("stats",),
        ("prune",),
        ("export", "-"),
        ("export", "--format", "trace"),
        ("show", "latest"),
        ("archive", "--source", "x"),
    ],
)
def test_an_empty_home_gets_a_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = Shell(tmp_path).hermes("sessions", *arguments)
    assert "Traceback" not in done.stderr
    assert (done.stdout + done.stderr).strip()


# -- names ----------------------------------------------------------------------------------------------------------


def test_rename_takes_bare_words_and_refuses_what_is_taken_or_empty(shell: Shell) -> None:
    done = shell.hermes("sessions", "rename", "20270115_080000_d", "debugging", "auth", "flow")
    assert done.stdout == "20270115_080000_d is called 'debugging auth flow' now.\n"
    clash = shell.hermes("sessions", "rename", "20270115_080000_e", "debugging auth flow")
    assert clash.returncode == 1
    assert "belongs to session 20270115_080000_d (cli" in clash.stderr
    assert "hermes sessions rename 20270115_080000_d" in clash.stderr
    nothing = shell.hermes("sessions", "rename", "20270115_080000_e", "\u200b\u202e\x07")
    assert nothing.returncode == 1
    assert "Nothing is left of this title" in nothing.stderr
    long = shell.hermes("sessions", "rename", "20270115_080000_e", "x" * 101)
    assert "at most 100 characters" in long.stderr


# -- taking away ----------------------------------------------------------------------------------------------------


def test_delete_asks_and_takes_delegates_along(shell: Shell) -> None:
    refused = shell.hermes("sessions", "delete", "proj")
    assert refused.returncode == 1
    assert "Nobody can be asked here. Say --yes" in refused.stderr
    assert ids(shell) == {"child", "b", "c", "d", "e"}
    done = shell.hermes("sessions", "delete", "proj", "--yes")
    assert done.stdout == f"Deleted {CHILD} and its delegate.\n"
    assert ids(shell) == {"c", "d", "e"}


def test_prune_says_what_it_would_take_and_what_it_skips(shell: Shell) -> None:
    dry = shell.hermes("sessions", "prune", "--source", "cli", "--dry-run").stdout
    assert "2 conversations: oldest last active 2027-01-15 18:00" in dry
    assert "1 open session matched and was skipped" in dry
    assert "dry run" in dry
    assert len(ids(shell)) == 5
    refused = shell.hermes("sessions", "prune", "--source", "cli")
    assert refused.returncode == 1
    done = shell.hermes("sessions", "prune", "--source", "cli", "--yes")
    assert done.stdout.endswith("Pruned 2 conversations.\n")
    assert ids(shell) == {"child", "b", "c"}


def test_prune_alone_takes_what_is_ninety_days_old(shell: Shell) -> None:
    assert "Nothing to prune" in shell.hermes("sessions", "prune", "--yes").stdout, "the store is of the future"
    assert len(ids(shell)) == 5
    done = shell.hermes("sessions", "prune", "--before", "2027-01-15 18:01", "--yes")
    assert "Pruned 2 conversations." in done.stdout
    assert f"Kept {CHILD}: a delegate that it sent out has not ended" in done.stdout
    assert ids(shell) == {"child", "b", "c"}


def test_prune_leaves_archived_ones_unless_told(shell: Shell) -> None:
    shell.hermes("sessions", "archive", "20270115_080000_d")
    shell.hermes("sessions", "prune", "--source", "cli", "--yes")
    assert "d" in ids(shell)
    shell.hermes("sessions", "prune", "--source", "cli", "--yes", "--include-archived")
    assert "d" not in ids(shell)


@pytest.mark.parametrize("command", ["prune", "archive", "export"])
@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("--older-than", "5x"), 2, "expected how long ago"),
        (("--older-than", "2d", "--newer-than", "1d"), 1, "ends before it begins"),
        (("--min-cost", "-1"), 2, "not negative"),
        (("--max-messages", "many"), 2, "expected a number"),
        (("--source", " "), 2, "it is empty"),
        (("--nonsense",), 2, "unrecognized arguments"),
    ],
)
def test_conditions_that_make_no_sense(
    shell: Shell, command: str, arguments: tuple[str, ...], code: int, why: str
) -> None:
    before = shell.home.database.read_bytes()
    target = ["out.jsonl"] if command == "export" else []
    done = shell.hermes("sessions", command, *target, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert why in done.stderr
    assert len(ids(shell)) == 5
    assert before


# -- hiding ---------------------------------------------------------------------------------------------------------


def test_archive_hides_a_lineage_from_lists_but_not_from_search(shell: Shell) -> None:
    everything = shell.hermes("sessions", "archive")
    assert everything.returncode == 1
    assert "at least one condition" in everything.stderr
    done = shell.hermes("sessions", "archive", "--title", "PROJ", "--yes")
    assert done.stdout.endswith("Archived 1 conversation.\n")
    assert CHILD not in shell.hermes("sessions", "list").stdout
    assert "Nothing to archive." in shell.hermes("sessions", "archive", "--title", "PROJ", "--yes").stdout
    assert shell.hermes("sessions", "unarchive", "20270115_080000_a").stdout == f"Unarchived {CHILD}.\n"
    assert CHILD in shell.hermes("sessions", "list").stdout


# -- out and in -----------------------------------------------------------------------------------------------------


def test_a_store_is_carried_to_another_home(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    done = shell.hermes("sessions", "export", str(out))
    assert done.stderr == f"Wrote 5 conversations to {out}\n"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    other = Shell(tmp_path / "other")
    assert other.hermes("sessions", "import", str(out)).stdout == "Imported 5 conversations with 13 messages.\n"
    again = other.hermes("sessions", "import", str(out)).stdout
    assert "5 were here already and stayed as they are" in again
    assert other.hermes("sessions", "export", "-").stdout == out.read_text()


def test_an_export_never_replaces_a_file_unasked(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    out.write_text("precious")
    refused = shell.hermes("sessions", "export", str(out))
    assert refused.returncode == 1
    assert "is there already" in refused.stderr
    assert out.read_text() == "precious"
    assert shell.hermes("sessions", "export", str(out), "--force").returncode == 0
    assert out.read_text() != "precious"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("{tmp}",), "is a folder; this export is one file"),
        (("{tmp}/no/such/file",), "There is no folder"),
        (("/proc/x.jsonl",), "cannot be written"),
        ((), "Name the file to write"),
        (("--format", "html"), "Name the file to write"),
        (("--format", "md"), "name a session or give a condition"),
        (("--format", "md", "--session-id", "proj", "{tmp}/file"), "is a file; this export needs a folder"),
        (("-", "--format", "md", "--source", "cli"), "Only one document goes to stdout"),
        (("-", "--session-id", "proj", "--source", "cli"), "leave out the conditions"),
        (("-", "--session-id", "nobody"), "No session answers to 'nobody'"),
        (("--only", "user-prompts", "--format", "html"), "written as jsonl or md"),
        (("-", "--upload"), "for --format trace"),
        (("--format", "trace", "--public"), "give --upload too"),
        (("-", "--lineage", "logical"), "for md and qmd"),
        (("--format", "md", "--session-id", "proj", "--delete-after-verified"), "--session-id and --yes"),
        (("-", "--session-id", "proj", "--delete-after-verified", "--yes"), "stdout leaves none"),
        (("--format", "trace", "--redact", "--no-redact"), "exclude each other"),
        (("-", "--no-redact"), "only with --redact"),
        (("x", "--format", "trace", "--upload"), "leave out the output"),
        (("--format", "trace", "--session-id", "proj", "--delete-after-verified", "--yes"), "stdout leaves none"),
        (("{tmp}/x", "--session-id", "proj", "--delete-after-verified", "--yes", "--dry-run"), "choose one"),
        (("/dev/null", "--force"), "no ordinary file"),
        (("--format", "trace", "--upload"), "set HF_TOKEN"),
    ],
)
def test_an_export_that_makes_no_sense(shell: Shell, tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    (tmp_path / "file").write_text("in the way")
    done = shell.hermes("sessions", "export", *(one.format(tmp=tmp_path) for one in arguments))
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "home"]


def test_conditions_leave_open_sessions_out_and_say_so(shell: Shell, tmp_path: Path) -> None:
    done = shell.hermes("sessions", "export", "-", "--source", "cli")
    assert done.stderr == ("1 open session matched and was skipped; --include-open takes them too\n")
    assert [json.loads(line)["id"][-1] for line in done.stdout.splitlines()] == ["d", "e"]
    done = shell.hermes("sessions", "export", "-", "--source", "cli", "--include-open")
    assert {json.loads(line)["id"][-1] for line in done.stdout.splitlines()} == {"b", "d", "e"}
    nothing = shell.hermes("sessions", "export", str(tmp_path / "x"), "--source", "nobody")
    assert nothing.returncode == 1
    assert not (tmp_path / "x").exists()
    dry = shell.hermes("sessions", "export", str(tmp_path / "x"), "--source", "cli", "--dry-run")
    assert "2 conversations" in dry.stdout
    assert not (tmp_path / "x").exists()


def test_markdown_goes_to_a_folder_with_a_manifest(shell: Shell) -> None:
    done = shell.hermes("sessions", "export", "--format", "qmd", "--session-id", CHILD)
    folder = shell.home.exports
    assert done.stderr == f"Wrote 1 conversation to {folder}/20270115_090000_child-proj-2.qmd\n"
    assert "Fix the auth" not in next(folder.glob("*.qmd")).read_text().partition("## Messages")[2]
    done = shell.hermes("sessions", "export", "--format", "md", "--session-id", "proj", "--lineage", "logical")
    assert "Fix the auth" in next(folder.glob("*.md")).read_text()
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    assert [(row["format"], row["message_count"]) for row in rows] == [("qmd", 1), ("md", 6)]
    again = shell.hermes("sessions", "export", "--format", "md", "--session-id", "proj")
    assert again.returncode == 1, "the file is there"


def test_a_trace_is_redacted_unless_told_not_to_be(shell: Shell, tmp_path: Path) -> None:
    assert KEY not in shell.hermes("sessions", "export", "--format", "trace", "--session-id", "proj").stdout
    open_words = shell.hermes("sessions", "export", "--format", "trace", "--session-id", "proj", "--no-redact").stdout
    assert KEY in open_words
    latest = shell.hermes("sessions", "export", "--format", "trace").stdout
    assert json.loads(latest.splitlines()[0])["sessionId"] == "20270115_080000_e"
    many = shell.hermes("sessions", "export", "--format", "trace", "--source", "cli", str(tmp_path / "traces"))
    assert many.returncode == 0
    assert sorted(one.name for one in (tmp_path / "traces").iterdir()) == [
        "20270115_080000_d.trace.jsonl",
        "20270115_080000_e.trace.jsonl",
    ]


def test_a_secret_of_the_environment_is_taken_out(shell: Shell) -> None:
    shell.hermes("sessions", "rename", "20270115_080000_d", "the word is swordfish-of-mine")
    shown = shell.hermes("sessions", "export", "-", "--redact", SOME_TOKEN="swordfish-of-mine").stdout
    assert "the word is" in shown
    assert "swordfish" not in shown


def test_deleting_after_an_export_takes_exactly_what_was_written(shell: Shell) -> None:
    done = shell.hermes(
        "sessions", "export", "--format", "md", "--session-id", "proj", "--delete-after-verified", "--yes"
    )
    assert "Verified and deleted 2 conversations." in done.stderr
    assert ids(shell) == {"c", "d", "e"}
    texts = "".join(one.read_text() for one in shell.home.exports.glob("*.md"))
    assert all(words in texts for words in ("Fix the auth module", "and now the tests", "look into it"))


@pytest.mark.parametrize("content", ["", "not json\n", '{"format": "hermes-session", "version": 9}\n'])
def test_an_import_of_something_else_changes_nothing(shell: Shell, tmp_path: Path, content: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(content)
    done = shell.hermes("sessions", "import", str(file))
    assert done.returncode == (1 if content else 0)
    assert "Traceback" not in done.stderr
    assert len(ids(shell)) == 5
    missing = shell.hermes("sessions", "import", str(tmp_path / "nothing"))
    assert (missing.returncode, missing.stderr) == (1, f"hermes: There is no {tmp_path}/nothing.\n")


# -- somebody speaks meanwhile --------------------------------------------------------------------------------------


async def test_what_somebody_speaks_in_meanwhile_is_kept(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "state.db")
    for name in "abc":
        session = await tell(store, name)
        await store.end(session.id, reason="done", at=T0)
    chosen = await store.select(Filter(), OWNER)
    seen = await stamps(store, chosen)

    async def speak(name: str) -> None:
        session, lease = await begin(store, name, at=T0 + 1)
        await write(store, lease, session, user("still here"), turn="turn-x", at=T0 + 1)
        await store.leases.release(lease)

    await speak("b")
    lease = await take(store, chosen[2].conversation)
    done = await prune(store, chosen, seen, now=lambda: T0 + 2)
    assert done.gone == 1
    assert sorted(name[-1] for name, _ in done.kept) == ["b", "c"]
    why = {name[-1]: words for name, words in done.kept}
    assert "has changed since it was read" in why["b"]
    assert "Telegram" in why["c"]
    await store.leases.release(lease)
    await store.close()


async def test_a_branch_goes_before_its_parent_and_an_open_delegate_keeps_its_own(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "state.db")
    session, lease = await begin(store, "a")
    (row,) = await write(store, lease, session, user("shared"))
    await store.leases.release(lease)
    branch, lease = await begin(store, "b", at=T0 + 1, parent=session.id, link=Link.BRANCH)
    await store.replace(lease, branch.id, [ViewEntry(message_id=row.id)])
    await store.leases.release(lease)
    sender = await tell(store, "c")
    await tell(store, "d", parent=sender.id, link=Link.DELEGATE)
    for one in (session, branch, sender):
        await store.end(one.id, reason="done", at=T0 + 2)
    chosen = Selection.of(await store.select(Filter(), OWNER)).ended
    done = await prune(store, chosen, await stamps(store, chosen), now=lambda: T0 + 2)
    assert done.gone == 2
    assert [(name[-1], why) for name, why in done.kept] == [("c", "a delegate that it sent out has not ended")]
    await store.close()


# -- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("redirection", "code", "why"),
    [(">/dev/full", 1, "is full"), (">&-", 0, ""), ("<&-", 0, ""), ("| head -0", 0, "")],
)
def test_a_stream_that_takes_nothing_is_no_traceback(shell: Shell, redirection: str, code: int, why: str) -> None:
    for command in ("sessions list", "sessions export -", "sessions prune --source cli --dry-run"):
        line = f"{sys.executable} -m hermes {command} {redirection}"
        done = subprocess.run(["sh", "-c", line], env=shell.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (command, done.stderr)
        assert why in done.stderr
        assert "Traceback" not in done.stderr


def test_titles_do_not_steer_the_terminal(shell: Shell) -> None:
    line = {
        "format": "hermes-session",
        "version": 1,
        "id": "evil",
        "conversation": "evil",
        "source": "s\x1b[2J",
        "started_at": 1.0,
        "last_active": 2.0,
        "tip": "evil",
        "message_count": 1,
        "preview": "p\x1b[31m",
        "ended_at": 2.0,
        "messages": [{"id": 1, "role": "user", "content": "a\x1b]0;b\x07", "at": 1.0}],
    }
    file = shell.home.root / "evil.jsonl"
    file.write_text(json.dumps(line) + "\n")
    assert "Imported 1 conversation" in shell.hermes("sessions", "import", str(file)).stdout
    for command in (("list",), ("stats",), ("show", "evil"), ("prune", "--older-than", "9000", "--dry-run")):
        assert "\x1b" not in shell.hermes("sessions", *command).stdout
