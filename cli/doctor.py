"""`hermes doctor`: look for what is wrong, and name the remedy."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

from hermes.adapters import registry
from hermes.agent.models import local
from hermes.cli import status
from hermes.errors import ConfigError, HermesError
from hermes.gateway import config_file
from hermes.gateway.choices import choose_model, enabled_platforms
from hermes.home import Home, locate, network_filesystem, open_home
from hermes.sessions import database, dbapi
from hermes.sessions.repair import findings

Finding = tuple[bool, str]
"""Whether it is well, and a sentence."""
Check = Callable[[Home, Mapping[str, str]], Iterator[Finding]]


def show(environ: Mapping[str, str]) -> int:
    """Print a line a check; 1 when something has to be mended."""
    findings = list(examine(environ))
    for well, sentence in findings:
        print(f"{'✓' if well else '✗'} {sentence}")
    return 0 if all(well for well, _ in findings) else 1


def examine(environ: Mapping[str, str]) -> Iterator[Finding]:
    """What each check finds. One that fails does not keep the others from looking."""
    yield from _python()
    try:
        home = open_home(locate(environ))
    except ConfigError as error:
        yield False, str(error)
        return
    checks: tuple[Check, ...] = (_home, _store, _configuration, _model, _gateway)
    for check in checks:
        try:
            yield from check(home, environ)
        except HermesError as error:
            yield False, str(error)


def _python() -> Iterator[Finding]:
    yield True, f"Python {sys.version.split()[0]}, SQLite {'.'.join(map(str, dbapi.VERSION))}"
    if (weakness := dbapi.weakness()) is not None:
        yield False, weakness


def _home(home: Home, _environ: Mapping[str, str]) -> Iterator[Finding]:
    yield True, f"Home {home.root}"
    if (trouble := network_filesystem(home.root)) is not None:
        yield False, trouble


def _store(home: Home, _environ: Mapping[str, str]) -> Iterator[Finding]:
    if not home.database.exists():
        yield True, "No store yet; the first message makes it."
        return
    with closing(database.open_readable(home.database)) as connection:
        searchable = database.has_fts5(connection)
    if problems := database.integrity(home.database):
        yield False, f"{home.database} is damaged: {problems[0]}. Stop Hermes, then run: hermes sessions repair"
        return
    found = findings(home.database)
    yield from ((False, f"{trouble.what} {trouble.remedy}") for trouble in found)
    if not found:
        yield True, f"Store {home.database} is sound."
    if not searchable:
        yield False, "This SQLite has no FTS5, so nothing can be searched. Install one: pip install pysqlite3"


def _configuration(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    config, around = config_file.load(home, environ), config_file.environment(home, environ)
    names = enabled_platforms(config, around)
    for name in names:
        config_file.settings_for(name, config, registry.find(registry.platform_of(name)).config, around)
    yield True, f"Configuration is sound; platforms on: {', '.join(names) or 'none'}."


def _model(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        config = config_file.load(home, environ)
    except ConfigError:
        return  # the configuration's own finding says why
    choice = choose_model(config, config_file.environment(home, environ))
    if choice.provider == "local" and (reason := local.available()) is not None:
        yield False, reason
    else:
        yield True, choice.why


def _gateway(home: Home, _environ: Mapping[str, str]) -> Iterator[Finding]:
    gateway = status.look(home)
    yield gateway.process is None or gateway.word == status.READY, gateway.sentence
