"""The configuration: defaults, every mistake at once, references, and what follows from it."""

import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from hermes.adapters.telegram.config import TelegramConfig
from hermes.errors import ConfigError
from hermes.gateway import config_file
from hermes.gateway.choices import choose_fallback, choose_model, credentials, enabled_platforms
from hermes.gateway.config import Config
from hermes.gateway.doorman import access_rules
from hermes.home import Home

EXAMPLE = Path(__file__).parent.parent / "deploy" / "config.example.yaml"
KNOWN = ("api_server", "discord", "loopback", "slack", "telegram", "web")


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab$ {}"),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*Config.model_fields, "x", "enabled"]), inner),
    max_leaves=8,
)


def parse(text: str, **environ: str) -> Config:
    return config_file.parse(text, environ)


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, **environ)
    heading, *lines = str(caught.value).splitlines()
    assert heading == "config.yaml cannot be used as it is:"
    return [line.removeprefix("  ") for line in lines]


class TestReading:
    def test_without_a_file_everything_has_its_default(self, tmp_path: Path) -> None:
        assert config_file.load(Home(tmp_path), {}) == Config()

    @pytest.mark.parametrize("text", ["", "# nothing\n", "compression:\nmodel:\n", "{}"])
    def test_empty_files_and_blocks_have_their_defaults(self, text: str) -> None:
        assert parse(text) == Config()

    def test_the_defaults_are_the_public_ones(self) -> None:
        config = Config()
        assert config.gateway.http.port == 8642
        assert config.agent.tools == ("session_search", "memory")
        assert config.compression.threshold == 0.5
        assert config.group_sessions_per_user
        assert not config.thread_sessions_per_user
        assert config.access.owners == ()
        assert config.zone is None

    def test_a_configuration_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            Config().agent.max_steps = 1

    def test_a_file_that_is_a_folder_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").mkdir()
        with pytest.raises(ConfigError, match=r"config\.yaml cannot be read: Is a directory"):
            config_file.load(Home(tmp_path), {})

    def test_a_file_that_is_no_text_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_bytes(b"language: \xff\xfe")
        with pytest.raises(ConfigError, match=r"config\.yaml is not UTF-8 text"):
            config_file.load(Home(tmp_path), {})

    def test_windows_line_ends_and_a_byte_order_mark_are_fine(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_bytes("\ufefflanguage: zh\r\ntimezone: UTC\r\n".encode())
        assert config_file.load(Home(tmp_path), {}).language == "zh"


class TestMistakes:
    def test_all_are_told_at_once_with_their_paths(self) -> None:
        assert problems(
            "timezone: Mars/Base\n"
            "compresion: {}\n"
            "compression: {treshold: 0.5, threshold: 2, protect_last_n: many}\n"
            "session_reset: {mode: weekly, at_hour: 24}\n"
            "gateway: {http: {port: true, base_path: x}}\n"
            "access: {owners: [alice], allow_all: maybe}\n"
            "agent: 5\n"
        ) == [
            "timezone: found 'Mars/Base', expected the IANA name of a time zone, such as Asia/Shanghai",
            "agent: found 5, expected a mapping of keys to values",
            "session_reset.mode: found 'weekly', expected 'none', 'idle', 'daily' or 'both'",
            "session_reset.at_hour: found 24, expected less than or equal to 23",
            "compression.threshold: found 2, expected less than or equal to 1",
            "compression.protect_last_n: found 'many', expected a whole number",
            "compression.treshold: unknown key. Did you mean 'threshold'?",
            "gateway.http.port: found true, expected a number",
            "gateway.http.base_path: found 'x', expected a path that starts with /",
            "access.allow_all: found 'maybe', expected true or false",
            "access.owners.0: found 'alice', expected platform:user_id, such as telegram:123456",
            "compresion: unknown key. Did you mean 'compression'?",
        ]

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("model: {fallback: {nam: x}}", "model.fallback.nam: unknown key. Did you mean 'name'?"),
            (
                "reset_by_type: {group: {idle_minute: 5}}",
                "reset_by_type.group.idle_minute: unknown key. Did you mean 'idle_minutes'?",
            ),
            (
                "reset_by_type: {grup: {}}",
                "reset_by_type.grup: found 'grup', expected 'dm', 'group', 'channel' or 'thread'",
            ),
            ("display: {zzz: 1}", "display.zzz: unknown key. Known here: resume_display"),
            ("model: {api_key: [1]}", "model.api_key: found a list, expected text"),
            ("model: {prices: {m: {input: 1}}}", "model.prices.m.output: is missing. Set it here"),
            (
                "model: {base_url: 127.0.0.1:80}",
                "model.base_url: found '127.0.0.1:80', expected an address that starts with http:// or https://",
            ),
            (
                "gateway: {http: {trusted_proxies: [proxy]}}",
                "gateway.http.trusted_proxies.0: found 'proxy', expected an IP address or network, such as 10.0.0.0/8",
            ),
            ("- a\n- b", "the whole file: found a list, expected a mapping of keys to values"),
            ("language: null", "language: found nothing, expected 'auto', 'en' or 'zh'"),
        ],
    )
    def test_each_says_where_what_and_what_instead(self, text: str, line: str) -> None:
        assert problems(text) == [line]

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("model: {name: a\nagent: b", "line 2, column 6: "),
            ("language: en\nlanguage: zh", "line 2, column 1: the key 'language' appears twice"),
            ("language: *unknown", "line 1, column 11: found undefined alias"),
            ("language: !!python/name:os.system", "line 1, column 11: could not determine a constructor"),
            ("language: \x01", "unacceptable character"),
        ],
    )
    def test_malformed_yaml_is_placed(self, text: str, line: str) -> None:
        assert line in problems(text)[0]

    def test_a_wrong_secret_is_not_shown(self) -> None:
        class Wants(BaseModel):
            token: int

        config = parse("platforms: {telegram: {token: abcdefgh}}")
        with pytest.raises(ConfigError, match=r"platforms\.telegram\.token: found \*\*\*, expected a whole number"):
            config_file.settings_for("telegram", config, Wants, {})

    @given(DATA)
    def test_any_data_is_a_configuration_or_a_configuration_error(self, data: object) -> None:
        with contextlib.suppress(ConfigError):
            parse(yaml.safe_dump(data))


