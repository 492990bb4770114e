"""Which platforms are installed, and the one door through which they are loaded: entry points.

Built-in and third-party platforms are found alike, and only the one that is asked for is imported.
"""

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hermes.adapters.base import Platform
from hermes.errors import ConfigError

GROUP = "hermes.platforms"


def names() -> tuple[str, ...]:
    """The installed platforms, sorted. Imports none of them."""
    return tuple(sorted(entry_points(group=GROUP).names))


def platform_of(instance: str) -> str:
    """The platform of a configured instance: `telegram@work` is a `telegram`."""
    return instance.partition("@")[0]


def find(name: str) -> Platform[Any]:
    """The platform called `name`. Raises ConfigError: not installed, its client library missing, or not a platform."""
    entry = _entry(name)
    try:
        platform = entry.load()
    except ImportError as error:
        raise ConfigError(
            f"The platform {name} cannot be loaded: {error}. "
            f"Install what it needs: pip install 'hermes-gateway[{name}]'"
        ) from error
    except AttributeError as error:
        raise ConfigError(f"The platform {name} is broken: {entry.value} is not there ({error}).") from error
    if not isinstance(platform, Platform):
        raise ConfigError(f"The platform {name} is broken: {entry.value} is not a hermes.adapters.base.Platform.")
    return platform


def unknown(name: str, known: tuple[str, ...], *, where: str) -> ConfigError:
    """What to say about a platform that nobody has installed."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Installed are: {', '.join(known)}."
    return ConfigError(f"{where}: there is no platform {name!r}. {hint}")


def _entry(name: str) -> EntryPoint:
    found = {entry.value: entry for entry in entry_points(group=GROUP, name=name)}
    if not found:
        raise unknown(name, names(), where="platforms")
    if len(found) > 1:
        raise ConfigError(f"Several packages offer the platform {name}: {', '.join(found)}. Uninstall all but one.")
    return next(iter(found.values()))
