"""Opening the platforms that are on."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from hermes.adapters import registry
from hermes.adapters.base import Bookmark, PlatformAdapter, Surroundings
from hermes.clock import Clock
from hermes.gateway import commands
from hermes.gateway.choices import enabled_platforms
from hermes.gateway.config import Config
from hermes.gateway.config_file import settings_for
from hermes.home import Home
from hermes.sessions.ports import Store
from hermes.texts import LANGUAGES, Language, Texts

OWN_NAME = "hermes"
"""What the agent is called in lists of models."""


class StoredBookmarks:
    """An adapter's bookmarks, kept in the store."""

    def __init__(self, store: Store, instance: str, clock: Clock) -> None:
        self._kept = store.bookmarks
        self._instance = instance
        self._clock = clock

    async def find(self, name: str) -> Bookmark | None:
        found = await self._kept.find(self._instance, name)
        return None if found is None else Bookmark(*found)

    async def keep(self, name: str, value: str) -> None:
        await self._kept.keep(self._instance, name, value, at=self._clock.now())


async def opened(
    config: Config, environ: Mapping[str, str], *, home: Home, store: Store, clock: Clock, stack: AsyncExitStack
) -> dict[str, PlatformAdapter]:
    """An adapter for each platform that is on, by instance name; `stack` closes them. Raises ConfigError."""
    adapters: dict[str, PlatformAdapter] = {}
    for instance in enabled_platforms(config, environ):
        platform = registry.find(registry.platform_of(instance))
        settings = settings_for(instance, config, platform.config, environ)
        surroundings = Surroundings(
            instance=instance,
            clock=clock,
            cache=home.cache,
            bookmarks=StoredBookmarks(store, instance, clock),
            model_name=OWN_NAME,
            menu={language: commands.menu(Texts(language)) for language in _languages(config)},
        )
        adapters[instance] = await stack.enter_async_context(platform.open(settings, surroundings))
    return adapters


def _languages(config: Config) -> tuple[Language, ...]:
    """The first is for whoever speaks none of them."""
    return LANGUAGES if config.language == "auto" else (config.language,)
