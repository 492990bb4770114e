"""Secrets taken out of everything that is shown, logged or exported; never out of arguments that run.

Two sources of knowledge: the shapes that secrets have, and the live secrets of this process in the forms they
travel in (as they are, broken over lines, in JSON, percent-encoded, inside base64). Every pattern is linear in
the text, and is only tried where one of its hints occurs.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

MIN_LIVE = 8
"""Live secrets shorter than this are ordinary words too often to be looked for."""

SHORT = 18
"""Secrets shorter than this vanish whole: the ends of a short one would give too much away."""

_KEYED = (
    r"(?:(?:[aA](?i:pi|ccess|es)|[sS](?i:ecret|igning)|[pP](?i:rivate)|[eE](?i:ncryption))[_-]?(?i:key)"
    r"|[sS](?i:ecret)|[tT](?i:oken)|[pP](?i:assword|asswd|assphrase)|[cC](?i:redentials?))"
)
"""How names of secret fields end. Plain first letters: the engine skips to them, five times as fast."""
_MASKED = re.compile(r"\S{4}…\S{2}")
_ENVIRONMENT_NAME = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?)$")
_FIELD_NAME = re.compile(rf"{_KEYED}$")

_VENDOR_KEYS = (
    r"sk-(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter; words like sk-fading have no digit
    r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"whsec_[A-Za-z0-9+/=]{16,}",  # Stripe and Svix webhooks
    r"gh[pousr]_[A-Za-z0-9]{20,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_.-]{16,}",  # GitLab
    r"xox[abeoprs][.-][A-Za-z0-9.-]{10,}",  # Slack
    r"xapp-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"hf_[A-Za-z0-9]{20,}",  # Hugging Face
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-AgE[A-Za-z0-9_-]{20,}",
    r"gsk_[A-Za-z0-9]{20,}",  # Groq
    r"xai-[A-Za-z0-9]{20,}",
    r"tvly-[A-Za-z0-9-]{16,}",  # Tavily
    r"pplx-[A-Za-z0-9]{20,}",  # Perplexity
    r"r8_[A-Za-z0-9]{20,}",  # Replicate
    r"ntn_[A-Za-z0-9]{20,}",  # Notion
    r"secret_[A-Za-z0-9]{40,}",
    r"lin_api_[A-Za-z0-9]{20,}",  # Linear
    r"figd_[A-Za-z0-9_-]{20,}",  # Figma
    r"do[op]_v1_[a-f0-9]{32,}",  # DigitalOcean
    r"shp(?:at|ss|ca)_[a-fA-F0-9]{32}",  # Shopify
    r"sntrys_[A-Za-z0-9_=+/]{20,}",  # Sentry
    r"hvs\.[A-Za-z0-9_-]{20,}",  # Vault
    r"ATATT3[A-Za-z0-9_=-]{20,}",  # Atlassian
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord bots
)

_HARMLESS = (
    r"(?:(?i:null|none|true|false)|\$\{?\w+\}?|<[^<>\s]*>|\*+|\w{4}…\S{2}|[A-Za-z_][\w.]*\([^()\s]*\))"
    r"(?![^\s,;\"'}\])])"
)
"""Values that only look like secrets: nothing, references, placeholders, masks, function calls."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """One way a secret can look: the last group that matches is masked. Without any of `hints`, a text has none."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]


