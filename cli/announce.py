"""What `hermes gateway run` prints when it takes messages."""

import sys
from typing import TYPE_CHECKING

from hermes.home import Home

if TYPE_CHECKING:
    from hermes.gateway.daemon import Announce, Started


def announce(home: Home) -> "Announce":
    """Says where the page is. The one-time code goes to a terminal only, never into a log."""

    def say(started: "Started") -> None:
        url = started.address.url
        page = f"{url}#code={started.code}" if sys.stdout.isatty() else url
        lines = [
            f"Hermes is ready. Web chat: {page}",
            f"The lasting secret for the page and the API lies in {home.web_token}",
            started.model,
        ]
        if started.warning is not None:
            lines.append(f"Note: {started.warning}")
        print("\n".join(lines), flush=True)

    return say
