"""The `hermes` command's door. `--version` takes a path of its own: start-up time is a feature."""

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from typing import TypeVar

from hermes import __version__
from hermes.errors import ConfigError, HermesError, SchemaTooNew, StoreUnavailable

Leaf = TypeVar("Leaf", bound=Exception)

FAILURE = 1
CONFIGURATION = 78
"""sysexits.h EX_CONFIG: the service manager does not restart on it."""
INTERRUPTED = 130
"""What shells say of a command that Ctrl-C ended."""

NO_STORE = "⚠ Session store unavailable: "

VERDICTS: Mapping[type[HermesError], tuple[int, str]] = {
    ConfigError: (CONFIGURATION, ""),
    SchemaTooNew: (CONFIGURATION, NO_STORE),
    StoreUnavailable: (FAILURE, NO_STORE),
    HermesError: (FAILURE, ""),
}
"""The exit code of an error and how its sentence begins; the nearest class counts."""


def main() -> None:
    """Run the command and exit with its code; an expected error is one sentence on stderr, never a traceback."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"hermes {__version__}")
        return
    from hermes.cli.commands import parse

    code = 0
    _never_be_without_a_stream()
    _never_fail_at_a_letter()
    try:
        arguments = parse(sys.argv[1:])
        code = arguments.run(arguments)
        sys.stdout.flush()
    except* HermesError as errors:  # a task group may have wrapped them
        code = max(map(_said, _leaves(errors)))
    except* BrokenPipeError:
        code = FAILURE
        _talk_to_nobody()
    except* KeyboardInterrupt:
        code = INTERRUPTED
    except* OSError as errors:
        if not any(_is_full(error) for error in _leaves(errors)):
            raise
        code = FAILURE
        print("hermes: the disk that the output goes to is full.", file=sys.stderr)
        _talk_to_nobody()
    sys.exit(code)


def _said(error: HermesError) -> int:
    """Tell the person; gives the exit code."""
    code, opening = next(VERDICTS[kind] for kind in type(error).__mro__ if kind in VERDICTS)
    print(f"hermes: {opening}{error}", file=sys.stderr)
    return code


def _is_full(error: OSError) -> bool:
    return error.errno == errno.ENOSPC and error.filename is None


def _never_be_without_a_stream() -> None:
    """A stream that was closed before we began (`<&-`, `>&-`) is an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _leaves(errors: BaseExceptionGroup[Leaf]) -> Iterator[Leaf]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _never_fail_at_a_letter() -> None:
    """What the terminal's encoding does not know is shown as `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _talk_to_nobody() -> None:
    """The reader of our output has left (`| head`): what is still buffered must not fail at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
