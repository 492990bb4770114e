"""What a person can get wrong: each gets a sentence, the right exit code, no traceback, and no data is touched."""

import hashlib
import os
import signal
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hermes.sessions import dbapi
from worlds.shell import Finished, Shell

CONFIGURATION, FAILURE = 78, 1
Mishap = Callable[[Shell], None]


def config(text: str) -> Mishap:
    """config.yaml holds just this."""

    def write(shell: Shell) -> None:
        shell.home.config.write_text(text)

    return write


def no_database(shell: Shell) -> None:
    shell.home.database.write_text("These are my notes, not a database.\n" * 50)


def newer_store(shell: Shell) -> None:
    with closing(dbapi.connect(shell.home.database)) as connection:
        connection.execute("CREATE TABLE things_of_the_future (id INTEGER)")
        connection.execute("PRAGMA user_version = 999")


def folder_for_database(shell: Shell) -> None:
    shell.home.database.mkdir()


def folder_for_config(shell: Shell) -> None:
    shell.home.config.unlink()
    shell.home.config.mkdir()


def file_for_logs(shell: Shell) -> None:
    shell.home.logs.write_text("in the way")


def bad_env(shell: Shell) -> None:
    shell.home.env.write_text("OPENAI_API_KEY=sk-this-one-stays-secret-123\nno assignment here\n")
    shell.home.env.chmod(0o600)


CHAT, GATEWAY, LIST, STATUS = ("chat", "-q", "Hi"), ("gateway", "run"), ("sessions", "list"), ("status",)
DOCTOR = ("doctor",)


@pytest.mark.parametrize(
    ("mishap", "arguments", "code", "words"),
    [
        (config("model: {provider: [\n"), GATEWAY, CONFIGURATION, ("config.yaml", "line 2")),
        (config("gatway: {}\n"), GATEWAY, CONFIGURATION, ("gatway: unknown key", "Did you mean 'gateway'?")),
        (
            config("gateway: {http: {port: soon}}\nagent: {max_steps: 0}\n"),
            GATEWAY,
            CONFIGURATION,
            ("gateway.http.port: found 'soon', expected a whole number", "agent.max_steps"),
        ),
        (config("- a list\n"), CHAT, CONFIGURATION, ("the whole file", "a mapping")),
        (config("platforms: {telegrem: {}}\n"), GATEWAY, CONFIGURATION, ("telegrem",)),
        (config("model: {provider: openai}\n"), CHAT, CONFIGURATION, ("OPENAI_API_KEY",)),
        (config("model: {api_key: '${NOT_SET_ANYWHERE}'}\n"), CHAT, CONFIGURATION, ("NOT_SET_ANYWHERE",)),
        (config("model: {provider: scripted, name: /no/such/script}\n"), CHAT, CONFIGURATION, ("/no/such/script",)),
        (folder_for_config, CHAT, CONFIGURATION, ("config.yaml", "cannot be read")),
        (file_for_logs, CHAT, CONFIGURATION, ("logs", "move it away")),
        (bad_env, CHAT, CONFIGURATION, (".env", "line 2")),
        (no_database, CHAT, FAILURE, ("⚠ Session store unavailable", "state.db", "Move it away")),
        (no_database, LIST, FAILURE, ("⚠ Session store unavailable", "state.db", "Move it away")),
        (newer_store, CHAT, CONFIGURATION, ("schema 999", "Nothing was changed", "Install the newer Hermes")),
        (newer_store, GATEWAY, CONFIGURATION, ("schema 999", "Install the newer Hermes")),
        (newer_store, LIST, CONFIGURATION, ("schema 999", "Install the newer Hermes")),
        (newer_store, STATUS, CONFIGURATION, ("schema 999", "Install the newer Hermes")),
        (folder_for_database, CHAT, FAILURE, ("⚠ Session store unavailable", "state.db")),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence_and_left_alone(
    tmp_path: Path, mishap: Mishap, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    shell = Shell(tmp_path)
    mishap(shell)
    before = print_of(shell)
    done = shell.hermes(*arguments)
    told(done, code, *words)
    assert "stays-secret" not in done.stderr
    assert print_of(shell).items() >= before.items()


def told(done: Finished, code: int, *words: str) -> None:
    """The command ended with this code, and with one sentence that holds these words."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("hermes: ")
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def print_of(shell: Shell) -> dict[str, str]:
    """What a person might miss: the store and the configuration, byte for byte."""
    precious = (shell.home.database, shell.home.config, shell.home.env, shell.home.logs)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in precious if path.is_file()}


@pytest.mark.parametrize(
    ("mishap", "words"),
    [
        (config("gatway: {}\n"), "gatway: unknown key"),
        (config("platforms: {web: {colour: red}}\n"), "platforms.web.colour: unknown key"),
        (config("model: {provider: openai}\n"), "OPENAI_API_KEY"),
        (no_database, "not a database"),
        (newer_store, "schema 999"),
    ],
)
def test_the_doctor_takes_it_as_a_finding_and_looks_on(tmp_path: Path, mishap: Mishap, words: str) -> None:
    shell = Shell(tmp_path)
    mishap(shell)
    before = print_of(shell)
    done = shell.hermes("doctor")
    assert done.returncode == FAILURE
    assert done.stderr == ""
    findings = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("✓"))
    assert words in findings
    assert "✓ Home" in done.stdout
    assert "The gateway does not run" in done.stdout
    assert print_of(shell) == before


def test_the_doctor_finds_nothing_in_a_house_that_is_in_order(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.hermes("chat", "-q", "Hello")
    done = shell.hermes("doctor")
    assert done.returncode == 0, done.stdout
    assert [line[0] for line in done.stdout.splitlines()] == ["✓"] * 6


# -- the folder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [GATEWAY, LIST])
def test_a_file_in_place_of_the_home_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    shell = Shell(tmp_path)
    in_the_way = tmp_path / "notes"
    in_the_way.write_text("precious")
    told(shell.hermes(*arguments, HERMES_HOME=str(in_the_way)), CONFIGURATION, str(in_the_way), "HERMES_HOME")
    assert in_the_way.read_text() == "precious"


def test_a_home_that_cannot_be_made_is_said_and_is_a_finding(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told(shell.hermes(*LIST, HERMES_HOME="/proc/hermes"), CONFIGURATION, "/proc/hermes", "HERMES_HOME")
    done = shell.hermes(*DOCTOR, HERMES_HOME="/proc/hermes")
    assert done.returncode == FAILURE
    assert "✗ Hermes cannot make its folder /proc/hermes" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_home_of_somebody_else_is_said(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    told(shell.hermes(*LIST, HERMES_HOME=str(closed / "home")), CONFIGURATION, str(closed), "HERMES_HOME")


# -- beside another -------------------------------------------------------------------------------------------------


def test_a_port_in_use_is_said_and_nothing_is_left_running(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        shell = Shell(tmp_path, gateway={"http": {"port": port}})
        told(shell.hermes(*GATEWAY), CONFIGURATION, f"127.0.0.1:{port}", "gateway.http.port")
    assert "does not run" in shell.hermes(*STATUS).stdout


def test_a_second_gateway_is_told_who_was_first_and_the_first_goes_on(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with shell.gateway() as first:
        told(shell.hermes(*GATEWAY), CONFIGURATION, f"process {first.pid}", "HERMES_HOME")
        assert shell.hermes(*STATUS).returncode == 0
        first.send_signal(signal.SIGTERM)
        assert first.wait() == 0
