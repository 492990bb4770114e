"""Thinking: the turn's loop between a model and its tools, and the prompt that starts it."""
