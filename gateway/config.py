"""The configuration as values: every key, its default and what it may be. Reading it is config_file.py's work.

Every key that is public is accepted here with its default. Blocks are frozen; a reload swaps the whole.
"""

import ipaddress
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from hermes.redact import looks_secret


class Block(BaseModel):
    """A mapping of config.yaml. Unknown keys are errors; a block that is left empty has its defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_block(cls, found: object) -> object:
        return {} if found is None else found


def _not_a_switch(value: object) -> object:
    """YAML's yes and no are no numbers, though Python would take them for 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("expected", "a number")
    return value


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise PydanticCustomError("expected", "the IANA name of a time zone, such as Asia/Shanghai") from error
    return name


def _network(address: str) -> str:
    try:
        ipaddress.ip_network(address, strict=False)
    except ValueError as error:
        raise PydanticCustomError("expected", "an IP address or network, such as 10.0.0.0/8") from error
    return address


def _owner(identity: str) -> str:
    platform, separator, user = identity.partition(":")
    if not (platform and separator and user):
        raise PydanticCustomError("expected", "platform:user_id, such as telegram:123456")
    return identity


def _base_path(path: str) -> str:
    if not path.startswith("/"):
        raise PydanticCustomError("expected", "a path that starts with /")
    return path


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise PydanticCustomError("expected", "an address that starts with http:// or https://")
    return url


Natural = Annotated[int, BeforeValidator(_not_a_switch), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(_not_a_switch), Field(ge=1)]
Seconds = Annotated[float, BeforeValidator(_not_a_switch), Field(ge=0, allow_inf_nan=False)]
Money = Annotated[float, BeforeValidator(_not_a_switch), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_not_a_switch), Field(gt=0, le=1)]
Hour = Annotated[int, BeforeValidator(_not_a_switch), Field(ge=0, le=23)]
Port = Annotated[int, BeforeValidator(_not_a_switch), Field(ge=0, le=65535)]
Address = Annotated[str, AfterValidator(_address)]
Names = tuple[str, ...]


class Price(Block):
    """USD per million tokens."""

    input: Money
    output: Money


class ModelBlock(Block):
    """Which language model answers."""

    provider: Literal["auto", "local", "openai", "anthropic", "scripted"] = "auto"
    name: str | None = None
    base_url: Address | None = None
    api_key: SecretStr | None = None
    context_length: Positive | None = None
    max_output_tokens: Positive | None = None
    fallback: "ModelBlock | None" = None
    prices: dict[str, Price] = {}


class AuxiliaryModel(Block):
    """A model for a side task. `auto`: the main one, where it can."""

    provider: str = "auto"
    model: str = ""
    base_url: Address | None = None


class Auxiliary(Block):
    """Models for side tasks."""

    compression: AuxiliaryModel = AuxiliaryModel()
    title: AuxiliaryModel = AuxiliaryModel()
    vision: AuxiliaryModel = AuxiliaryModel()
    speech_to_text: AuxiliaryModel = AuxiliaryModel()


class Agent(Block):
    """The turn loop and its bounds."""

    system_prompt: str | None = None
    max_steps: Positive = 50
    turn_timeout_seconds: Annotated[Seconds, Field(gt=0)] = 1800
    tools: Names = ("session_search", "memory")


ResetMode = Literal["none", "idle", "daily", "both"]


class SessionReset(Block):
    """When a conversation starts over by itself."""

    mode: ResetMode = "none"
    idle_minutes: Positive = 1440
    at_hour: Hour = 4
    notify: bool = True
    notify_exclude_platforms: Names = ("api_server", "webhook")
    bg_process_max_age_hours: Seconds = 24


class ResetOverride(Block):
    """What differs for one kind of chat or one platform; None: as in session_reset."""

    mode: ResetMode | None = None
    idle_minutes: Positive | None = None
    at_hour: Hour | None = None
    notify: bool | None = None


