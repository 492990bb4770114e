"""`hermes insights`: what was spent, on what, and when."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from hermes.cli.columns import cut, fit
from hermes.cli.sessions.flags import zone_of
from hermes.cli.store import readable
from hermes.home import Home
from hermes.sessions.database import snapshot
from hermes.sessions.insights import Insights, Share, insights
from hermes.sessions.model import Usage

DAY = 86_400
BAR = 30
"""Columns of the longest bar."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def show(home: Home, *, days: int, as_json: bool) -> None:
    """Print the figures of the last `days`. Raises UserError without a store."""
    zone = zone_of(home)
    with readable(home) as connection, snapshot(connection):
        found = insights(connection, time.time() - days * DAY, zone)
    print(json.dumps(asdict(found), ensure_ascii=False, indent=1) if as_json else "\n".join(_page(found, days)))


def _page(found: Insights, days: int) -> list[str]:
    if not found.messages:
        return [f"Nothing was said in the last {days} days. Look further back with --days."]
    return [
        f"Active in the last {days} days: {found.sessions} conversations with {found.messages} messages in all",
        _spent(found.usage),
        *_table("Model", found.models),
        *_table("Source", found.sources),
        *(["", "Tools"] if found.tools else []),
        *(f"  {fit(name, 28)} {count:>7}" for name, count in found.tools),
        "",
        "When people write",
        *_bars({WEEKDAYS[day]: found.weekdays.get(day, 0) for day in range(7)}),
        *_bars({f"{hour:02d}:00": found.hours[hour] for hour in range(24) if found.hours.get(hour)}),
    ]


def _spent(usage: Usage) -> str:
    cached = f", {usage.cache_read_tokens:,} from a cache" if usage.cache_read_tokens else ""
    cost = f", ${usage.cost_usd:.2f}" if usage.cost_usd else ""
    return f"Tokens: {usage.input_tokens:,} read{cached}, {usage.output_tokens:,} written{cost}"


def _table(heading: str, shares: Sequence[Share]) -> list[str]:
    lines = [
        f"  {fit(cut(one.name, 28), 28)} {one.sessions:>7} {one.messages:>9} "
        f"{one.usage.input_tokens + one.usage.output_tokens:>12,} {one.usage.cost_usd:>9.2f}"
        for one in shares
    ]
    return ["", f"{fit(heading, 30)} {'talks':>7} {'messages':>9} {'tokens':>12} {'USD':>9}", *lines]


def _bars(figures: Mapping[str, int]) -> list[str]:
    most = max(figures.values(), default=0) or 1
    return [f"  {name:<6} {'█' * round(BAR * figure / most):<{BAR}} {figure}" for name, figure in figures.items()]
