"""What the two vendors' SDKs have in common: they are slow to import, and they name their errors alike."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Generic, TypeVar

from hermes.agent.models.refusals import Place, Refusal, garbled, silent, unreachable, verdict
from hermes.errors import ConfigError

T = TypeVar("T")

NO_KEY = "none"
"""Sent where no key is configured: without one the SDKs would look for another in the environment."""

STALL_SECONDS = 120.0
"""How long a connection may be silent. Keep-alive bytes count as life: some servers think for minutes and send them."""
CONNECT_SECONDS = 10.0


def clean_key(api_key: str | None, *, model: str) -> str:
    """`api_key` without surrounding blanks, NO_KEY when there is none.

    Raises ConfigError for a key that no HTTP header can carry: it was pasted with something else.
    """
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"The `api_key` of {model} holds characters that no key has. Copy it again into config.yaml.")
    return key or NO_KEY


class OnFirstUse(Generic[T]):
    """A value that is made in a thread when it is first asked for (importing openai alone takes over a second)."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = asyncio.Lock()
        self._value: T | None = None

    async def get(self) -> T:
        """The value; concurrent callers share one."""
        async with self._lock:
            if self._value is None:
                self._value = await asyncio.to_thread(self._make)
            return self._value

    async def take(self) -> T | None:
        """Hands the value over for good, None when there is none. The next `get` makes a new one."""
        async with self._lock:
            value, self._value = self._value, None
            return value


@contextmanager
def translated(sdk: ModuleType, place: Place, stall_seconds: float) -> Iterator[None]:
    """Turns what `sdk` (openai or anthropic) raises into ModelError, `from` the original."""
    import httpx2

    try:
        yield
    except (sdk.APITimeoutError, httpx2.TimeoutException) as error:
        raise silent(place, stall_seconds) from error
    except (sdk.APIConnectionError, httpx2.HTTPError) as error:
        raise unreachable(place) from error
    except sdk.APIStatusError as error:
        raise verdict(Refusal.read(error.status_code, error.body, error.response.headers), place) from error
    except sdk.APIError as error:
        raise verdict(Refusal.read(200, error.body or str(error)), place) from error
    except json.JSONDecodeError as error:
        raise garbled(place) from error
