"""`hermes gateway install | uninstall | start | stop | restart | logs`: the gateway in the hands of systemd.

Without a unit, `stop` still ends the gateway that somebody runs on this home.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.cli.unit import ACCOUNT, SYSTEM_COMMAND, SYSTEM_HOME, Service
from hermes.errors import UserError
from hermes.gateway.lock import holder
from hermes.home import Home, locate

SYSTEM_UNITS = Path("/etc/systemd/system")

STOP_SECONDS = 3600.0
"""The longest that a stop is waited for; `gateway.drain_seconds` decides how long it takes."""
LOOK_SECONDS = 0.1
TELL_SECONDS = 5.0
"""After this a person is told what is being waited for."""


def install(environ: Mapping[str, str], *, system: bool, dry_run: bool) -> None:
    """Write the unit and let it start by itself from now on. Raises UserError."""
    service = Service(command=_command(system=system), home=_home(environ, system=system), is_system=system)
    if dry_run:
        print(service.text, end="")
        return
    if system:
        _refuse_without_home(service)
        _refuse_without_account()
    path = _path(service, environ)
    before = path.read_bytes() if path.exists() else None
    _put(path, service.text.encode(), system=system)
    try:
        _systemctl(service, "daemon-reload")
        _systemctl(service, "enable", service.name)
    except UserError:
        _put_back(path, before)
        raise
    print(f"Installed {path}. Start it with: hermes gateway start")
    if not system and _ends_with_the_login():
        print("It will end when you log out. To keep it running: loginctl enable-linger")


def uninstall(environ: Mapping[str, str]) -> None:
    """Stop the service and remove its unit. Raises UserError."""
    service = _installed_or_refuse(environ)
    _systemctl(service, "disable", "--now", service.name)
    _path(service, environ).unlink()
    _systemctl(service, "daemon-reload")
    print(f"Removed {service.name}. {service.home} is untouched.")


def start(environ: Mapping[str, str]) -> None:
    """Start the service; returns when messages are taken. Raises UserError."""
    service = _installed_or_refuse(environ)
    _systemctl(service, "start", service.name)
    print("The gateway runs.")


def restart(environ: Mapping[str, str]) -> None:
    """Stop the service in stages, and start it again. Raises UserError."""
    service = _installed_or_refuse(environ)
    _systemctl(service, "restart", service.name)
    print("The gateway runs again.")


def stop(environ: Mapping[str, str]) -> None:
    """Stop the gateway of this home in stages, whoever started it. Raises UserError."""
    service = _installed(environ)
    if service is not None and _is_active(service):
        _systemctl(service, "stop", service.name)
    else:
        _end(Home(_home(environ, system=service is not None and service.is_system)))
    print("The gateway has stopped.")


def logs(environ: Mapping[str, str], *, lines: int, follow: bool) -> int:
    """Show the service's log; gives the exit code. Raises UserError."""
    service = _installed_or_refuse(environ)
    account = [] if service.is_system else ["--user"]
    wanted = ["journalctl", *account, "--unit", service.name, "--lines", str(lines), *(["--follow"] if follow else [])]
    sys.stdout.flush()
    return _run(wanted, quietly=False).returncode


# -- where things are ------------------------------------------------------------------------------------------------


def _home(environ: Mapping[str, str], *, system: bool) -> Path:
    """The home that is meant: the one that is named, else the usual one."""
    return SYSTEM_HOME if system and not environ.get("HERMES_HOME") else locate(environ)


def _command(*, system: bool) -> str:
    """This installation's own `hermes`."""
    beside = Path(sys.executable).with_name("hermes")
    if beside.exists():
        return str(beside)
    return shutil.which("hermes") or (SYSTEM_COMMAND if system else sys.argv[0])


def _path(service: Service, environ: Mapping[str, str]) -> Path:
    if service.is_system:
        return SYSTEM_UNITS / service.name
    configured = environ.get("XDG_CONFIG_HOME")
    return (Path(configured) if configured else Path.home() / ".config") / "systemd" / "user" / service.name


