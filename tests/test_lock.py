"""One gateway a home."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.gateway.lock import Holder, holder, only_gateway

HOLD = """
import sys, time
from pathlib import Path
from hermes.gateway.lock import only_gateway
with only_gateway(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_gateway_is_told_who_was_first(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    with only_gateway(path) as listens_at:
        with pytest.raises(ConfigError, match=f"process {os.getpid()}"), only_gateway(path):
            pass
        assert holder(path) == Holder(process=os.getpid())
        listens_at("http://127.0.0.1:8642/", "a-key")
        assert holder(path) == Holder(process=os.getpid(), url="http://127.0.0.1:8642/", key="a-key")
    assert holder(path) is None


def test_a_killed_gateway_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert holder(path) == Holder(process=child.pid)
        child.send_signal(signal.SIGKILL)
        child.wait()
        with only_gateway(path):
            assert holder(path) == Holder(process=os.getpid())


def test_without_a_lock_file_nobody_holds_it(tmp_path: Path) -> None:
    assert holder(tmp_path / "gateway.lock") is None