class TestReferences:
    def test_names_expand_also_inside_flow_style_and_words(self) -> None:
        config = parse(
            "model: {base_url: http://${HOST}:${PORT}/v1, api_key: ${KEY}}\ngateway: {http: {port: ${PORT}}}",
            HOST="127.0.0.1",
            PORT="8080",
            KEY="a: 'b' #{}",
        )
        assert config.model.base_url == "http://127.0.0.1:8080/v1"
        assert config.model.api_key == SecretStr("a: 'b' #{}")
        assert config.gateway.http.port == 8080

    def test_a_name_that_is_not_set_is_told_with_its_path_beside_other_mistakes(self) -> None:
        assert problems("model: {api_key: ${NOPE}}\naccess: {owners: ['a:${GONE}', 5]}") == [
            "model.api_key: found ${NOPE}, but NOPE is neither in .env nor in the environment",
            "access.owners.0: found ${GONE}, but GONE is neither in .env nor in the environment",
            "access.owners.0: found 5, expected platform:user_id, such as telegram:123456",
        ]

    def test_what_a_variable_holds_is_not_expanded_again(self) -> None:
        assert parse("agent: {system_prompt: ${A}}", A="${B}", B="x").agent.system_prompt == "${B}"

    def test_other_dollar_signs_stay(self) -> None:
        assert parse("agent: {system_prompt: 'it costs $5, ${ } and $HOME'}").agent.system_prompt == (
            "it costs $5, ${ } and $HOME"
        )

    def test_the_env_file_comes_before_the_environment(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("KEY=from the file\n")
        (tmp_path / ".env").chmod(0o600)
        (tmp_path / "config.yaml").write_text("agent: {system_prompt: '${KEY} ${OTHER}'}")
        config = config_file.load(Home(tmp_path), {"KEY": "from outside", "OTHER": "too"})
        assert config.agent.system_prompt == "from the file too"


class TestEnvFile:
    def test_it_reads_like_a_shell(self) -> None:
        text = (
            "# a comment\n\nA=1\nexport B = two words # remark\nC='$x # \"y\"'\n"
            'D="line\\nnext \\"q\\""\nE=\nF=a#b\nG="" # empty\n  H=indented\r\n'
        )
        assert config_file.parse_env(text) == {
            "A": "1",
            "B": "two words",
            "C": '$x # "y"',
            "D": 'line\nnext "q"',
            "E": "",
            "F": "a#b",
            "G": "",
            "H": "indented",
        }

    def test_every_bad_line_is_named_and_no_secret_shown(self) -> None:
        with pytest.raises(ConfigError) as caught:
            config_file.parse_env('A=1\nB=\'open\nnonsense\nC="x" y\n')
        assert [line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]] == [
            "line 2",
            "line 3",
            "line 4",
        ]
        assert "open" not in str(caught.value)

    def test_a_file_that_others_can_read_is_warned_about(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / ".env").write_text("A=1\n")
        (tmp_path / ".env").chmod(0o644)
        with caplog.at_level(logging.WARNING):
            assert config_file.environment(Home(tmp_path), {"B": "2"}) == {"A": "1", "B": "2"}
        assert "chmod 600" in caplog.text
        caplog.clear()
        (tmp_path / ".env").chmod(0o600)
        config_file.environment(Home(tmp_path), {})
        assert not caplog.text