_SHAPES = (
    _Shape(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?P<secret>[^-]*+(?:-(?!----)[^-]*+)*+(?=-----END )|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)"
        ),
    ),
    _Shape(
        ("authorization",),
        re.compile(r"(?i)authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:[a-z][\w-]{1,20} +)?(?P<secret>[^\s\"',;]{6,})"),
    ),
    _Shape(("bearer",), re.compile(r"(?i)\bbearer +(?P<secret>(?=[a-z._~+/-]*\d)[\w.~+/-]{16,}=*)")),
    _Shape(
        ("eyj",),
        re.compile(
            r"(?<![A-Za-z0-9_-])(?P<secret>eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)*+)",
        ),
    ),
    _Shape((":", "%3a"), re.compile(r"(?<!\d)(?P<secret>\d{6,12}(?::|%3[Aa])[A-Za-z0-9_-]{30,})")),  # Telegram bots
    _Shape(("://",), re.compile(r"://[^\s/:@]*+:(?P<secret>[^\s/@]++)@")),
    _Shape(("://",), re.compile(r"://(?P<secret>[^\s/:@…]{16,}+)@")),
    _Shape(("hooks.slack.com/",), re.compile(r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/]{20,})")),
    _Shape(("/webhooks/",), re.compile(r"/api/webhooks/\d+/(?P<secret>[\w-]{40,})")),
    _Shape(
        ("-", "_", ".", "aiza", "akia", "asia", "atatt3"),
        re.compile(rf"(?<![A-Za-z0-9])(?P<secret>{'|'.join(_VENDOR_KEYS)})"),
    ),
    _Shape(
        ("key", "secret", "token", "passw", "passphrase", "credential"),
        re.compile(
            rf"(?m){_KEYED}(?:"
            # "token": "value", in JSON that may itself be inside a JSON string
            rf"\\*[\"']\s{{0,4}}:\s{{0,4}}\\*(?P<q>[\"'])(?!{_HARMLESS})(?P<json>(?:(?!(?P=q))[^\\\n]|\\[^\"'\n])++)"
            # as assignments: TOKEN=value, token = "value"
            rf"|[\"']?[ \t]{{0,4}}=[ \t]{{0,4}}(?![=>])(?:\"(?!{_HARMLESS})(?P<double>[^\"\n]++)\""
            rf"|'(?!{_HARMLESS})(?P<single>[^'\n]++)'|(?!{_HARMLESS})(?P<plain>[^\s\"'&;,<>(){{}}]{{4,}}+))"
            # token: value, at the end of a line, as in YAML and in headers
            rf"|[\"']?[ \t]{{0,4}}:[ \t]{{1,4}}[\"']?(?!{_HARMLESS})(?P<line>[^\s\"'#]{{6,}}+)[\"']?[ \t]*+$)"
        ),
    ),
)


class Redactor:
    """Masks what looks like a secret, and every one of `secrets` in whatever form it travels."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        live = {secret.strip() for secret in secrets if len(secret.strip()) >= MIN_LIVE}
        forms = {form for secret in live for form in _forms(secret)}
        self._live = re.compile("|".join(sorted(forms, key=len, reverse=True))) if forms else None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], extra: Iterable[str] = ()) -> "Redactor":
        """Knows the values of variables whose names look secret, and `extra` ones."""
        return cls([*(value for name, value in environ.items() if _ENVIRONMENT_NAME.search(name)), *extra])

    def text(self, text: str) -> str:
        """`text` with its secrets masked; everything else stays character by character."""
        if self._live is not None:
            text = self._live.sub(lambda found: mask("".join(found[0].split())), text)
        hints = text.lower()
        for shape in _SHAPES:
            if any(hint in hints for hint in shape.hints):
                text = shape.pattern.sub(_mask_group, text)
        return text

    def value(self, value: object) -> object:
        """The same for strings anywhere in dicts, lists and tuples. A field with a secret's name is masked whole."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.value(key): self._field(key, item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
            case tuple():
                return tuple(self.value(item) for item in value)
            case _:
                return value

    def _field(self, name: object, value: object) -> object:
        if isinstance(value, str) and value and isinstance(name, str) and looks_secret(name):
            return mask(value)
        return self.value(value)


def looks_secret(name: str) -> bool:
    """Does a field of this name hold a secret?"""
    return _FIELD_NAME.search(name) is not None


def mask(secret: str) -> str:
    """`***`, or for a long word its first 4 and last 2 characters, by which its owner can tell it apart."""
    if _MASKED.fullmatch(secret):
        return secret
    if len(secret) < SHORT or len(secret.split()) != 1:
        return "***"
    return f"{secret[:4]}…{secret[-2:]}"


def _mask_group(found: re.Match[str]) -> str:
    """The match with its last group masked."""
    assert found.lastindex is not None
    whole, (first, last) = found[0], found.span(found.lastindex)
    return whole[: first - found.start()] + mask(found[found.lastindex]) + whole[last - found.start() :]


def _forms(secret: str) -> set[str]:
    """Patterns for every form in which `secret` may travel."""
    data = secret.encode("utf-8", "surrogatepass")  # the environment may hold bytes that are no text
    texts = {
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(data),
        quote(data, safe=""),
        quote_plus(data),
        *_base64_cores(data),
    }
    broken_over_lines = r"(?:\r?\n[ \t]*)?".join(map(re.escape, secret))
    return {broken_over_lines, *(re.escape(text) for text in texts if text != secret)}


def _base64_cores(data: bytes) -> set[str]:
    """What base64 of anything that holds `data` must contain: one core for each alignment to three bytes."""
    cores = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data)
        first = -(-before * 8 // 6)
        core = encoded[first : (before + len(data)) * 8 // 6].decode()
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return cores