class Compression(Block):
    """How long conversations are made to fit."""

    enabled: bool = True
    progress_notices: bool = False
    threshold: Share = 0.50
    threshold_tokens: Positive | None = None
    target_ratio: Share = 0.20
    protect_last_n: Natural = 20
    protect_first_n: Natural = 3
    idle_compact_after_seconds: Seconds = 0
    hygiene_threshold: Share = 0.85
    hygiene_hard_message_limit: Positive = 5000
    hygiene_timeout_seconds: Seconds = 30
    hygiene_total_ceiling_seconds: Seconds = 600
    hygiene_failure_cooldown_seconds: Seconds = 300
    proactive_prune_tokens: Natural = 0
    proactive_prune_min_result_chars: Natural = 8000
    on_summary_failure: Literal["keep", "drop"] = "keep"


class Sessions(Block):
    """How long conversations are kept."""

    auto_prune: bool = False
    retention_days: Positive = 90
    retention_days_by_source: dict[str, Positive] = {}
    vacuum_after_prune: bool = True
    min_interval_hours: Seconds = 24
    close_idle_after_days: Natural = 0


class Backups(Block):
    """Copies of the store below `backups/`, made while everything runs. `every_hours` 0: none by itself."""

    every_hours: Seconds = 0
    keep: Positive = 7


class Streaming(Block):
    """Showing answers while they are written."""

    enabled: bool = True
    edit_interval_seconds: Seconds = 1.0


class Http(Block):
    """The one HTTP server. Port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: Port = 8642
    base_path: Annotated[str, AfterValidator(_base_path)] = "/"
    trusted_proxies: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    allowed_hosts: Names = ("localhost", "127.0.0.1")


class Gateway(Block):
    """The daemon."""

    busy_input_mode: Literal["steer", "queue", "interrupt"] = "steer"
    drain_seconds: Seconds = 60
    max_concurrent_turns: Positive = 64
    write_sessions_json: bool = True
    streaming: Streaming = Streaming()
    user_rate_per_minute: Positive = 30
    http: Http = Http()


class Access(Block):
    """Who may talk. Closed unless opened."""

    allow_all: bool = False
    unauthorized_dm: Literal["pair", "ignore"] = "pair"
    owners: tuple[Annotated[str, AfterValidator(_owner)], ...] = ()


class Display(Block):
    """What the terminal shows."""

    resume_display: Literal["full", "minimal"] = "full"


class PlatformBlock(Block):
    """What the gateway itself reads of `platforms.<name>`; `settings` goes to the platform's own model.

    `enabled` None: on because it is named. Empty `allowed_users`: no allowlist. `require_mention`: in rooms, only what
    names the agent, replies to it or is a command gets an answer.
    """

    model_config = ConfigDict(extra="allow")

    enabled: bool | None = None
    allowed_users: Names = ()
    home_channel: str | None = None
    require_mention: bool = True

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Config(Block):
    """All of config.yaml."""

    timezone: Annotated[str, AfterValidator(_zone)] | None = None
    language: Literal["auto", "en", "zh"] = "auto"
    model: ModelBlock = ModelBlock()
    auxiliary: Auxiliary = Auxiliary()
    agent: Agent = Agent()
    mcp_servers: dict[str, dict[str, Any]] = {}
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    session_reset: SessionReset = SessionReset()
    reset_by_type: dict[Literal["dm", "group", "channel", "thread"], ResetOverride] = {}
    reset_by_platform: dict[str, ResetOverride] = {}
    compression: Compression = Compression()
    sessions: Sessions = Sessions()
    backups: Backups = Backups()
    budgets: dict[str, Any] = {}
    gateway: Gateway = Gateway()
    access: Access = Access()
    display: Display = Display()
    platforms: dict[str, PlatformBlock] = {}

    def platform(self, instance: str) -> PlatformBlock:
        """What is configured for an instance; the defaults for one that is on by its credentials alone."""
        return self.platforms.get(instance, PlatformBlock())

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that stand in the configuration itself, for the redactor."""
        blocks = (self.model, self.model.fallback)
        keys = [block.api_key.get_secret_value() for block in blocks if block is not None and block.api_key is not None]
        settings = (item for block in self.platforms.values() for item in block.settings.items())
        return (*keys, *(value for name, value in settings if isinstance(value, str) and looks_secret(name)))

    @property
    def zone(self) -> ZoneInfo | None:
        """The configured time zone; None: the system's."""
        return ZoneInfo(self.timezone) if self.timezone else None
