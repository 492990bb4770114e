"""Conversations as files that people and other programs read. Each format is one module that makes text of values."""
