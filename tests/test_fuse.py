"""A process that makes no progress ends itself, with a trace that says where it stood."""

import signal
import subprocess
import sys
import textwrap

BURNS = """
    import sys, time
    from hermes.gateway.fuse import burning

    def stands_still():
        {body}

    with burning(sys.stderr, 0.2) as fuse:
        stands_still()
    print("left in time")
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(BURNS).format(body=body)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)


def test_who_stands_still_ends_with_a_trace() -> None:
    done = run("time.sleep(30)")
    assert done.returncode == 1
    assert "stands_still" in done.stderr
    assert done.stdout == ""


def test_a_native_call_that_keeps_the_interpreters_lock_is_no_way_out() -> None:
    done = run("import re; re.match(r'(a+)+$', 'a' * 60 + 'b')")  # hours of work in C, without a pause
    assert done.returncode == 1
    assert "stands_still" in done.stderr


def test_who_renews_it_goes_on() -> None:
    done = run("[(time.sleep(0.05), fuse.light(0.5)) for _ in range(10)]")
    assert (done.returncode, done.stdout, done.stderr) == (0, "left in time\n", "")


def test_who_leaves_in_time_is_not_followed() -> None:
    done = run("pass\n    import atexit; atexit.register(time.sleep, 0.5)")
    assert (done.returncode, done.stderr) == (0, "")


def test_who_is_aborted_from_outside_leaves_the_same_trace() -> None:
    done = run("import os; os.abort()")  # what systemd's watchdog does, from inside
    assert done.returncode == -signal.SIGABRT
    assert "stands_still" in done.stderr


def test_a_trace_on_the_way_ends_nothing() -> None:
    done = run("fuse.trace()")
    assert (done.returncode, done.stdout) == (0, "left in time\n")
    assert "stands_still" in done.stderr
