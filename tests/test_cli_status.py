"""`hermes status`, beside a gateway in every state."""

import json
import os
import signal
from pathlib import Path

from hermes.cli import status
from worlds.shell import Shell


def test_without_a_home_it_says_how_to_start_and_makes_no_store(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    done = shell.hermes("status")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "The gateway does not run. Start it with: hermes gateway run",
        "Messages in: 0 = 0 open",
        "Messages out: 0 = 0 open",
        "Conversations: none; 0 messages kept",
    ]
    assert not shell.home.database.exists()


def test_beside_a_gateway_it_says_where_it_listens_how_its_links_are_and_that_the_books_add_up(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with shell.gateway() as gateway:
        shell.hermes("chat", "-q", "Hello")
        done = shell.hermes("status")
        assert done.returncode == 0, done.stdout + done.stderr
        first, *links, incoming, outgoing, kept = done.stdout.splitlines()
        assert first.startswith(f"The gateway runs (process {gateway.pid}, http://127.0.0.1:")
        assert first.endswith("ready")
        assert [line.split() for line in links] == [["api_server", "up"], ["web", "up"]]
        assert incoming == "Messages in: 1 = 1 answered + 0 open"
        assert outgoing == "Messages out: 1 = 0 open + 1 sent"
        assert kept == "Conversations: cli 1; 2 messages kept"

        facts = json.loads(shell.hermes("status", "--json").stdout)
        assert facts["process"] == gateway.pid
        assert facts["status"] == "ready"
        assert facts["inbound"] == {"received": 1, "open": 0, "answered": 1}

        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait() == 0
        assert shell.hermes("status").returncode == 1


def test_a_gateway_that_hangs_is_told_from_one_that_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with shell.gateway() as gateway:
        os.kill(gateway.pid, signal.SIGSTOP)
        found = status.look(shell.home, patience=0.2)
        assert (found.process, found.word) == (gateway.pid, None)
        assert "does not answer" in found.sentence
        assert f"kill -9 {gateway.pid}" in found.sentence
        os.kill(gateway.pid, signal.SIGCONT)
        assert status.look(shell.home).word == "ready"


def test_books_that_do_not_add_up_are_pointed_at() -> None:
    assert status.sum_of("Messages in", {"received": 3, "open": 1, "answered": 1}, "received") == (
        "Messages in: 3 = 1 answered + 1 open  ← does not add up; run `hermes doctor`"
    )
