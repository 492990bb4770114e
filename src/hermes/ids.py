"""Names for things, not secrets. Every random part is seeded by the system once, every time part is the caller's."""

import itertools
import random
import secrets
from datetime import datetime, tzinfo

TERMINAL_HEX = 6
"""Hex digits behind a session id that a terminal made."""

GATEWAY_HEX = 8
"""Hex digits behind a session id that the gateway made."""


_CHANCE = random.Random(secrets.randbits(256))  # noqa: S311 - names; asking the system for each takes 0.2 ms on some


def session_id(at: float, *, hex_digits: int, zone: tzinfo | None = None) -> str:
    """`YYYYMMDD_HHMMSS_<hex>`, in `zone` (None: the system's), as people see it in lists."""
    stamp = datetime.fromtimestamp(at, zone).strftime("%Y%m%d_%H%M%S")
    return f"{stamp}_{_CHANCE.getrandbits(4 * hex_digits):0{hex_digits}x}"


_PROCESS = secrets.token_hex(6)
_numbers = itertools.count(1)


def fresh(prefix: str) -> str:
    """A name that nobody else has, in any process: `<prefix>-<12 hex digits>-<number>`. Not a secret."""
    return f"{prefix}-{_PROCESS}-{next(_numbers):x}"
