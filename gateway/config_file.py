"""Reading config.yaml and .env: every mistake at once, each with its place, what was found and what is expected."""

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from hermes.errors import ConfigError
from hermes.gateway.choices import CREDENTIALS, credentials
from hermes.gateway.config import Config, PlatformBlock
from hermes.gateway.config_errors import explain
from hermes.home import Home

log = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPEN, _CLOSE = "\ue000\ue000", "\ue001"
_CARRIED = re.compile(f"{_OPEN}(\\w+){_CLOSE}")
"""Braces mean something in YAML's flow style, so references go through its parser in private characters."""

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_VALUE = re.compile(r"""'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^'"#\s](?:(?!\s#).)*)?""")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def load(home: Home, environ: Mapping[str, str]) -> Config:
    """The configuration of `home`; without a config.yaml its defaults.

    `${NAME}` is taken from .env, then from `environ`. Raises ConfigError with all that is wrong.
    """
    text = _read(home.config)
    return Config() if text is None else parse(text, environment(home, environ), where=str(home.config))


def parse(text: str, environ: Mapping[str, str], *, where: str = "config.yaml") -> Config:
    """The configuration that `text` holds. Raises ConfigError."""
    problems: list[str] = []
    data = _expand(_yaml(text, where), environ, (), problems)
    try:
        config = Config.model_validate({} if data is None else data)
    except ValidationError as error:
        problems += explain(error, Config)
    if problems:
        raise _wrong(where, problems)
    return config


def environment(home: Home, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with what .env says laid over it. Warns when others can read .env. Raises ConfigError."""
    text = _read(home.env)
    if text is None:
        return dict(environ)
    if os.name == "posix" and stat.S_IMODE(home.env.stat().st_mode) & 0o077:
        log.warning("%s holds secrets and can be read by others. Close it: chmod 600 %s", home.env, home.env)
    return {**environ, **parse_env(text, where=str(home.env))}


def parse_env(text: str, *, where: str = ".env") -> dict[str, str]:
    """NAME=VALUE lines, with quotes, `export` and comments as in a shell. Raises ConfigError with every bad line."""
    found: dict[str, str] = {}
    problems = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        value = _env_value(assignment[2]) if assignment else None
        if assignment is None or value is None:
            problems.append(f"line {number}: expected NAME=VALUE, with any quotes closed on the same line")
        else:
            found[assignment[1]] = value
    if problems:
        raise _wrong(where, problems)
    return found


def settings_for(instance: str, config: Config, model: type[M], environ: Mapping[str, str]) -> M:
    """The block `platforms.<instance>` as the platform's own model; what it lacks comes from the environment.

    Of the keys that the gateway reads itself, the model gets those that it names. Raises ConfigError.
    """
    block = config.platforms.get(instance, PlatformBlock())
    own = {name: getattr(block, name) for name in PlatformBlock.model_fields if name in model.model_fields}
    written = {name: value for name, value in block.settings.items() if value is not None}
    lent = credentials(instance, environ)
    try:
        return model.model_validate({**lent, **own, **written}, extra="forbid")
    except ValidationError as error:
        variables = CREDENTIALS.get(instance, {})
        hints = {name: f", or {variable} in .env" for name, variable in variables.items()}
        elsewhere = {name: f"{variables[name]} in .env or the environment" for name in lent.keys() - written.keys()}
        raise _wrong("config.yaml", explain(error, model, ("platforms", instance), hints, elsewhere)) from error


def schema() -> dict[str, Any]:
    """The JSON schema of config.yaml, for editors and docs."""
    return Config.model_json_schema()


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key which appears twice: the first would silently be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} appears twice", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _yaml(text: str, where: str) -> object:
    carried = _REFERENCE.sub(rf"{_OPEN}\1{_CLOSE}", text)
    try:
        return _Loader(carried).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _wrong(where, [f"{at}{error.problem or error.context}"]) from error
    except yaml.YAMLError as error:
        raise _wrong(where, [str(error)]) from error


def _expand(data: object, environ: Mapping[str, str], path: tuple[str, ...], problems: list[str]) -> object:
    """`data` with its references resolved. What is not set is a problem, and left out."""
    match data:
        case dict():
            return {
                _restored(key): value
                for key, item in data.items()
                if (value := _expand(item, environ, (*path, str(_restored(key))), problems)) is not _UNSET
            }
        case list():
            items = [_expand(item, environ, (*path, str(index)), problems) for index, item in enumerate(data)]
            return [item for item in items if item is not _UNSET]
        case str():
            missing = [name for name in _CARRIED.findall(data) if name not in environ]
            problems += [
                f"{'.'.join(path)}: found ${{{name}}}, but {name} is neither in .env nor in the environment"
                for name in missing
            ]
            return _UNSET if missing else _CARRIED.sub(lambda found: environ[found[1]], data)
        case _:
            return data


_UNSET = object()


def _restored(key: object) -> object:
    return _CARRIED.sub(r"${\1}", key) if isinstance(key, str) else key


def _env_value(written: str) -> str | None:
    """The value behind NAME=, or None when its quotes do not close."""
    found = _VALUE.match(written)
    rest = written[found.end() :].strip() if found else written
    if found is None or (rest and not rest.startswith("#")):
        return None
    if found["quoted"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), found["quoted"])
    return found["literal"] if found["literal"] is not None else (found["bare"] or "").rstrip()


def _read(path: Path) -> str | None:
    """The text of a file, or None when there is none. Raises ConfigError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}. Save it as UTF-8."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}. Give this user the right to, or move it away."
        ) from error


def _wrong(where: str, problems: list[str]) -> ConfigError:
    return ConfigError("\n".join([f"{where} cannot be used as it is:", *(f"  {problem}" for problem in problems)]))
