"""The OpenAI-compatible API: `/v1/chat/completions`, `/v1/responses` and `/v1/models` as a chat platform."""

from hermes.adapters.api_server.adapter import ApiServerConfig, open_api_server
from hermes.adapters.base import Platform

PLATFORM = Platform(name="api_server", config=ApiServerConfig, open=open_api_server)
