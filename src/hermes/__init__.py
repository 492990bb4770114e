"""Hermes: talk to one AI agent from the chats you already use; every conversation is kept."""

__version__ = "0.1.0"
