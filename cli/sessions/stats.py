"""`hermes sessions stats`: how much there is."""

import json

from hermes.cli.columns import printable
from hermes.cli.store import readable
from hermes.home import Home
from hermes.sessions.selecting import totals

MEGABYTE = 1_000_000


def show(home: Home, *, as_json: bool) -> None:
    """Print the counts and the size of the file. Raises UserError without a store."""
    with readable(home) as connection:
        found = totals(connection)
        pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    by_source = {source: sessions for source, sessions, _ in found}
    total, messages, size = sum(by_source.values()), sum(one for _, _, one in found), pages * size
    if as_json:
        facts = {"sessions": total, "messages": messages, "by_source": by_source, "bytes": size}
        print(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    lines = [
        f"  {printable(source)}: {number} session{'' if number == 1 else 's'}" for source, number in by_source.items()
    ]
    print(f"Total sessions: {total}", f"Total messages: {messages}", *lines, sep="\n")
    print(f"Database size: {size / MEGABYTE:.1f} MB")
