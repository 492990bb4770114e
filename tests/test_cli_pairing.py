"""`hermes pairing`: from a code to a person who may talk, and back."""

import json
import time
from pathlib import Path

from hermes.sessions.store import open_store
from worlds.shell import Shell


async def test_a_stranger_is_seen_let_in_and_shown_out(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    store = await open_store(shell.home.database)
    await store.roles.request("telegram", "7", name="陈安", code="ABCD2345", at=time.time(), ttl=3600)
    await store.close()

    assert shell.hermes("pairing", "list").stdout.startswith(
        "waiting  telegram     7                        陈安  (59 min"
    )
    wrong = shell.hermes("pairing", "approve", "telegram", "WRONG234")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("hermes: ")

    done = shell.hermes("pairing", "approve", "telegram", "ABCD2345", "--role", "trusted")
    assert (done.returncode, done.stdout) == (0, "7 on telegram may talk now, as trusted.\n")
    listed = json.loads(shell.hermes("pairing", "list", "--json").stdout)
    assert listed["waiting"] == []
    assert [(one["platform"], one["user"], one["role"]) for one in listed["granted"]] == [("telegram", "7", "trusted")]

    assert shell.hermes("pairing", "revoke", "telegram", "7").stdout == "7 on telegram may not talk any more.\n"
    again = shell.hermes("pairing", "revoke", "telegram", "7")
    assert (again.returncode, again.stdout) == (1, "")
    assert "Nobody waits" in shell.hermes("pairing", "list").stdout
