"""The adapter: one poll after another in, plain calls out."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import structlog
from telegram import Bot, BotCommand, LinkPreviewOptions, ReplyParameters, Update
from telegram.constants import ChatAction
from telegram.error import BadRequest, TelegramError
from telegram.request import HTTPXRequest

from hermes.adapters.base import (
    ChatKind,
    Emit,
    Limits,
    Origin,
    Outbound,
    Platform,
    PlatformAdapter,
    Pulse,
    Receipt,
    Surroundings,
)
from hermes.adapters.split import utf16
from hermes.adapters.telegram.config import TelegramConfig
from hermes.adapters.telegram.decode import GENERAL, Me, decode
from hermes.adapters.telegram.errors import meaning, translated
from hermes.adapters.telegram.render import LONGEST, measure, render
from hermes.errors import Refusal, Rejected, Unreachable

log = structlog.get_logger(__name__)

T = TypeVar("T")

OFFICIAL = "https://api.telegram.org"

UPDATES = '["message","channel_post"]'
"""The kinds of updates that are asked for, as JSON."""

EDITS_PER_MINUTE = 20
"""In a group; Telegram's FAQ for bots names this limit for messages, and counts edits along."""

FRESH_DAYS = 6.0
"""Days for which an offset holds. "If there are no new updates for at least a week, then identifier of the next update
will be chosen randomly instead of sequentially" (Bot API, Update): an old offset could then lie above new updates, and
the server would forget them unread.
"""

NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long things may take, in seconds."""

    poll: float = 30.0
    """The server holds a poll open for so long when nothing happens."""
    answer: float = 20.0
    """An answer may take so long; that of a poll, on top of the time it is held."""
    connect: float = 10.0

    @property
    def silence(self) -> float:
        """More than two polls in a row can take: the line is dead."""
        return 2 * (self.poll + self.answer)


class Telegram:
    """One bot. `sends` carries everything but polls, which get a connection of their own each time we listen."""

    def __init__(
        self, config: TelegramConfig, around: Surroundings, sends: HTTPXRequest, patience: Patience | None = None
    ) -> None:
        self.limits = Limits(text=LONGEST, measure=measure, edits_per_minute=EDITS_PER_MINUTE)
        self._patience = patience or Patience()
        self.pulse = Pulse(around.clock, silence=self._patience.silence)
        self._config = config
        self._around = around
        self._bot = self._client(sends)

    def _client(self, request: HTTPXRequest) -> Bot:
        server = self._config.base_url or OFFICIAL
        return Bot(
            self._config.token.get_secret_value(),
            base_url=f"{server}/bot",
            base_file_url=f"{server}/file/bot",
            request=request,
            get_updates_request=request,
        )

    # -- in ---------------------------------------------------------------------------------------------------------

    async def listen(self, emit: Emit) -> None:
        """Introduce ourselves, then hand over one update after another.

        An update is acknowledged by the next poll, which asks for what comes after it: never before it is safe.
        """
        async with HTTPXRequest(
            connection_pool_size=2, read_timeout=self._patience.answer, connect_timeout=self._patience.connect
        ) as request:
            bot = self._client(request)
            me = await self._read(request, f"{bot.base_url}/getMe", _me, within=self._patience.answer)
            with translated(self._around.instance):
                await bot.delete_webhook()  # while there is one, nobody may poll; what waits is kept
                await self._offer_commands(bot)
            self.pulse.beat()
            await self._poll(bot, request, emit, me)

    async def _offer_commands(self, bot: Bot) -> None:
        """The menu of commands: the first language is for everybody who speaks none of the others."""
        for number, (language, lines) in enumerate(self._around.menu.items()):
            commands = [BotCommand(name, line) for name, line in lines.items()]
            try:
                if number == 0:
                    await bot.set_my_commands(commands)
                await bot.set_my_commands(commands, language_code=language)
            except BadRequest as error:
                log.warning("telegram.no_menu", adapter=self._around.instance, reason=error.message)

    async def _poll(self, bot: Bot, request: HTTPXRequest, emit: Emit, me: Me) -> None:
        place = f"offset:{me.id}"  # another bot's updates have numbers of their own
        offset, moved_at = await self._remembered(place)
        while True:
            if self._around.clock.now() - moved_at > FRESH_DAYS * 86400:
                offset = None
            updates = await self._updates(bot, request, offset)
            self.pulse.beat()
            for raw in updates:
                await self._hand_over(raw, bot, emit, me)
                self.pulse.beat()
                offset = int(raw["update_id"]) + 1
            if updates:
                moved_at = self._around.clock.now()
                await self._around.bookmarks.keep(place, str(offset))

    async def _remembered(self, place: str) -> tuple[int | None, float]:
        """The offset that was kept last, and when."""
        found = await self._around.bookmarks.find(place)
        return (None, self._around.clock.now()) if found is None else (int(found.value), found.at)

    async def _updates(self, bot: Bot, request: HTTPXRequest, offset: int | None) -> list[Mapping[str, Any]]:
        """The answer to one poll, unread: one update that the library cannot read must not hold up the others."""
        asked = {"timeout": int(self._patience.poll), "allowed_updates": UPDATES}
        query = urlencode(asked if offset is None else {**asked, "offset": offset})
        wait = self._patience.poll + self._patience.answer
        return await self._read(request, f"{bot.base_url}/getUpdates?{query}", _in_order, within=wait)

    async def _read(self, request: HTTPXRequest, url: str, read: Callable[[Any], T], *, within: float) -> T:
        """What `read` makes of an answer: of what we need and no more, so that odd servers do as well."""
        try:
            with translated(self._around.instance):
                return read(await request.post(url=url, read_timeout=within))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = self._around.instance
            raise Unreachable(name, "the server's answer is none of the Bot API's") from error

    async def _hand_over(self, raw: Mapping[str, Any], bot: Bot, emit: Emit, me: Me) -> None:
        try:
            event = decode(Update.de_json(dict(raw), bot), instance=self._around.instance, me=me)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            log.warning("telegram.unreadable", update=raw["update_id"], kinds=sorted(raw), reason=repr(error))
            return
        if event is not None:
            await emit(event)

    # -- out --------------------------------------------------------------------------------------------------------

    async def send(self, out: Outbound) -> Receipt:
        """Show one message, formatted by entities. Raises PlatformError."""
        text, entities = render(out)
        self._refuse_if_too_long(text)
        with translated(self._around.instance):
            message = await self._bot.send_message(
                chat_id=out.origin.chat_id,
                text=text,
                entities=entities,
                message_thread_id=_thread(out.origin),
                reply_parameters=_reply(out),
                link_preview_options=NO_PREVIEW,
            )
        return Receipt((str(message.message_id),))

    async def edit(self, message_id: str, out: Outbound) -> None:
        """Make a message show `out` instead. Raises PlatformError."""
        text, entities = render(out)
        self._refuse_if_too_long(text)
        try:
            await self._bot.edit_message_text(
                text,
                chat_id=out.origin.chat_id,
                message_id=int(message_id),
                entities=entities,
                link_preview_options=NO_PREVIEW,
            )
        except TelegramError as error:
            if not (isinstance(error, BadRequest) and "message is not modified" in error.message.lower()):
                raise meaning(self._around.instance, error) from error

    async def typing(self, origin: Origin) -> None:
        """Show "typing" for five seconds. Raises PlatformError."""
        with translated(self._around.instance):
            await self._bot.send_chat_action(origin.chat_id, ChatAction.TYPING, message_thread_id=_thread(origin))

    def _refuse_if_too_long(self, text: str) -> None:
        if utf16(text) > LONGEST:
            raise Rejected(self._around.instance, Refusal.TOO_LONG)


def _me(answer: Any) -> Me:
    return Me(id=int(answer["id"]), username=answer.get("username") or "")


def _in_order(answer: Any) -> list[Mapping[str, Any]]:
    return sorted(answer, key=lambda raw: int(raw["update_id"]))


def _thread(origin: Origin) -> int | None:
    """The topic to write into. The General topic is addressed by naming none."""
    if origin.thread_id is None or (origin.thread_id == GENERAL and origin.kind is not ChatKind.DIRECT):
        return None
    return int(origin.thread_id)


def _reply(out: Outbound) -> ReplyParameters | None:
    """Which message it answers; a message that was deleted meanwhile is no reason to keep the answer back."""
    return ReplyParameters(int(out.reply_to), allow_sending_without_reply=True) if out.reply_to else None


@asynccontextmanager
async def open_telegram(config: TelegramConfig, around: Surroundings) -> AsyncIterator[PlatformAdapter]:
    """The adapter, with the connections that its messages go out by."""
    for name in ("httpx", "httpcore", "telegram"):
        # The first two log each address, of which the token is a part; the last one, answers that it cannot read.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    patience = Patience()
    async with HTTPXRequest(read_timeout=patience.answer, connect_timeout=patience.connect) as sends:
        yield Telegram(config, around, sends, patience)


PLATFORM = Platform(name="telegram", config=TelegramConfig, open=open_telegram)
