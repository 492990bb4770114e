"""What follows from the configuration and the environment: which model answers, which platforms are on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from hermes.adapters import registry
from hermes.errors import ConfigError
from hermes.gateway.config import AuxiliaryModel, Config, ModelBlock

DEFAULT_MODELS = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "local": "SmolLM2-135M-Instruct",
    "scripted": "scripted",
}
"""Used where `model.name` is null: sensible for a chat agent in price and speed when this was written (2026-11)."""

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Where each provider's key is looked for when the configuration has none; in this order for `auto`."""

OPENROUTER = "https://openrouter.ai/api/v1"

CONTEXT_LENGTHS = {"local": 8192, "scripted": 128_000}
"""Tokens, where they are known beforehand by provider. Others are asked, else DEFAULT_CONTEXT_LENGTH."""
DEFAULT_CONTEXT_LENGTH = 128_000

ALWAYS_ON = ("api_server", "web")
"""On unless `enabled: false`: they need no credentials."""

CREDENTIALS = {
    "discord": {"token": "DISCORD_BOT_TOKEN"},
    "slack": {"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"},
    "telegram": {"token": "TELEGRAM_BOT_TOKEN"},
}
"""The settings of a platform that the environment can hold; with all of them there, the platform is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model that answers. `context_length` None: ask the server, else DEFAULT_CONTEXT_LENGTH."""

    provider: str
    """openai, anthropic, local or scripted."""
    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    context_length: int | None = None
    max_output_tokens: int | None = None
    why: str
    """A sentence for people: what was chosen, and because of what."""


def choose_model(config: Config, environ: Mapping[str, str]) -> ModelChoice:
    """What `model:` comes to: as configured, else by the keys at hand, else the embedded one.

    Raises ConfigError when the configured provider has no key.
    """
    return _choose(config.model, environ, "model")


def choose_fallback(config: Config, environ: Mapping[str, str]) -> ModelChoice | None:
    """The same for `model.fallback`, if there is one."""
    block = config.model.fallback
    return None if block is None else _choose(block, environ, "model.fallback")


def choose_auxiliary(
    block: AuxiliaryModel, config: Config, environ: Mapping[str, str], where: str
) -> ModelChoice | None:
    """The model for a side task; None: the task is done without one, because the block says `none`.

    `auto` and `main` are the model that answers; a name or an address in the block changes that alone. Raises
    ConfigError for a provider that is not known, or has no key.
    """
    if block.provider == "none":
        return None
    main = choose_model(config, environ)
    if block.provider in {"auto", "main"}:
        return replace(main, name=block.model or main.name, base_url=block.base_url or main.base_url)
    if block.provider == "openrouter":
        given = ModelBlock(provider="openai", name=block.model or None, base_url=block.base_url or OPENROUTER)
        return replace(_choose(given, environ, where), api_key=environ.get("OPENROUTER_API_KEY"))
    if block.provider not in DEFAULT_MODELS:
        known = ", ".join(("auto", "main", "none", "openrouter", *DEFAULT_MODELS))
        raise ConfigError(f"config.yaml: {where}.provider: found {block.provider!r}, expected one of {known}.")
    return _choose(
        ModelBlock.model_validate(
            {"provider": block.provider, "name": block.model or None, "base_url": block.base_url}
        ),
        environ,
        where,
    )


def enabled_platforms(
    config: Config, environ: Mapping[str, str], known: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """The instances to run, sorted. `known` are the installed platforms; None asks the registry.

    Raises ConfigError for a configured platform that is not installed.
    """
    known = registry.names() if known is None else known
    for instance in config.platforms:
        if registry.platform_of(instance) not in known:
            raise registry.unknown(registry.platform_of(instance), known, where=f"config.yaml: platforms.{instance}")
    provided = {
        name for name, names in CREDENTIALS.items() if all(environ.get(variable) for variable in names.values())
    }
    candidates = {*config.platforms, *((provided | set(ALWAYS_ON)) & set(known))}
    off = {instance for instance, block in config.platforms.items() if block.enabled is False}
    return tuple(sorted(candidates - off))


def credentials(instance: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Settings that the environment gives a platform. A labelled instance is another account and gets none."""
    return {
        name: environ[variable] for name, variable in CREDENTIALS.get(instance, {}).items() if environ.get(variable)
    }


def _choose(block: ModelBlock, environ: Mapping[str, str], where: str) -> ModelChoice:
    provider, reason = _provider(block, environ)
    key = block.api_key.get_secret_value() if block.api_key else environ.get(KEYS.get(provider, "")) or None
    if provider in KEYS and key is None and block.base_url is None:
        raise ConfigError(
            f"config.yaml: {where} asks for {provider}, but there is no key for it. "
            f"Set {KEYS[provider]} in .env, or {where}.api_key, or choose another {where}.provider."
        )
    name = block.name or DEFAULT_MODELS[provider]
    at = _shown(block.base_url) or {"openai": "OpenAI", "anthropic": "Anthropic"}.get(provider)
    return ModelChoice(
        provider=provider,
        name=name,
        base_url=block.base_url,
        api_key=key if provider in KEYS else None,
        context_length=block.context_length or CONTEXT_LENGTHS.get(provider),
        max_output_tokens=block.max_output_tokens,
        why=f"Model: {name}{f' at {at}' if at else ', embedded' if provider == 'local' else ''}, {reason}.",
    )


def _provider(block: ModelBlock, environ: Mapping[str, str]) -> tuple[str, str]:
    """The provider, and the reason as the end of a sentence."""
    if block.provider != "auto":
        return block.provider, "as configured"
    if block.name or block.base_url or block.api_key:
        is_claude = block.base_url is None and (block.name or "").startswith("claude")
        return ("anthropic" if is_claude else "openai"), "as configured"
    for provider, variable in KEYS.items():
        if environ.get(variable):
            return provider, f"because {variable} is set"
    return "local", (
        "because no key is set: it shows that everything works, but knows little. "
        f"For a capable model set {' or '.join(KEYS.values())} in .env, or `model:` in config.yaml"
    )


def _shown(url: str | None) -> str | None:
    """An address as people may see it: credentials in it stay where they are."""
    if url is None:
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
