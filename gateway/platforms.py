"""Opening the platforms that are on."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from hermes.adapters import registry
from hermes.adapters.base import PlatformAdapter, Surroundings
from hermes.clock import Clock
from hermes.gateway.choices import enabled_platforms
from hermes.gateway.config import Config
from hermes.gateway.config_file import settings_for
from hermes.home import Home

OWN_NAME = "hermes"
"""What the agent is called in lists of models."""


async def opened(
    config: Config, environ: Mapping[str, str], *, home: Home, clock: Clock, stack: AsyncExitStack
) -> dict[str, PlatformAdapter]:
    """An adapter for each platform that is on, by instance name; `stack` closes them. Raises ConfigError."""
    adapters: dict[str, PlatformAdapter] = {}
    for instance in enabled_platforms(config, environ):
        platform = registry.find(registry.platform_of(instance))
        settings = settings_for(instance, config, platform.config, environ)
        surroundings = Surroundings(instance=instance, clock=clock, cache=home.cache, model_name=OWN_NAME)
        adapters[instance] = await stack.enter_async_context(platform.open(settings, surroundings))
    return adapters
