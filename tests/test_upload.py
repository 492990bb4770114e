"""`--upload`: traces go to a data set of the person's own, private unless they say otherwise."""

import asyncio
import json
from pathlib import Path

import pytest

from hermes.sessions.store import open_store
from worlds.archive import CHILD, KEY, fill
from worlds.hub import TOKEN, Hub
from worlds.shell import Finished, Shell

EXPORT = ("sessions", "export", "--format", "trace", "--upload")
DATA_SET = "ann/hermes-traces"


async def _fill(path: Path) -> None:
    store = await open_store(path)
    await fill(store)
    await store.close()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    asyncio.run(_fill(shell.home.database))
    return shell


def upload(shell: Shell, hub: Hub, *arguments: str, token: str = TOKEN) -> Finished:
    return shell.hermes(*EXPORT, *arguments, HF_TOKEN=token, HF_ENDPOINT=hub.url, HF_HUB_DISABLE_TELEMETRY="1")


def test_a_trace_goes_to_a_private_data_set(shell: Shell) -> None:
    with Hub().running() as hub:
        done = upload(shell, hub, "--session-id", "proj")
        assert done.returncode == 0, done.stderr
        assert f"private data set {DATA_SET}" in done.stdout
        upload(shell, hub, "--source", "cli", "--include-open")
    assert hub.private == {DATA_SET: True}
    files = hub.files[DATA_SET]
    assert set(files) == {f"sessions/{CHILD}.jsonl", "sessions/20270115_080000_b.jsonl"}
    lines = [json.loads(line) for line in files[f"sessions/{CHILD}.jsonl"].splitlines()]
    assert [line["type"] for line in lines] == ["user", "assistant", "user", "assistant", "user", "user"]
    assert KEY not in files[f"sessions/{CHILD}.jsonl"]


def test_it_is_public_only_when_asked(shell: Shell) -> None:
    with Hub().running() as hub:
        assert "public data set" in upload(shell, hub, "--session-id", "proj", "--public").stdout
    assert hub.private == {DATA_SET: False}


def test_a_data_set_that_is_public_already_gets_nothing_unasked(shell: Shell) -> None:
    with Hub(public=(DATA_SET,)).running() as hub:
        done = upload(shell, hub, "--session-id", "proj")
        assert done.returncode == 1
        assert "is public. Say --public" in done.stderr
    assert hub.files == {DATA_SET: {}}


@pytest.mark.parametrize(("token", "trouble"), [("hf_wrongwrongwrongwrongwrong", None), (TOKEN, 500)])
def test_a_hub_that_refuses_is_told_without_the_token(shell: Shell, token: str, trouble: int | None) -> None:
    with Hub(trouble=trouble).running() as hub:
        done = upload(shell, hub, "--session-id", "proj", token=token)
    assert done.returncode == 1
    assert "The Hub did not take the traces" in done.stderr
    assert token not in done.stderr
    assert "Traceback" not in done.stderr


def test_nobody_at_the_other_end_is_told(shell: Shell) -> None:
    hub = Hub()
    hub.url = "http://127.0.0.1:9"
    done = upload(shell, hub, "--session-id", "proj")
    assert done.returncode == 1
    assert "The Hub did not take the traces" in done.stderr
