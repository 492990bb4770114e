"""What an update of Telegram's means: whose words they are, where they belong, and whether the bot is spoken to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Update

from hermes.adapters.base import ChatKind, Inbound, Moved, Origin
from hermes.adapters.telegram.decode import Me, decode

NAME = "telegram"
ME = Me(id=4242, username="hermes_bot")
BOT = {"id": ME.id, "is_bot": True, "first_name": "Hermes", "username": ME.username}
ANN = {"id": 2, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
PRIVATE = {"id": 2, "type": "private", "first_name": "Ann"}
GROUP = {"id": -7, "type": "group", "title": "Lunch"}
SUPERGROUP = {"id": -1007, "type": "supergroup", "title": "Lunch"}
FORUM = {**SUPERGROUP, "is_forum": True}
CHANNEL = {"id": -1008, "type": "channel", "title": "News"}


def said(
    text: str | None = "hi", *, chat: dict[str, Any] = PRIVATE, by: dict[str, Any] = ANN, **facts: Any
) -> dict[str, Any]:
    words = {} if text is None else {"text": text}
    return {"message_id": 5, "date": 1_800_000_000, "chat": chat, "from": by, **words, **facts}


def read(message: dict[str, Any], kind: str = "message") -> Inbound | Moved | None:
    return decode(Update.de_json({"update_id": 1, kind: message}, None), instance=NAME, me=ME)


def heard(message: dict[str, Any], kind: str = "message") -> Inbound:
    event = read(message, kind)
    assert isinstance(event, Inbound)
    return event


def entity(kind: str, text: str, part: str, **facts: Any) -> dict[str, Any]:
    """An entity over `part` of the text, counted as Telegram counts."""
    before = text[: text.index(part)]
    return {
        "type": kind,
        "offset": len(before.encode("utf-16-le")) // 2,
        "length": len(part.encode("utf-16-le")) // 2,
        **facts,
    }


class TestOrigins:
    def test_a_direct_chat(self) -> None:
        event = heard(said())
        assert event.origin == Origin(platform=NAME, chat_id="2", user_id="2", user_name="Ann Lee")
        assert (event.event_id, event.text, event.at) == ("m:5", "hi", 1_800_000_000.0)

    @pytest.mark.parametrize("chat", [GROUP, SUPERGROUP])
    def test_a_group(self, chat: dict[str, Any]) -> None:
        origin = heard(said(chat=chat)).origin
        assert (origin.kind, origin.chat_id, origin.user_id) == (ChatKind.GROUP, str(chat["id"]), "2")
        assert (origin.chat_name, origin.thread_id) == ("Lunch", None)

    def test_a_channel_has_no_person(self) -> None:
        post = {key: value for key, value in said(chat=CHANNEL, sender_chat=CHANNEL).items() if key != "from"}
        origin = heard(post, "channel_post").origin
        assert (origin.kind, origin.user_id, origin.user_name) == (ChatKind.CHANNEL, None, "")

    def test_an_anonymous_admin_is_nobody_in_particular(self) -> None:
        group_bot = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        event = heard(said(chat=SUPERGROUP, sender_chat=SUPERGROUP, by=group_bot))
        assert (event.text, event.origin.user_id) == ("hi", None)

    def test_a_topic_of_a_forum(self) -> None:
        message = said(chat=FORUM, message_thread_id=42, is_topic_message=True)
        assert heard(message).origin.thread_id == "42"

    def test_the_general_topic_is_one_though_nothing_says_so(self) -> None:
        assert heard(said(chat=FORUM)).origin.thread_id == "1"

    def test_the_anchor_of_a_chain_of_replies_is_no_topic(self) -> None:
        assert heard(said(chat=SUPERGROUP, message_thread_id=40)).origin.thread_id is None
        assert heard(said(chat=FORUM, message_thread_id=40)).origin.thread_id == "1"

    def test_a_topic_of_a_direct_chat(self) -> None:
        message = said(message_thread_id=77, is_topic_message=True)
        assert heard(message).origin.thread_id == "77"
        assert heard(said(chat={**PRIVATE, "is_forum": True})).origin.thread_id is None


class TestNoise:
    @pytest.mark.parametrize(
        "message",
        [
            said(by=BOT),
            said(chat=GROUP, by={"id": 9, "is_bot": True, "first_name": "Other"}),
            said(chat=SUPERGROUP, sender_chat=CHANNEL, is_automatic_forward=True),
            said(None, chat=GROUP, new_chat_members=[ANN]),
            said(None, chat=GROUP, pinned_message=said(chat=GROUP)),
            said("  \n "),
            said("/new@another_bot", entities=[{"type": "bot_command", "offset": 0, "length": 16}]),
        ],
    )
    def test_it_is_no_event(self, message: dict[str, Any]) -> None:
        assert read(message) is None

    def test_nor_is_any_other_kind_of_update(self) -> None:
        assert read({**said(), "edit_date": 1_800_000_001}, "edited_message") is None
        assert decode(Update.de_json({"update_id": 1}, None), instance=NAME, me=ME) is None


class TestUpgrades:
    def test_either_side_tells_old_and_new(self) -> None:
        moved = Moved(platform=NAME, chat_id="-7", to="-1007")
        assert read(said(None, chat=GROUP, migrate_to_chat_id=-1007)) == moved
        assert read(said(None, chat=SUPERGROUP, migrate_from_chat_id=-7)) == moved


class TestMentions:
    @pytest.mark.parametrize(
        ("text", "part", "mine"),
        [
            ("@hermes_bot hi", "@hermes_bot", True),
            ("😀😀 hi @Hermes_Bot!", "@Hermes_Bot", True),
            ("@hermes_bot2 hi", "@hermes_bot2", False),
            ("@hermes hi", "@hermes", False),
        ],
    )
    def test_by_name(self, text: str, part: str, mine: bool) -> None:
        event = heard(said(text, chat=GROUP, entities=[entity("mention", text, part)]))
        assert (event.mentions_me, event.text) == (mine, text)

    def test_a_name_that_is_only_written_is_no_mention(self) -> None:
        assert not heard(said("ask hermes_bot", chat=GROUP)).mentions_me

    def test_in_the_caption_of_a_photo(self) -> None:
        text = "@hermes_bot what is this?"
        photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
        message = said(None, chat=GROUP, photo=photo, caption=text)
        message["caption_entities"] = [entity("mention", text, "@hermes_bot")]
        event = heard(message)
        assert (event.mentions_me, event.text) == (True, f"[photo]\n{text}")

    @pytest.mark.parametrize(("user", "mine"), [(BOT, True), (ANN, False)])
    def test_by_a_link_to_somebody_without_a_name(self, user: dict[str, Any], mine: bool) -> None:
        text = "you there"
        message = said(text, chat=GROUP, entities=[entity("text_mention", text, "you", user=user)])
        assert heard(message).mentions_me is mine

    def test_by_a_command_with_its_name(self) -> None:
        text = "/new@hermes_bot trip"
        event = heard(said(text, chat=GROUP, entities=[entity("bot_command", text, "/new@hermes_bot")]))
        assert (event.mentions_me, event.text) == (True, text)

    def test_by_a_reply_to_its_words(self) -> None:
        answer = said("42", chat=GROUP, by=BOT)
        event = heard(said("why?", chat=GROUP, reply_to_message=answer))
        assert (event.mentions_me, event.reply_to, event.quoted) == (True, "5", "42")

    def test_not_by_a_reply_to_somebody_else(self) -> None:
        event = heard(said("why?", chat=GROUP, reply_to_message=said("lunch?", chat=GROUP)))
        assert (event.mentions_me, event.quoted) == (False, "lunch?")


class TestQuotes:
    def test_the_part_that_was_chosen_by_hand_is_the_quote(self) -> None:
        whole = said("a long story", chat=GROUP)
        event = heard(said("no", reply_to_message=whole, quote={"text": "long", "position": 2}))
        assert event.quoted == "long"

    def test_a_photo_without_words_is_named(self) -> None:
        photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
        assert heard(said("nice", reply_to_message=said(None, photo=photo))).quoted == "[photo]"

    def test_what_is_said_in_a_topic_is_no_reply_to_its_beginning(self) -> None:
        begin = said(None, chat=FORUM, forum_topic_created={"name": "Trip", "icon_color": 0}, by=BOT)
        event = heard(said(chat=FORUM, message_thread_id=5, is_topic_message=True, reply_to_message=begin))
        assert (event.reply_to, event.quoted, event.mentions_me) == (None, None, False)


class TestMedia:
    @pytest.mark.parametrize(
        ("media", "note"),
        [
            ({"voice": {"file_id": "f", "file_unique_id": "u", "duration": 3}}, "[voice message]"),
            ({"document": {"file_id": "f", "file_unique_id": "u", "file_name": "a\nb.pdf"}}, "[document: a b.pdf]"),
            ({"location": {"latitude": 1.0, "longitude": 2.0}}, "[location]"),
            ({"dice": {"emoji": "🎲", "value": 6}}, "[dice: 6]"),
            (
                {
                    "sticker": {
                        "file_id": "f",
                        "file_unique_id": "u",
                        "width": 1,
                        "height": 1,
                        "is_animated": False,
                        "is_video": False,
                        "type": "regular",
                        "emoji": "😀",
                    }
                },
                "[sticker 😀]",
            ),
        ],
    )
    def test_what_has_no_words_is_named(self, media: dict[str, Any], note: str) -> None:
        assert heard(said(None, **media)).text == note


@given(
    text=st.text(st.characters(codec=None)),
    name=st.text(st.characters(codec=None), min_size=1),
    start=st.integers(0, 50),
    length=st.integers(1, 50),
    kind=st.sampled_from(["mention", "bot_command", "bold", "text_mention"]),
)
def test_whatever_people_send_it_can_be_stored(text: str, name: str, start: int, length: int, kind: str) -> None:
    user = {"user": ANN} if kind == "text_mention" else {}
    author = {"id": 2, "is_bot": False, "first_name": name}
    message = said(text, entities=[{"type": kind, "offset": start, "length": length, **user}], by=author)
    event = read(message)
    if event is not None:
        assert isinstance(event, Inbound)
        (event.text + event.origin.user_name).encode()
        assert "\x00" not in event.text + event.origin.user_name