class TestExample:
    def test_it_loads_and_holds_the_defaults(self) -> None:
        config = parse(EXAMPLE.read_text(encoding="utf-8"))
        assert config.model_copy(update={"platforms": {}}) == Config()
        assert enabled_platforms(config, {}, KNOWN) == ("api_server", "web")

    def test_every_key_is_in_it(self) -> None:
        assert missing(Config, yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))) == []

    def test_every_key_is_in_the_schema(self) -> None:
        assert set(config_file.schema()["properties"]) == set(Config.model_fields)


def missing(model: type[BaseModel], written: dict[str, Any], prefix: str = "") -> list[str]:
    """Keys of the model that an example leaves out."""
    found = []
    for name, field in model.model_fields.items():
        if name not in written:
            found.append(prefix + name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += missing(field.annotation, written[name], f"{prefix}{name}.")
    return found


class TestModelChoice:
    @pytest.mark.parametrize(
        ("text", "environ", "provider", "name", "why"),
        [
            ("", {}, "local", "SmolLM2-135M-Instruct", "no key is set"),
            ("", {"OPENAI_API_KEY": "o"}, "openai", "gpt-5-mini", "because OPENAI_API_KEY is set"),
            ("", {"ANTHROPIC_API_KEY": "a"}, "anthropic", "claude-sonnet-4-5", "because ANTHROPIC_API_KEY is set"),
            ("", {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, "openai", "gpt-5-mini", "OPENAI_API_KEY"),
            ("", {"OPENAI_API_KEY": ""}, "local", "SmolLM2-135M-Instruct", "no key is set"),
            ("model: {provider: local}", {"OPENAI_API_KEY": "o"}, "local", "SmolLM2-135M-Instruct", "as configured"),
            ("model: {provider: scripted}", {}, "scripted", "scripted", "as configured"),
            ("model: {name: gpt-x}", {"OPENAI_API_KEY": "o"}, "openai", "gpt-x", "as configured"),
            ("model: {name: claude-x}", {"ANTHROPIC_API_KEY": "a"}, "anthropic", "claude-x", "as configured"),
            ("model: {base_url: 'http://h/v1', name: m}", {}, "openai", "m", "m at http://h/v1, as configured"),
            ("model: {api_key: k}", {"ANTHROPIC_API_KEY": "a"}, "openai", "gpt-5-mini", "as configured"),
        ],
    )
    def test_the_order_is_configured_then_keys_then_embedded(
        self, text: str, environ: dict[str, str], provider: str, name: str, why: str
    ) -> None:
        choice = choose_model(parse(text), environ)
        assert (choice.provider, choice.name) == (provider, name)
        assert why in choice.why

    def test_a_key_is_the_providers_own_and_is_never_printed(self) -> None:
        choice = choose_model(parse(""), {"OPENAI_API_KEY": "sesame", "ANTHROPIC_API_KEY": "other"})
        assert choice.api_key == "sesame"
        assert "sesame" not in repr(choice) + choice.why

    def test_a_configured_key_wins(self) -> None:
        assert choose_model(parse("model: {api_key: mine}"), {"OPENAI_API_KEY": "o"}).api_key == "mine"

    def test_the_embedded_model_is_given_no_key(self) -> None:
        assert choose_model(parse("model: {provider: local}"), {"OPENAI_API_KEY": "o"}).api_key is None

    @pytest.mark.parametrize("text", ["model: {provider: openai}", "model: {name: gpt-x}"])
    def test_a_provider_without_a_key_is_said(self, text: str) -> None:
        with pytest.raises(ConfigError, match=r"model asks for openai.*OPENAI_API_KEY.*model\.api_key"):
            choose_model(parse(text), {})

    def test_limits_are_passed_on(self) -> None:
        choice = choose_model(parse("model: {provider: local, context_length: 4096, max_output_tokens: 100}"), {})
        assert (choice.context_length, choice.max_output_tokens) == (4096, 100)
        assert choose_model(parse(""), {}).context_length == 8192
        assert choose_model(parse(""), {"OPENAI_API_KEY": "o"}).context_length is None

    def test_a_fallback_is_chosen_alike(self) -> None:
        config = parse("model: {fallback: {provider: anthropic, api_key: k}}")
        fallback = choose_fallback(config, {})
        assert fallback is not None
        assert (fallback.provider, fallback.name, fallback.api_key) == ("anthropic", "claude-sonnet-4-5", "k")
        assert choose_fallback(Config(), {}) is None


class TestPlatforms:
    @pytest.mark.parametrize(
        ("text", "environ", "on"),
        [
            ("", {}, "api_server web"),
            ("", {"TELEGRAM_BOT_TOKEN": "t"}, "api_server telegram web"),
            ("", {"SLACK_BOT_TOKEN": "t"}, "api_server web"),
            ("", {"SLACK_BOT_TOKEN": "t", "SLACK_APP_TOKEN": "t"}, "api_server slack web"),
            ("platforms: {telegram: {enabled: false}}", {"TELEGRAM_BOT_TOKEN": "t"}, "api_server web"),
            ("platforms: {web: {enabled: false}, loopback: {}}", {}, "api_server loopback"),
            ("platforms: {loopback:, telegram@work: {token: t}}", {}, "api_server loopback telegram@work web"),
        ],
    )
    def test_which_are_on(self, text: str, environ: dict[str, str], on: str) -> None:
        assert enabled_platforms(parse(text), environ, KNOWN) == tuple(on.split())

    def test_credentials_of_a_platform_that_is_not_installed_switch_nothing_on(self) -> None:
        assert enabled_platforms(Config(), {"TELEGRAM_BOT_TOKEN": "t"}, ("web",)) == ("web",)

    def test_the_installed_ones_come_from_the_registry(self) -> None:
        assert enabled_platforms(parse("platforms: {loopback: {}}"), {}) == ("api_server", "loopback", "web")

    @pytest.mark.parametrize("name", ["telegran", "telegran@work"])
    def test_an_unknown_platform_is_answered_with_the_nearest(self, name: str) -> None:
        with pytest.raises(ConfigError, match=rf"platforms\.{name}: there is no platform 'telegran'.*'telegram'"):
            enabled_platforms(parse(f"platforms: {{{name}: {{enabled: false}}}}"), {}, KNOWN)

    def test_only_the_first_account_takes_credentials_from_the_environment(self) -> None:
        environ = {"TELEGRAM_BOT_TOKEN": "t"}
        assert credentials("telegram", environ) == {"token": "t"}
        assert credentials("telegram@work", environ) == {}


class Pigeon(BaseModel):
    token: str
    speed: int = 5
    allowed_users: tuple[str, ...] = ()


class TestPlatformSettings:
    def test_the_platforms_own_model_reads_its_block(self) -> None:
        config = parse("platforms: {pigeon: {enabled: true, token: t, speed: 9, allowed_users: [42], home_channel: x}}")
        assert config_file.settings_for("pigeon", config, Pigeon, {}) == Pigeon(
            token="t", speed=9, allowed_users=("42",)
        )

    @pytest.mark.parametrize("text", ["", "platforms: {telegram: {token: null}}"])
    def test_what_is_not_written_comes_from_the_environment(self, text: str) -> None:
        settings = config_file.settings_for("telegram", parse(text), Pigeon, {"TELEGRAM_BOT_TOKEN": "t"})
        assert settings.token == "t"

    def test_mistakes_are_told_as_elsewhere(self) -> None:
        with pytest.raises(ConfigError) as caught:
            config_file.settings_for("telegram", parse("platforms: {telegram: {sped: 1}}"), Pigeon, {})
        assert "platforms.telegram.token: is missing. Set it here, or TELEGRAM_BOT_TOKEN in .env" in str(caught.value)
        assert "platforms.telegram.sped: unknown key. Did you mean 'speed'?" in str(caught.value)

    def test_a_mistake_that_stands_outside_the_file_is_told_with_its_place_and_without_the_secret(self) -> None:
        with pytest.raises(ConfigError) as caught:
            config_file.settings_for("telegram", parse(""), TelegramConfig, {"TELEGRAM_BOT_TOKEN": "my-secret"})
        assert "platforms.telegram.token (TELEGRAM_BOT_TOKEN in .env or the environment): found ***" in str(
            caught.value
        )
        assert "my-secret" not in str(caught.value)


def test_the_rules_of_access_follow_from_the_configuration() -> None:
    config = parse(
        "access: {owners: ['matrix:@ada:example.org'], unauthorized_dm: ignore}\n"
        "platforms: {telegram: {allowed_users: [42]}, telegram@work: {allowed_users: []}}"
    )
    rules = access_rules(config)
    assert rules.owners == {("matrix", "@ada:example.org")}
    assert rules.allowed["telegram"] == {"42"}
    assert not rules.allowed["telegram@work"]
    assert not rules.pair_strangers
    assert not rules.allow_all


def test_credentials_in_an_address_are_not_shown() -> None:
    config = Config.model_validate({"model": {"name": "m", "base_url": "http://me:secret@h:1/v1?token=secret"}})
    assert choose_model(config, {}).why == "Model: m at http://h:1/v1, as configured."
