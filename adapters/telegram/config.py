"""The block `platforms.telegram`."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr
from pydantic_core import PydanticCustomError

TOKEN = re.compile(r"\d+:[\w-]+", re.ASCII)
"""What @BotFather hands out: the bot's id, a colon, the secret."""


def _token(token: SecretStr) -> SecretStr:
    if not TOKEN.fullmatch(token.get_secret_value()):
        raise PydanticCustomError("expected", "a bot's token as @BotFather gives it, such as 123456:AbC-dEf")
    return token


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise PydanticCustomError("expected", "an address that starts with http:// or https://")
    return url.rstrip("/")


class TelegramConfig(BaseModel):
    """A bot, and the server that it talks to."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_token)]
    """The bot's token, from @BotFather. Better in `.env` as `TELEGRAM_BOT_TOKEN` than here."""
    base_url: Annotated[str, AfterValidator(_address)] | None = None
    """Another server of the Bot API, such as `http://127.0.0.1:8081`; null: Telegram's own."""
