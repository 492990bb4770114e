"""`hermes chat` as a person and as a script use it, in real processes."""

import asyncio
import os
import pty
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import Popen

import pytest

from hermes.sessions.model import OWNER, Birth, NewMessage, Role, SessionId, SessionKey, Step, TurnId
from hermes.sessions.store import SqliteStore, open_store
from worlds.shell import PATIENCE, Shell, command

RULES = (
    {"when": "slow", "say": "one two three four", "chunks": 4, "pause": 0.3},
    {"when": "endless", "say": "on and on and on", "chunks": 3, "pause": 30},
    {"when": "fail", "fail": "bad_transcript"},
    {"when": "tool", "call": {"name": "memory", "arguments": {}}, "say": "Let me look."},
    {"after_tool": "memory", "say": "There is nothing."},
    {"say": "Good."},
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, rules=RULES)


# -- one question ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "out", "err", "code"),
    [
        ("Hello", "Good.\n", "", 0),
        ("tool, please", "There is nothing.\n", "[memory]\n", 0),
        ("/start", "Done.\n", "", 0),
        ("/nwe", "There is no command /nwe. Did you mean /new?\n", "", 0),
    ],
)
def test_a_script_gets_the_answer_on_stdout_and_the_rest_on_stderr(
    shell: Shell, question: str, out: str, err: str, code: int
) -> None:
    done = shell.hermes("chat", "-q", question)
    assert (done.stdout, done.stderr, done.returncode) == (out, err, code)


def test_a_question_without_an_answer_fails(shell: Shell) -> None:
    done = shell.hermes("chat", "-q", "fail")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("⚠")
    assert "Traceback" not in done.stderr


# -- a pipe ----------------------------------------------------------------------------------------------------------


def test_lines_of_a_pipe_are_answered_in_turn_and_the_session_is_named_at_the_end(shell: Shell) -> None:
    done = shell.hermes(typed="Hello\n\n/title My talk\n/quit\nnever asked\n")
    assert done.stdout == "Good.\nThis conversation is now called **My talk**.\n"
    (name,) = [line.rpartition(" ")[2] for line in done.stderr.splitlines() if "hermes -r" in line]
    assert "Good." in shell.hermes("chat", "-q", "More", "-r", name).stdout
    assert "4 messages: My talk" in shell.hermes("-c", typed="").stderr


def test_a_resumed_session_is_recalled(shell: Shell) -> None:
    shell.hermes("chat", "-q", "Hello")
    recalled = shell.hermes("-c", typed="").stderr
    assert "2 messages: Good\n● Hello\n◆ Good.\n" in recalled
    shell.configure({"display": {"resume_display": "minimal"}, "model": {"provider": "scripted"}})
    assert "◆" not in shell.hermes("-c", typed="").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-c",), "There is no earlier cli session to go on with. Start one with: hermes chat"),
        (("-c", "my project"), "No session answers to 'my project'"),
        (("-r", "2027"), "No session answers to '2027'"),
        (("chat", "-q", "Hi", "-r", "latest"), "No session answers to 'latest'"),
    ],
)
def test_nothing_to_go_on_with_is_said_and_never_a_silent_fresh_start(
    shell: Shell, options: tuple[str, ...], words: str
) -> None:
    done = shell.hermes(*options)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith(f"hermes: {words}")
    assert "No conversations yet" in shell.hermes("sessions", "list").stdout


def test_a_prefix_that_fits_several_sessions_lists_them(shell: Shell) -> None:
    for _ in range(2):
        shell.hermes("chat", "-q", "Hello")
    done = shell.hermes("-r", "2")
    assert done.returncode == 1
    assert done.stderr.count("_") == 4
    assert "fits several sessions" in done.stderr


# -- beside others ---------------------------------------------------------------------------------------------------


async def said_elsewhere(store: SqliteStore, key: SessionKey, *words: str) -> SessionId:
    """A turn that another process ran."""
    now = time.time()
    name = SessionId("20270115_080000_abcdef01")
    session = await store.open(key, Birth(id=name, source="telegram", at=now, origin="{}"))
    lease = await store.leases.take(session.conversation, owner="gateway-x", place="x", now=now, ttl=30)
    question, answer = words
    step = Step(
        turn=TurnId(f"turn-{question}"),
        session=session.id,
        at=now,
        key=key,
        messages=(
            NewMessage(role=Role.USER, content=question, at=now),
            NewMessage(role=Role.ASSISTANT, content=answer, at=now),
        ),
    )
    await store.commit(lease, replace(step, ends="answered"))
    await store.leases.release(lease)
    return session.id


CHAT = SessionKey("agent:main:telegram:dm:7")


async def test_a_busy_conversation_says_where_and_answers_when_it_is_free(shell: Shell) -> None:
    store = await open_store(shell.home.database)
    try:
        name = await said_elsewhere(store, CHAT, "From the train", "Have a good trip.")
        conversation = (await store.get(name, OWNER)).conversation
        lease = await store.leases.take(
            conversation, owner="gateway-x", place="the gateway", now=time.time(), ttl=PATIENCE
        )
        with shell.beside("chat", "-q", "Hello", "-r", name) as child:
            assert child.stderr is not None
            assert child.stdout is not None
            assert "busy in the gateway" in await asyncio.to_thread(child.stderr.readline)
            await store.leases.release(lease)
            assert await asyncio.to_thread(child.stdout.read) == "Good.\n"
            assert await asyncio.to_thread(child.wait) == 0
        session = await store.tip(conversation)
        assert session.message_count == 4
        assert session.ended_at is None, "the chat goes on"
    finally:
        await store.close()


