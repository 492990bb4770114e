"""The one set of conditions that prune, archive and export share, as options; and what they come to."""

import argparse
import math
import os
import time
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

from hermes.cli.sessions.moments import Moment, moment
from hermes.cli.table import Arguments, Parameter, option, words
from hermes.home import Home
from hermes.sessions.filters import Filter, Range

DEFAULT_AGE = Moment(seconds=90 * 86_400.0)
"""What `prune` without any condition takes."""

DAY = "5h, 30m, 2d, 1w ago, a number of days, or a date"


def _figure(text: str) -> float:
    try:
        figure = float(text)
    except ValueError:
        figure = math.nan
    if not (math.isfinite(figure) and figure >= 0):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number that is not negative")
    return figure


def _range(name: str, what: str) -> tuple[Parameter, Parameter]:
    return (
        option(f"--min-{name}", metavar="N", type=_figure, does=f"with at least so many {what}"),
        option(f"--max-{name}", metavar="N", type=_figure, does=f"with at most so many {what}"),
    )


FILTERS: tuple[Parameter, ...] = (
    option("--older-than", metavar="WHEN", type=moment, does=f"last active before: {DAY}"),
    option("--newer-than", metavar="WHEN", type=moment, does=f"begun since: {DAY}"),
    option("--before", metavar="WHEN", type=moment, does="the same as --older-than"),
    option("--after", metavar="WHEN", type=moment, does="the same as --newer-than"),
    option("--source", metavar="NAME", type=words, does="came through this entry"),
    option("--title", metavar="TEXT", type=words, does="has this in a title"),
    option("--model", metavar="TEXT", type=words, does="was answered by a model with this in its name"),
    option("--provider", metavar="NAME", type=words, does="was answered through this provider"),
    option("--cwd", metavar="DIR", type=words, does="was held in this folder or below"),
    option("--branch", metavar="TEXT", type=words, does="was held on a git branch with this in its name"),
    option("--user", metavar="ID", type=words, does="belongs to this person"),
    option("--chat-id", metavar="ID", type=words, does="is held in this chat"),
    option("--chat-type", metavar="KIND", type=words, does="is held in a dm, group, channel or thread"),
    option("--end-reason", metavar="TEXT", type=words, does="ended for this reason"),
    *_range("messages", "messages"),
    *_range("tokens", "tokens, read and written"),
    *_range("cost", "US dollars of cost"),
    *_range("tool-calls", "calls of tools"),
)
"""All given ones have to hold; they are asked of whole conversations."""

DRY_RUN = option("--dry-run", action="store_true", does="show what it would take, change nothing")


def zone_of(home: Home) -> tzinfo | None:
    """The configured time zone; None is the system's. Raises ConfigError."""
    from hermes.gateway import config_file

    return config_file.load(home, os.environ).zone


def given(arguments: Arguments) -> dict[str, Any]:
    """The conditions that were given, by the name of their option."""
    values = {one.names[0]: getattr(arguments, one.names[0].strip("-").replace("-", "_")) for one in FILTERS}
    return {name: value for name, value in values.items() if value is not None}


def wanted(home: Home, conditions: Mapping[str, Any], *, archived: bool | None) -> Filter:
    """The filter behind the conditions. Raises UserError for a window in which nothing can lie."""

    def bound(name: str) -> Range:
        return Range(least=conditions.get(f"--min-{name}"), most=conditions.get(f"--max-{name}"))

    now, zone = time.time(), None
    moments = [value for value in conditions.values() if isinstance(value, Moment)]
    if any(one.date is not None and one.date.tzinfo is None for one in moments):
        zone = zone_of(home)
    ends = [conditions[name].at(now, zone) for name in ("--older-than", "--before") if name in conditions]
    begins = [conditions[name].at(now, zone) for name in ("--newer-than", "--after") if name in conditions]
    folder = conditions.get("--cwd")
    return Filter(
        before=min(ends, default=None),
        after=max(begins, default=None),
        source=conditions.get("--source"),
        title=conditions.get("--title"),
        model=conditions.get("--model"),
        branch=conditions.get("--branch"),
        provider=conditions.get("--provider"),
        cwd=None if folder is None else str(Path(folder).expanduser().absolute()),
        user=conditions.get("--user"),
        chat_id=conditions.get("--chat-id"),
        chat_kind=conditions.get("--chat-type"),
        end_reason=conditions.get("--end-reason"),
        messages=bound("messages"),
        tokens=bound("tokens"),
        cost=bound("cost"),
        tool_calls=bound("tool-calls"),
        archived=archived,
    )
