"""What an update means. Pure: from the client library's types to events."""

from collections.abc import Callable
from dataclasses import dataclass

from telegram import Chat, Message, MessageEntity, Update

from hermes.adapters.base import ChatKind, Inbound, Moved, Origin
from hermes.text import one_line, repair

GENERAL = "1"
"""The thread id of a forum's General topic. Messages in it carry none, and answers to it must not either."""

KINDS = {
    Chat.PRIVATE: ChatKind.DIRECT,
    Chat.GROUP: ChatKind.GROUP,
    Chat.SUPERGROUP: ChatKind.GROUP,
    Chat.CHANNEL: ChatKind.CHANNEL,
}

NAME_CAP = 60
"""Characters of a file's name in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The bot itself."""

    id: int
    username: str
    """Without the @."""


def decode(update: Update, *, instance: str, me: Me) -> Inbound | Moved | None:
    """The event behind an update, or None when it asks for nothing."""
    message = update.message or update.channel_post
    if message is None:
        return None
    moved = _moved(message, instance)
    if moved is not None:
        return moved
    text = _text(message)
    if not text.strip() or _is_noise(message, me) or _is_for_another(message, me):
        return None
    answered = _answered(message)
    return Inbound(
        event_id=f"m:{message.message_id}",
        origin=_origin(message, instance),
        text=text,
        at=message.date.timestamp(),
        reply_to=None if answered is None else str(answered.message_id),
        quoted=None if answered is None else _quote(message, answered),
        mentions_me=_names(message, me) or _is_mine(answered, me),
    )


def _moved(message: Message, instance: str) -> Moved | None:
    """A group becomes a supergroup: the old chat names the new one, and the new one the old."""
    here = message.chat.id
    old, new = message.migrate_from_chat_id or here, message.migrate_to_chat_id or here
    return None if old == new else Moved(platform=instance, chat_id=str(old), to=str(new))


def _is_noise(message: Message, me: Me) -> bool:
    """Our own words and other bots', which would answer each other for ever, and a channel's copies in its group."""
    author = message.from_user
    speaks_as_chat = message.sender_chat is not None  # an anonymous admin comes as a bot of Telegram's own
    is_bot = author is not None and (author.id == me.id or (author.is_bot and not speaks_as_chat))
    return is_bot or bool(message.is_automatic_forward)


def _is_for_another(message: Message, me: Me) -> bool:
    """`/new@another_bot`: every bot of the group is shown it."""
    command = _command(message)
    return "@" in command and command.partition("@")[2].lower() != me.username.lower()


def _command(message: Message) -> str:
    """The command that the message begins with, as it was typed; empty when it begins with none."""
    entities = message.entities or message.caption_entities
    starts = [each for each in entities if each.type == MessageEntity.BOT_COMMAND and each.offset == 0]
    return _covered(message, starts[0]) if starts else ""


def _names(message: Message, me: Me) -> bool:
    return any(_is_me(message, entity, me) for entity in message.entities or message.caption_entities)


def _is_me(message: Message, entity: MessageEntity, me: Me) -> bool:
    match entity.type:
        case MessageEntity.MENTION | MessageEntity.BOT_COMMAND:
            return _covered(message, entity).lower().rpartition("@")[2] == me.username.lower()
        case MessageEntity.TEXT_MENTION:
            return entity.user is not None and entity.user.id == me.id
    return False


def _covered(message: Message, entity: MessageEntity) -> str:
    """The words that an entity covers; it counts UTF-16 units."""
    units = (message.text or message.caption or "").encode("utf-16-le", "surrogatepass")
    return units[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "replace")


def _answered(message: Message) -> Message | None:
    """The message that a person replied to. Whatever is said in a topic formally replies to the topic's beginning."""
    answered = message.reply_to_message
    return None if answered is None or answered.forum_topic_created is not None else answered


def _is_mine(answered: Message | None, me: Me) -> bool:
    return answered is not None and answered.from_user is not None and answered.from_user.id == me.id


def _quote(message: Message, answered: Message) -> str | None:
    """The part that was quoted by hand, else all of it."""
    return repair(message.quote.text) if message.quote is not None else _text(answered) or None


def _origin(message: Message, instance: str) -> Origin:
    chat, author = message.chat, message.from_user
    person = author if message.sender_chat is None else None  # who speaks as a chat is nobody in particular
    return Origin(
        platform=instance,
        chat_id=str(chat.id),
        kind=KINDS[chat.type],
        thread_id=_thread(message),
        user_id=None if person is None else str(person.id),
        chat_name=repair(chat.title or ""),
        user_name="" if person is None else repair(person.full_name),
    )


def _thread(message: Message) -> str | None:
    """The topic. Without one, a thread id is only the anchor of a chain of replies."""
    if message.is_topic_message and message.message_thread_id is not None:
        return str(message.message_thread_id)
    return GENERAL if message.chat.is_forum and message.chat.type == Chat.SUPERGROUP else None


def _text(message: Message) -> str:
    """What was typed; where something else came, a note that says what, above the caption."""
    note = next((found for look in NOTES if (found := look(message))), "")
    words = repair(message.text or message.caption or "")
    return f"{note}\n{words}" if note and words else note or words


def _called(kind: str, name: str | None) -> str:
    return f"[{kind}: {one_line(name, NAME_CAP)}]" if name else f"[{kind}]"


NOTES: tuple[Callable[[Message], str], ...] = (
    lambda message: "[photo]" if message.photo else "",
    lambda message: "[voice message]" if message.voice else "",
    lambda message: _called("audio", message.audio.title or message.audio.file_name) if message.audio else "",
    lambda message: "[animation]" if message.animation else "",
    lambda message: _called("video", message.video.file_name) if message.video else "",
    lambda message: "[video message]" if message.video_note else "",
    lambda message: (
        _called("document", message.document.file_name) if message.document and not message.animation else ""
    ),
    lambda message: f"[sticker {message.sticker.emoji or ''}]".replace(" ]", "]") if message.sticker else "",
    lambda message: "[location]" if message.location else "",
    lambda message: "[contact]" if message.contact else "",
    lambda message: _called("poll", message.poll.question) if message.poll else "",
    lambda message: f"[dice: {message.dice.value}]" if message.dice else "",
)
"""What a message without words, or with a caption, is. The first that fits counts."""
