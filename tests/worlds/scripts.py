"""Scripted models for scenes in which the words do not matter."""

from hermes.agent.models.scripted import Rule, ScriptedChat
from hermes.clock import Clock, SystemClock


def echo(clock: Clock | None = None, *, delay: float = 0.0, context_length: int = 128_000) -> ScriptedChat:
    """Says what it heard, after `delay` seconds."""
    rule = Rule(say="heard: {text}", delay=delay)
    return ScriptedChat(clock or SystemClock(), (rule,), context_length=context_length)
