"""The log: one line an event, from every library, without a secret in it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.contextvars import bound_contextvars

from hermes.gateway import log
from hermes.redact import Redactor

TELEGRAM = "https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/getUpdates"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in log.CHATTY:
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


@pytest.fixture
def out() -> io.StringIO:
    stream = io.StringIO()
    log.configure(Redactor(["opensesame"]), stream=stream)
    return stream


def events(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_event_is_a_line_of_json(out: io.StringIO) -> None:
    structlog.get_logger("hermes.test").info("turn_started", inbounds=2, chat="你好")
    (event,) = events(out)
    assert event.pop("timestamp").endswith("Z")
    assert event == {"event": "turn_started", "level": "info", "logger": "hermes.test", "inbounds": 2, "chat": "你好"}
    assert "你好" in out.getvalue()


def test_fields_of_the_turn_come_along(out: io.StringIO) -> None:
    with bound_contextvars(turn="t-1", session="s-1"):
        structlog.get_logger().info("inside")
        logging.getLogger("library").warning("inside too")
    structlog.get_logger().info("outside")
    assert [event.get("turn") for event in events(out)] == ["t-1", "t-1", None]


def test_libraries_come_out_the_same_way(out: io.StringIO) -> None:
    logging.getLogger("library").warning("lost %s of %d", "one", 2, extra={"host": "h"})
    (event,) = events(out)
    assert (event["event"], event["level"], event["logger"], event["host"]) == (
        "lost one of 2",
        "warning",
        "library",
        "h",
    )


def test_secrets_leave_no_trace_in_any_field(out: io.StringIO) -> None:
    structlog.get_logger().info("opensesame", url=TELEGRAM, headers={"x": ["opensesame"]}, odd=ValueError("opensesame"))
    logging.getLogger("library").error("failed: %s", TELEGRAM)
    assert "opensesame" not in out.getvalue()
    assert "AAHdqTcv" not in out.getvalue()
    assert len(events(out)) == 2


def test_tracebacks_are_scrubbed_too(out: io.StringIO) -> None:
    def fail() -> None:
        raise RuntimeError(f"cannot reach {TELEGRAM}")

    try:
        fail()
    except RuntimeError:
        structlog.get_logger().exception("poll_failed")
        logging.getLogger("library").exception("poll failed")
    first, second = events(out)
    for event in (first, second):
        assert "Traceback" in event["exception"]
        assert "RuntimeError: cannot reach https://api.telegram.org/bot1234…w0/getUpdates" in event["exception"]


def test_clients_that_tell_of_every_request_are_quiet(out: io.StringIO) -> None:
    logging.getLogger("httpx").info("HTTP Request: GET %s", TELEGRAM)
    logging.getLogger("httpx").warning("slow")
    assert [event["event"] for event in events(out)] == ["slow"]


def test_what_is_below_the_level_is_not_shown(out: io.StringIO) -> None:
    structlog.get_logger().debug("detail")
    assert events(out) == []


def test_a_terminal_is_spoken_to_in_lines_for_people() -> None:
    stream = Terminal()
    log.configure(Redactor(["opensesame"]), stream=stream)
    structlog.get_logger().warning("opensesame failed", chat=7)
    shown = stream.getvalue()
    assert "*** failed" in shown
    assert not shown.startswith("{")


def test_configuring_again_replaces_what_was_there(out: io.StringIO) -> None:
    second = io.StringIO()
    log.configure(Redactor(), stream=second)
    structlog.get_logger().info("once")
    assert out.getvalue() == ""
    assert len(events(second)) == 1
