"""From the configuration to a model that answers. Each vendor's module is imported when it is chosen."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from hermes.agent.models.base import ChatModel
from hermes.agent.models.priced import Price, Priced
from hermes.agent.models.retry import Patient, WithFallback
from hermes.clock import Clock
from hermes.gateway.choices import DEFAULT_MODELS, ModelChoice, choose_auxiliary
from hermes.gateway.config import Config, ModelBlock


def build(choice: ModelChoice, fallback: ModelChoice | None, block: ModelBlock, clock: Clock) -> ChatModel:
    """The chosen model with patience, behind it the fallback, and on both the configured prices.

    Raises ConfigError for a bad script.
    """
    model: ChatModel = Patient(_MAKERS[choice.provider](choice, clock), clock)
    if fallback is not None:
        model = WithFallback(model, Patient(_MAKERS[fallback.provider](fallback, clock), clock))
    prices = {name: Price(input=price.input, output=price.output) for name, price in block.prices.items()}
    return Priced(model, prices) if prices else model


def for_titles(
    config: Config, environ: Mapping[str, str], main: ModelChoice, model: ChatModel, clock: Clock, stack: AsyncExitStack
) -> ChatModel | None:
    """The model that names conversations, closed with `stack`: `model` itself where it is the same, None for none.

    Raises ConfigError.
    """
    choice = choose_auxiliary(config.auxiliary.title, config, environ, "auxiliary.title")
    if choice is None or replace(choice, why="") == replace(main, why=""):
        return None if choice is None else model
    other = build(choice, None, config.model, clock)
    stack.push_async_callback(other.close)
    return other


def _openai(choice: ModelChoice, _clock: Clock) -> ChatModel:
    from hermes.agent.models.openai import OpenAIChat

    return OpenAIChat(choice.name, choice.api_key, choice.base_url, choice.context_length)


def _anthropic(choice: ModelChoice, _clock: Clock) -> ChatModel:
    from hermes.agent.models.anthropic import AnthropicChat

    return AnthropicChat(choice.name, choice.api_key or "", choice.base_url, choice.context_length)


def _local(_choice: ModelChoice, _clock: Clock) -> ChatModel:
    from hermes.agent.models.local import LocalChat

    return LocalChat()


def _scripted(choice: ModelChoice, clock: Clock) -> ChatModel:
    """`model.name` is the path of the script; left at its default, the model echoes."""
    from hermes.agent.models.scripted import ECHO, ScriptedChat, load

    rules = ECHO if choice.name == DEFAULT_MODELS["scripted"] else load(Path(choice.name))
    return ScriptedChat(clock, rules)


_MAKERS: Mapping[str, Callable[[ModelChoice, Clock], ChatModel]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "local": _local,
    "scripted": _scripted,
}
