"""Conversations brought in: from an export of another store, and from the logs of other programs."""
