"""`hermes doctor`: look for what is wrong, and name the remedy."""

import sys
from collections.abc import Callable, Iterator, Mapping

from hermes.agent.models import local
from hermes.errors import HermesError
from hermes.gateway import config_file
from hermes.gateway.choices import choose_model, enabled_platforms
from hermes.home import Home, network_filesystem
from hermes.sessions import database, dbapi

Finding = tuple[bool, str]
"""Whether it is well, and a sentence."""


def show(home: Home, environ: Mapping[str, str]) -> int:
    """Print a line a check; 1 when something has to be mended."""
    checks: tuple[Callable[[Home, Mapping[str, str]], Iterator[Finding]], ...] = (
        _python,
        _home,
        _store,
        _configuration,
        _model,
    )
    findings = [finding for check in checks for finding in check(home, environ)]
    for well, sentence in findings:
        print(f"{'✓' if well else '✗'} {sentence}")
    return 0 if all(well for well, _ in findings) else 1


def _python(_home: Home, _environ: Mapping[str, str]) -> Iterator[Finding]:
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
    try:
        problems = database.integrity(home.database)
    except HermesError as error:
        yield False, str(error)
        return
    if problems:
        yield False, f"{home.database} is damaged: {problems[0]}. Stop Hermes, keep a copy, then restore a backup."
    else:
        yield True, f"Store {home.database} is sound."


def _configuration(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        names = ", ".join(enabled_platforms(config_file.load(home, environ), config_file.environment(home, environ)))
    except HermesError as error:
        yield False, str(error)
    else:
        yield True, f"Configuration is sound; platforms on: {names}."


def _model(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        choice = choose_model(config_file.load(home, environ), config_file.environment(home, environ))
    except HermesError:
        return  # the configuration's own finding says why
    if choice.provider == "local" and (reason := local.available()) is not None:
        yield False, reason
    else:
        yield True, choice.why
