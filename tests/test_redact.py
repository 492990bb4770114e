"""Secrets are masked wherever they may be shown, in every form they travel in; other text stays as it is."""

import base64
import json
import string
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.redact import Redactor, looks_secret, mask

TELEGRAM = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"
ANY = Redactor()

SECRETS = {
    "OpenAI": "sk-proj-a1B2c3D4e5F6g7H8i9J0",
    "Anthropic": "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0_x",
    "GitHub": "ghp_a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8",
    "GitHub, fine-grained": "github_pat_11AAAAAAA0a1B2c3D4e5_F6g7H8i9J0",
    "GitLab": "glpat-a1B2c3D4e5F6g7H8i9J0",
    "Slack bot": "xoxb-123456789012-a1B2c3D4e5F6",
    "Slack app": "xapp-1-A0123456789-123456789012-a1b2c3d4",
    "Google": "AIzaSyA1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "Hugging Face": "hf_a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6",
    "Stripe": "sk_live_a1B2c3D4e5F6g7H8",
    "SendGrid": "SG.a1B2c3D4e5F6g7H8i9J0aa.a1B2c3D4e5F6g7H8i9J0",
    "Discord bot": "MTAxMjM0NTY3ODkwMTIzNDU2Nw.GaBcDe.a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5",
    "Telegram bot": TELEGRAM,
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
CONTEXTS = ("{}", "it is {}, he said", "KEY {}\nnext", '{{"note": "{}"}}', "https://host/{}/path")


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("vendor", SECRETS)
def test_keys_that_vendors_mark_are_found_anywhere(vendor: str, context: str) -> None:
    secret = SECRETS[vendor]
    shown = ANY.text(context.format(secret))
    assert shown == context.format(f"{secret[:4]}…{secret[-2:]}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"GET https://api.telegram.org/bot{TELEGRAM}/getMe", "GET https://api.telegram.org/bot1234…w0/getMe"),
        ("Authorization: Bearer short1", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwdw=='}", "{'authorization': 'Basic ***'}"),
        ("Proxy-Authorization: Negotiate abcdefgh", "Proxy-Authorization: Negotiate ***"),
        ("sent Bearer abcdef0123456789.xy", "sent Bearer abcd…xy"),
        ("x-api-key: 0123456", "x-api-key: ***"),
        ("postgres://ada:pa55w@db/x", "postgres://ada:***@db/x"),
        ("redis://:pa55w@db", "redis://:***@db"),
        ("https://0123456789abcdef01@host/x", "https://0123…01@host/x"),
        ("export DB_PASSWORD=hunter2!", "export DB_PASSWORD=***"),
        ('secret_key = "correct horse battery"', 'secret_key = "***"'),
        ("client_secret=abcd1234&scope=all", "client_secret=***&scope=all"),
        ("accessToken='a b'", "accessToken='***'"),
        ('{"token": "tiny", "n": 1}', '{"token": "***", "n": 1}'),
        (r'"{\"api_key\": \"tiny\", \"n\": 1}"', r'"{\"api_key\": \"***\", \"n\": 1}"'),
        ("telegram:\n  token: abcdef\n  enabled: true", "telegram:\n  token: ***\n  enabled: true"),
        (
            "https://discord.com/api/webhooks/123/a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i9J0",
            "https://discord.com/api/webhooks/123/a1B2…J0",
        ),
        (
            "https://hooks.slack.com/services/T0000/B0000/a1B2c3D4e5F6",
            "https://hooks.slack.com/services/T000…F6",
        ),
    ],
)
def test_fields_headers_and_addresses(text: str, shown: str) -> None:
    assert ANY.text(text) == shown


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA123456\nabcdefghijklmnop==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("text", [PEM, json.dumps(PEM)])
def test_private_keys_lose_their_body(text: str) -> None:
    shown = ANY.text(f"before {text} after")
    assert "MIIE" not in shown
    assert "mnop" not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_a_private_key_that_was_cut_off_is_masked_too() -> None:
    assert "AQEA" not in ANY.text(PEM[:60])


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "token = get_token()",
        "if token == other: pass",
        "password=${DB_PASSWORD}",
        "TOKEN=$TOKEN",
        "api_key: null",
        "token=<your-token>",
        "I lost my token: help",
        "the bearer of good news",
        "see git@github.com:ada/notes and ada@example.org",
        "risk-based task-oriented sk-fading-circle-animation",
        "at 12:30:45 on 2026-01-02 10:00",
        "npm_config_registry hf_transfer secret_santa",
        "https://example.org/a:b@c",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert ANY.text(text) == text


@given(st.text(alphabet=string.ascii_letters + " \n.,!?()[]{}'\"-_/äß你好🎩"))
def test_words_without_assignments_stay(text: str) -> None:
    assert ANY.text(text) == text


LIVE = st.text(alphabet=string.ascii_letters + string.digits + "+/=-_'\"%& ü你", min_size=10, max_size=40).filter(
    lambda secret: len(secret.strip()) >= 10
)
AROUND = st.text(alphabet="abc \n:/", max_size=10)


@given(secret=LIVE, before=AROUND, after=AROUND)
@example(secret="aaaaaaaaaa", before="a", after="a")
def test_a_live_secret_is_found_in_every_form(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    secret = secret.strip()
    forms = [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        f"{secret[:5]}\n  {secret[5:]}",
    ]
    for form in forms:
        assert form not in redactor.text(f"{before}{form}{after}")


@given(secret=LIVE, before=st.binary(max_size=8), after=st.binary(max_size=8))
def test_a_live_secret_is_found_inside_base64(secret: str, before: bytes, after: bytes) -> None:
    wrapped = before + secret.strip().encode() + after
    for encoded in (base64.b64encode(wrapped).decode(), base64.urlsafe_b64encode(wrapped).decode()):
        shown = Redactor([secret]).text(encoded)
        assert "***" in shown or "…" in shown


def test_a_live_secret_that_is_no_proper_text_is_found_too() -> None:
    assert Redactor(["\udcff\udcfe opensesame"]).text("a \udcff\udcfe opensesame b") == "a *** b"


def test_words_too_short_to_be_secrets_are_not_looked_for() -> None:
    assert Redactor(["", "a", "main", "  pw  "]).text("the main a pw") == "the main a pw"


def test_the_environment_gives_its_secrets_and_nothing_else() -> None:
    environ = {
        "MY_TOKEN": "plain words here",
        "DB_PASS": "opensesame",
        "HOME": "/home/someone",
        "PASSAGE": "north-west",
    }
    redactor = Redactor.from_environment(environ, extra=["the web secret"])
    shown = redactor.text("plain words here; opensesame; /home/someone; north-west; the web secret")
    assert shown == "***; ***; /home/someone; north-west; ***"


def test_values_are_searched_through_and_through() -> None:
    redactor = Redactor(["opensesame"])
    event = {"a": ["opensesame", 1, None], "b": {"c": ("x opensesame", True)}, "password": "pw", "count": 3}
    assert redactor.value(event) == {
        "a": ["***", 1, None],
        "b": {"c": ("x ***", True)},
        "password": "***",
        "count": 3,
    }
    assert event["password"] == "pw"


@given(st.lists(st.sampled_from([*SECRETS.values(), PEM, "password=hunter22", "token: abcdefgh", "\n", ";"])))
def test_masking_twice_changes_nothing_more(parts: list[str]) -> None:
    once = ANY.text(" ".join(parts))
    assert ANY.text(once) == once


def test_a_mask_tells_long_secrets_apart_and_hides_short_ones() -> None:
    assert mask("abcdefghijklmnopqr") == "abcd…qr"
    assert mask("abcdefghijklmnopq") == "***"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("api_key", True), ("botToken", True), ("DB_PASSWORD", True), ("max_tokens", False), ("keyboard", False)],
)
def test_names_of_secret_fields(name: str, *, secret: bool) -> None:
    assert looks_secret(name) is secret
