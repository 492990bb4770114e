"""The web chat: one page and one socket for the owner, on the gateway's own HTTP server."""

from hermes.adapters.web.adapter import PLATFORM

__all__ = ["PLATFORM"]