def _installed(environ: Mapping[str, str]) -> Service | None:
    """The service of this home; the account's own comes first."""
    for system in (False, True):
        service = Service(command="hermes", home=_home(environ, system=system), is_system=system)
        if _path(service, environ).exists():
            return service
    return None


def _installed_or_refuse(environ: Mapping[str, str]) -> Service:
    service = _installed(environ)
    if service is None:
        raise UserError(
            f"No service is installed for {_home(environ, system=False)}. Install one with `hermes gateway install`, "
            "or run the gateway in this terminal: hermes gateway run"
        )
    return service


def _put(path: Path, unit: bytes, *, system: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(unit)
    except OSError as error:
        raise UserError(f"Cannot write {path}: {error.strerror}. {_advice(system)}") from error


def _put_back(path: Path, before: bytes | None) -> None:
    """As if nothing had been tried: a unit that nobody has enabled would look like an installed one."""
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)


def _refuse_without_account() -> None:
    import pwd

    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError as error:
        raise UserError(
            f"The service runs as {ACCOUNT}, and there is no such account. Make one first:\n"
            f"  useradd --system --home-dir {SYSTEM_HOME} --shell /usr/sbin/nologin {ACCOUNT}"
        ) from error


def _refuse_without_home(service: Service) -> None:
    """systemd makes the usual home only."""
    if service.home != SYSTEM_HOME and not service.home.is_dir():
        raise UserError(
            f"There is no folder {service.home} for the service to work in. Make it first:\n"
            f"  install --directory --owner={ACCOUNT} --group={ACCOUNT} --mode=700 {shlex.quote(str(service.home))}"
        )


# -- systemd ---------------------------------------------------------------------------------------------------------


def _systemctl(service: Service, *words: str) -> None:
    """Raises UserError with what systemd says, and what can be done about it."""
    done = _ask(service, *words)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise UserError(f"systemctl {' '.join(words)} failed: {said}\n{_advice(service.is_system)}")


def _is_active(service: Service) -> bool:
    return _ask(service, "is-active", "--quiet", service.name).returncode == 0


def _ask(service: Service, *words: str) -> subprocess.CompletedProcess[str]:
    return _run(["systemctl", *([] if service.is_system else ["--user"]), *words])


def _run(words: Sequence[str], *, quietly: bool = True) -> subprocess.CompletedProcess[str]:
    """One of systemd's commands, run to its end. Raises UserError where there is no systemd."""
    program = shutil.which(words[0])
    if program is None:
        raise UserError(
            f"{words[0]} was not found: this machine is not run by systemd. "
            "Run the gateway in the foreground, or under what starts services here: hermes gateway run"
        )
    return subprocess.run([program, *words[1:]], check=False, capture_output=quietly, text=True)


def _advice(system: bool) -> str:
    if system:
        return "Changing the machine's services needs root; `hermes gateway logs` shows what the service itself says."
    return (
        "An account's services need a login of its own, not one by su or sudo; `hermes gateway logs` shows what the "
        "service itself says. For the whole machine, as root: hermes gateway install --system"
    )


def _ends_with_the_login() -> bool:
    if shutil.which("loginctl") is None:
        return False
    return "Linger=no" in _run(["loginctl", "show-user", str(os.getuid()), "--property=Linger"]).stdout


# -- without systemd -------------------------------------------------------------------------------------------------


def _end(home: Home) -> None:
    """Tell the gateway that runs on this home to stop, and wait until it has. Raises UserError."""
    found = holder(home.lock)
    if found is None:
        raise UserError(f"No gateway runs on {home.root}.")
    try:
        os.kill(found.process, signal.SIGTERM)
    except PermissionError as error:
        raise UserError(f"The gateway (process {found.process}) belongs to somebody else; ask them.") from error
    except ProcessLookupError:
        return
    began, told = time.monotonic(), False
    while (now := holder(home.lock)) is not None and now.process == found.process:
        waited = time.monotonic() - began
        if waited > STOP_SECONDS:
            raise UserError(f"The gateway (process {found.process}) did not stop. End it with: kill -9 {found.process}")
        if waited > TELL_SECONDS and not told:
            print("Waiting for running answers to end …", file=sys.stderr)
            told = True
        time.sleep(LOOK_SECONDS)