async def test_a_question_that_waits_for_a_busy_conversation_can_be_taken_back(shell: Shell) -> None:
    store = await open_store(shell.home.database)
    try:
        name = await said_elsewhere(store, CHAT, "From the train", "Have a good trip.")
        session = await store.get(name, OWNER)
        lease = await store.leases.take(
            session.conversation, owner="gateway-x", place="the gateway", now=time.time(), ttl=PATIENCE
        )
        with shell.beside("chat", "-q", "Hello", "-r", name) as child:
            assert child.stderr is not None
            assert "busy in the gateway" in await asyncio.to_thread(child.stderr.readline)
            child.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(child.stderr.readline) == "⏹ Taken back.\n"
            await store.leases.release(lease)
            assert await asyncio.to_thread(child.wait) == 1
        assert (await store.get(name, OWNER)).message_count == session.message_count
        assert (await store.counts()).inbound == {"received": 1, "open": 0, "abandoned": 1}
    finally:
        await store.close()


async def test_an_answer_that_is_stopped_elsewhere_ends_the_wait(shell: Shell) -> None:
    store = await open_store(shell.home.database)
    try:
        name = await said_elsewhere(store, CHAT, "From the train", "Have a good trip.")
        conversation = (await store.get(name, OWNER)).conversation
        with shell.beside("chat", "-q", "slow, please", "-r", name) as child:
            assert child.stderr is not None
            async with asyncio.timeout(PATIENCE):
                while (await store.get(name, OWNER)).message_count < 3:
                    await asyncio.sleep(0.02)
            await store.leases.take(conversation, owner="me", place="here", now=time.time(), ttl=1, force=True)
            assert "Stopped from elsewhere" in await asyncio.to_thread(child.stderr.read)
            assert await asyncio.to_thread(child.wait) == 1
    finally:
        await store.close()


async def test_what_was_said_elsewhere_is_shown_before_the_next_turn(shell: Shell) -> None:
    store = await open_store(shell.home.database)
    try:
        name = await said_elsewhere(store, CHAT, "From the train", "Have a good trip.")
        child = await asyncio.create_subprocess_exec(
            *command("-r", name),
            env=shell.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        async with asyncio.timeout(PATIENCE):
            child.stdin.write(b"Hello\n")
            assert await child.stdout.readline() == b"Good.\n"
            await said_elsewhere(store, CHAT, "Back home", "Welcome.")
            child.stdin.write(b"Hello again\n")
            assert await child.stdout.readline() == b"Good.\n"
            child.stdin.close()
            told = (await child.stderr.read()).decode()
            await child.wait()
        assert told.count("↻ Said elsewhere meanwhile:\n● Back home\n◆ Welcome.\n") == 1
        assert "● Hello" not in told
    finally:
        await store.close()


# -- a person at a keyboard -----------------------------------------------------------------------------------------


class Keyboard:
    """A pseudo-terminal with `hermes` in it."""

    def __init__(self, master: int, child: "Popen[bytes]") -> None:
        self._master = master
        self.child = child
        self.screen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, words: str) -> None:
        """Wait until `words` have come on the screen since the last wait."""
        while words not in self.screen:
            ready, _, _ = select.select([self._master], [], [], PATIENCE)
            assert ready, f"{words!r} did not come: {self.screen!r}"
            chunk = os.read(self._master, 4096)
            self.screen += chunk.decode(errors="replace")
            if "\x1b[6n" in self.screen:  # where is the cursor?
                self.screen = self.screen.replace("\x1b[6n", "")
                os.write(self._master, b"\x1b[1;1R")
        self.screen = self.screen.partition(words)[2]


@contextmanager
def keyboard(shell: Shell, *arguments: str) -> Iterator[Keyboard]:
    master, slave = pty.openpty()
    environment = {**shell.environment, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "60", "LINES": "20"}
    with Popen(
        command(*arguments), env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as child:
        os.close(slave)
        try:
            yield Keyboard(master, child)
        finally:
            child.kill()
            os.close(master)


@pytest.mark.timeout(60)
def test_a_person_sees_words_come_stops_them_and_leaves(shell: Shell) -> None:
    with keyboard(shell) as person:
        person.until("Ctrl-D leaves.")
        person.until("›")
        person.type("half a line\x03")
        person.until("›")
        person.type("endless\r")
        person.until("on an")
        os.kill(person.child.pid, signal.SIGINT)
        person.until("⏹ Stopped. What was written so far is kept.")
        person.until("›")
        person.type("Hello\r")
        person.until("Good.")
        person.until("›")
        person.type("\x04")
        person.until("Go on with it later: hermes -r ")
        assert person.child.wait(PATIENCE) == 0
    assert "4 messages: endless" in shell.hermes("-c", typed="").stderr
