"""The `hermes` command's door. `--version` never sees the command line's library: start-up time is a feature."""

import sys
from collections.abc import Sequence
from itertools import zip_longest

from hermes import __version__

FAILURE = 1
RESTART_WANTED = 75
CONFIGURATION = 78
"""sysexits.h EX_CONFIG: the service manager does not restart on it."""


GO_ON = {"-c", "--continue"}


def with_values(arguments: Sequence[str]) -> list[str]:
    """`-c` may come with a name or without; the command line's library wants one, so it gets an empty one."""
    full: list[str] = []
    for argument, following in zip_longest(arguments, arguments[1:]):
        full.append(argument)
        if argument in GO_ON and (following is None or following.startswith("-")):
            full.append("")
    return full


def main() -> None:
    """Run the command and exit with its code; an expected error is one sentence on stderr, never a traceback."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"hermes {__version__}")
        return
    from hermes.cli.commands import app
    from hermes.errors import ConfigError, HermesError

    try:
        app(args=with_values(sys.argv[1:]), prog_name="hermes")
    except ConfigError as error:
        print(f"hermes: {error}", file=sys.stderr)
        sys.exit(CONFIGURATION)
    except HermesError as error:
        print(f"hermes: {error}", file=sys.stderr)
        sys.exit(FAILURE)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left; there is nobody to tell
        sys.exit(FAILURE)
