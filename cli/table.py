"""What a command is, and what its options may hold. Nothing heavy: every start of `hermes` reads this."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes.home import Home, locate, open_home

MOST = 10_000
"""The longest list that is shown at once."""

Arguments = argparse.Namespace
Run = Callable[[Arguments], int]
"""Carries out a command; gives the exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An option (its names begin with a dash) or an argument. `settings` are argparse's."""

    names: tuple[str, ...]
    does: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def add_to(self, parser: argparse.ArgumentParser) -> str:
        """Make `parser` know it; gives the name under which its value is found."""
        return parser.add_argument(*self.names, help=self.does, **self.settings).dest


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `path` is what a person types after `hermes`."""

    path: str
    does: str
    run: Run
    parameters: tuple[Parameter, ...] = ()


def option(*names: str, does: str, **settings: Any) -> Parameter:
    """A parameter that may be left out."""
    return Parameter(names=names, does=does, settings=settings)


def argument(name: str, does: str) -> Parameter:
    """A parameter that must be there."""
    return Parameter(names=(name,), does=does, settings={"metavar": name.upper()})


JSON = option("--json", action="store_true", does="print JSON, for scripts")
YES = option("-y", "--yes", action="store_true", does="do it without asking")


def home() -> Home:
    """The home folder, made when it is missing. Raises ConfigError."""
    return open_home(locate(os.environ))


def count(text: str) -> int:
    """A number of rows."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from 1 to {MOST}")
    return int(text)


def words(text: str) -> str:
    """A text that says something."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text
