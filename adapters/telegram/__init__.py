"""Telegram by long polling, on python-telegram-bot: its client and its types, none of its loops."""

from hermes.adapters.telegram.adapter import PLATFORM

__all__ = ["PLATFORM"]
