"""Stores of every schema there was are brought up, also when the program is killed at any statement on the way."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hermes.sessions import dbapi
from hermes.sessions.database import migrations, open_readable, open_writable, statements
from hermes.sessions.lookup import list_tips, transcript
from hermes.sessions.model import OWNER, ConversationId, Page, Query
from hermes.sessions.search import discover

CHILD = """
import os, signal, sys
from pathlib import Path
from hermes.sessions import backup, database
left = int(sys.argv[2])

def count(_statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

connect = database.connect

def traced(path, **facts):
    connection = connect(path, **facts)
    connection.set_trace_callback(count)
    return connection

database.connect = traced
path = Path(sys.argv[1])
database.open_writable(path, backup=backup.before_migration(path)).close()
"""
"""Opens a store, and dies at its n-th statement."""


def old_store(path: Path, schema: int) -> None:
    """A store as the program of that schema left it: one conversation with three rows, one of them Chinese."""
    with closing(dbapi.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        for script in migrations()[:schema]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema}")
        connection.execute("INSERT INTO conversations (id, tip) VALUES ('s1', 's1')")
        connection.execute(
            "INSERT INTO sessions (id, conversation, source, title, started_at, last_active, message_count)"
            " VALUES ('s1', 's1', 'cli', 'old times', 1, 3, 3)"
        )
        for number, words in enumerate(("fix the auth module", "done", "谢谢你修复"), start=1):
            connection.execute(
                "INSERT INTO messages (session_id, role, kind, content, at, search_text, indexed)"
                " VALUES ('s1', 'user', 'talk', ?, ?, ?, 1)",
                (words, number, "谢谢 谢你 你修 修复 复" if number == 3 else None),
            )


def assert_brought_up(path: Path) -> None:
    open_writable(path).close()
    with closing(open_readable(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (session,) = list_tips(connection, Page(), OWNER)
        assert session.title == "old times"
        rows = transcript(connection, ConversationId("s1"), OWNER, 0, 10)
        assert [row.content for row in rows] == ["fix the auth module", "done", "谢谢你修复"]
        assert discover(connection, Query(text="修复"), OWNER).hits


@pytest.mark.parametrize("schema", range(1, len(migrations()) + 1))
def test_a_store_of_any_schema_is_brought_up(tmp_path: Path, schema: int) -> None:
    old_store(tmp_path / "state.db", schema)
    assert_brought_up(tmp_path / "state.db")
    assert_brought_up(tmp_path / "state.db")


@pytest.mark.crash
def test_a_migration_that_is_killed_at_any_statement_resumes(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    killed = 0
    for statement in range(0, 200, 2):
        folder = tmp_path / str(statement)
        folder.mkdir()
        old_store(folder / "state.db", 1)
        done = subprocess.run(
            [sys.executable, script, folder / "state.db", str(statement)], capture_output=True, timeout=60
        )
        assert_brought_up(folder / "state.db")
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        killed += 1
    assert killed > 10, "it was killed on the way, and at last it was not"
    assert done.returncode == 0


def test_a_copy_is_kept_of_what_was_there_before(tmp_path: Path) -> None:
    old_store(tmp_path / "state.db", 1)
    (tmp_path / "config.yaml").write_text("model: {provider: scripted}\n")
    done = subprocess.run(
        [sys.executable, "-m", "hermes", "chat", "-q", "hi"],
        env={**os.environ, "HERMES_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
        input="",
        text=True,
    )
    assert (tmp_path / "backups" / "state-schema-1.db").exists(), done.stderr
