"""Conversations at rest: the SQLite store and everything that is asked of it."""
