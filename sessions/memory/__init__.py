"""The store's in-memory twin: every promise of sessions/ports.py in plain dicts, for tests and for trying things out.

Operations never wait, so on one event loop each is a transaction by itself. Nothing outlives the process.
"""

from hermes.sessions.memory.store import MemoryStore

__all__ = ["MemoryStore"]
