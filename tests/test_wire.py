"""What is written to the store reads back as the same value, now and from older rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.base import Attachment, Carried, ChatKind, Inbound, Lifetime, Origin
from hermes.gateway.wire import inbound_from_json, inbound_to_json, origin_from_json, origin_to_json

TEXT = st.text(max_size=20)
MAYBE = st.none() | TEXT
ORIGINS = st.builds(
    Origin,
    platform=TEXT,
    chat_id=TEXT,
    kind=st.sampled_from(ChatKind),
    thread_id=MAYBE,
    user_id=MAYBE,
    chat_name=TEXT,
    user_name=TEXT,
)
INBOUNDS = st.builds(
    Inbound,
    event_id=TEXT,
    origin=ORIGINS,
    text=TEXT,
    at=st.floats(allow_nan=False, allow_infinity=False),
    reply_to=MAYBE,
    quoted=MAYBE,
    attachments=st.lists(st.builds(Attachment, kind=TEXT, mime=TEXT, path=TEXT, name=TEXT), max_size=2).map(tuple),
    mentions_me=st.booleans(),
    edits=MAYBE,
    lifetime=st.sampled_from(Lifetime),
    continues=MAYBE,
    carried=st.lists(st.builds(Carried, role=TEXT, text=TEXT), max_size=2).map(tuple),
    instructions=TEXT,
    raw=st.just({"update": object()}),
)


@given(ORIGINS)
def test_origins_survive(origin: Origin) -> None:
    assert origin_from_json(origin_to_json(origin)) == origin


@given(INBOUNDS)
def test_events_survive_without_the_platforms_own_payload(inbound: Inbound) -> None:
    back = inbound_from_json(inbound_to_json(inbound))
    assert back == inbound
    assert not back.raw


OLD = {"event_id": "m:1", "origin": {"platform": "telegram", "chat_id": "7"}, "text": "hi", "at": 1.5}


def test_rows_from_before_a_field_existed_take_its_default() -> None:
    origin = Origin(platform="telegram", chat_id="7")
    assert inbound_from_json(json.dumps(OLD)) == Inbound(event_id="m:1", origin=origin, text="hi", at=1.5)


@pytest.mark.parametrize(
    "row",
    [
        "",
        "null",
        "[]",
        json.dumps({}),
        json.dumps(OLD | {"text": 5}),
        json.dumps(OLD | {"at": "now"}),
        json.dumps(OLD | {"lifetime": "eternal"}),
        json.dumps(OLD | {"surprise": 1}),
        json.dumps(OLD | {"origin": {"platform": "telegram", "chat_id": "7", "surprise": 1}}),
    ],
)
def test_anything_else_is_refused(row: str) -> None:
    with pytest.raises(ValueError, match="not a stored event"):
        inbound_from_json(row)
