"""The log: one event a line, JSON for machines or coloured for a terminal, scrubbed of every secret.

Libraries that log through the standard library come out the same way. Fields of the turn at hand are bound with
`structlog.contextvars.bound_contextvars`; they are for reading logs only, nothing is decided by them.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from hermes.redact import Redactor

CHATTY = ("aiohttp.access", "anthropic", "asyncio", "discord", "httpcore", "httpx", "openai", "slack_sdk", "urllib3")
"""Libraries that tell of every request, with addresses that hold tokens. Only their warnings are kept."""


def configure(redactor: Redactor, *, stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    """Send structlog's and the standard library's events to `stream`. Calling it again replaces what was set up."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                Scrub(redactor),
                _renderer(stream),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


class Scrub:
    """A structlog processor: takes the secrets out of every field, tracebacks included.

    What is no plain value is turned into text first, so that nothing passes by way of its repr.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        scrubbed = self._redactor.value({name: _plain(value) for name, value in event.items()})
        assert isinstance(scrubbed, dict)
        return scrubbed


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case _:
            return repr(value)


def _renderer(stream: TextIO) -> Processor:
    if stream.isatty():
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(ensure_ascii=False)
