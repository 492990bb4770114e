"""The gateway as a service: what is written, what systemd is told, and what a person is told when that fails."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.cli.unit import SYSTEM_COMMAND, SYSTEM_HOME, Service
from worlds.service_manager import ServiceManager
from worlds.shell import Finished, Shell

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed here")

MOST_EXPOSED = 3.0
"""What `systemd-analyze security` may say of the machine's unit, on its scale from 0 to 10."""


class Machine:
    """A person's shell on a machine with a service manager."""

    def __init__(self, folder: Path) -> None:
        self.shell = Shell(folder)
        self.manager = ServiceManager(folder / "bin", sys.executable)
        self.unit = self.shell.home.root / ".config" / "systemd" / "user"

    def hermes(self, *words: str) -> Finished:
        return self.shell.hermes("gateway", *words, PATH=str(self.manager.folder))

    @property
    def name(self) -> str:
        """Its home is not the usual one, so its service has a name of its own."""
        return next(iter(self.unit.glob("*.service"))).name


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class TestInstall:
    def test_the_unit_runs_this_installation_on_this_home_and_starts_by_itself(self, machine: Machine) -> None:
        machine.manager.will("loginctl", out="Linger=yes\n")
        done = machine.hermes("install")
        assert done.returncode == 0, done.stderr
        text = (machine.unit / machine.name).read_text(encoding="utf-8")
        assert f"Environment=HERMES_HOME={machine.shell.home.root}\n" in text
        assert f"ExecStart={Path(sys.executable).with_name('hermes')} gateway run\n" in text
        assert machine.manager.calls[:2] == [
            "systemctl --user daemon-reload",
            f"systemctl --user enable {machine.name}",
        ]
        assert "hermes gateway start" in done.stdout
        assert "log out" not in done.stdout

    def test_an_account_whose_services_end_with_the_login_is_told_so(self, machine: Machine) -> None:
        machine.manager.will("loginctl", out="Linger=no\n")
        assert "loginctl enable-linger" in machine.hermes("install").stdout

    def test_a_dry_run_prints_the_unit_and_changes_nothing(self, machine: Machine) -> None:
        done = machine.hermes("install", "--dry-run")
        assert done.stdout.startswith("# Hermes as a service")
        assert not machine.unit.exists()
        assert machine.manager.calls == []

    def test_a_machine_without_systemd_is_told_what_to_do_instead(self, machine: Machine) -> None:
        (machine.manager.folder / "systemctl").unlink()
        done = machine.hermes("install")
        assert done.returncode == 1
        assert "not run by systemd" in done.stderr
        assert "hermes gateway run" in done.stderr

    def test_what_systemd_refuses_is_passed_on_with_advice(self, machine: Machine) -> None:
        machine.manager.will("enable", code=1, err="Failed to connect to bus: No medium found")
        done = machine.hermes("install")
        assert done.returncode == 1
        assert "Failed to connect to bus: No medium found" in done.stderr
        assert "a login of its own" in done.stderr
        assert list(machine.unit.iterdir()) == []

    def test_a_refusal_leaves_the_unit_that_was_there_before(self, machine: Machine) -> None:
        machine.hermes("install")
        unit = machine.unit / machine.name
        unit.write_text("# the one before\n", encoding="utf-8")
        machine.manager.will("daemon-reload", code=1, err="Refused")
        assert machine.hermes("install").returncode == 1
        assert unit.read_text(encoding="utf-8") == "# the one before\n"

    def test_a_home_that_systemd_does_not_make_has_to_be_there(self, machine: Machine) -> None:
        missing = machine.shell.home.root / "not there"
        done = machine.shell.hermes("gateway", "install", "--system", HERMES_HOME=str(missing))
        assert done.returncode == 1
        assert f"--mode=700 '{missing}'" in done.stderr

    def test_it_is_taken_away_again_and_the_home_stays(self, machine: Machine) -> None:
        machine.hermes("install")
        name = machine.name
        done = machine.hermes("uninstall")
        assert done.returncode == 0, done.stderr
        assert list(machine.unit.iterdir()) == []
        assert machine.manager.calls[-2:] == [
            f"systemctl --user disable --now {name}",
            "systemctl --user daemon-reload",
        ]
        assert machine.shell.home.config.exists()


class TestControl:
    @pytest.mark.parametrize("verb", ["start", "restart"])
    def test_the_service_is_controlled_by_systemd(self, machine: Machine, verb: str) -> None:
        machine.hermes("install")
        assert machine.hermes(verb).returncode == 0
        assert machine.manager.calls[-1] == f"systemctl --user {verb} {machine.name}"

    def test_a_running_service_is_stopped_by_systemd(self, machine: Machine) -> None:
        machine.hermes("install")
        assert machine.hermes("stop").returncode == 0
        assert machine.manager.calls[-1] == f"systemctl --user stop {machine.name}"

    @pytest.mark.parametrize("verb", ["start", "restart", "uninstall", "logs"])
    def test_without_a_service_a_person_is_told_how_to_get_one(self, machine: Machine, verb: str) -> None:
        done = machine.hermes(verb)
        assert done.returncode == 1
        assert "hermes gateway install" in done.stderr
        assert machine.manager.calls == []

    def test_what_the_service_says_is_shown(self, machine: Machine) -> None:
        machine.hermes("install")
        machine.manager.will("journalctl", out="one line\n")
        done = machine.hermes("logs", "-n", "7", "-f")
        assert done.stdout == "one line\n"
        assert machine.manager.calls[-1] == f"journalctl --user --unit {machine.name} --lines 7 --follow"

    def test_status_is_the_status(self, machine: Machine) -> None:
        done = machine.hermes("status")
        assert (done.returncode, done.stdout.splitlines()[0]) == (
            1,
            "The gateway does not run. Start it with: hermes gateway run",
        )


class TestStopByHand:
    def test_a_gateway_that_runs_in_a_terminal_is_stopped_in_stages(self, machine: Machine) -> None:
        with machine.shell.gateway() as gateway:
            done = machine.hermes("stop")
            assert (done.returncode, done.stdout) == (0, "The gateway has stopped.\n")
            assert gateway.wait(timeout=10) == 0

    def test_also_where_a_service_is_installed_but_not_active(self, machine: Machine) -> None:
        machine.hermes("install")
        machine.manager.will("is-active", code=3)
        with machine.shell.gateway() as gateway:
            assert machine.hermes("stop").returncode == 0
            assert gateway.wait(timeout=10) == 0

    def test_where_none_runs_it_says_so(self, machine: Machine) -> None:
        done = machine.hermes("stop")
        assert done.returncode == 1
        assert "No gateway runs" in done.stderr


class TestUnits:
    def test_the_unit_in_the_repository_is_what_install_writes(self) -> None:
        service = Service(command=SYSTEM_COMMAND, home=SYSTEM_HOME, is_system=True)
        repository = Path(__file__).parents[1] / "hermes.service"
        assert repository.read_text(encoding="utf-8") == service.text

    @pytest.mark.parametrize("is_system", [True, False])
    @pytest.mark.parametrize("home", ["/var/lib/hermes", "/home/ann/.hermes", "/srv/two words/50% home"])
    @needs_systemd
    def test_systemd_finds_nothing_wrong(self, tmp_path: Path, home: str, is_system: bool) -> None:
        service = Service(command="/bin/true", home=Path(home), is_system=is_system)
        unit = tmp_path / service.name
        unit.write_text(service.text, encoding="utf-8")
        assert ANALYZE is not None
        scope = [] if is_system else ["--user"]
        done = subprocess.run(
            [ANALYZE, "verify", *scope, str(unit)],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        )
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("home", ["/var/lib/hermes", "/home/ann/.hermes"])
    @needs_systemd
    def test_the_machines_service_is_shut_in(self, tmp_path: Path, home: str) -> None:
        unit = tmp_path / "hermes.service"
        unit.write_text(Service(command="/bin/true", home=Path(home), is_system=True).text, encoding="utf-8")
        assert ANALYZE is not None
        done = subprocess.run(
            [ANALYZE, "security", "--offline=yes", f"--threshold={MOST_EXPOSED * 10:.0f}", str(unit)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_each_home_has_a_service_of_its_own(self) -> None:
        homes = [SYSTEM_HOME, Path("/srv/a/hermes"), Path("/srv/b/hermes"), Path("/srv/ü")]
        names = [Service(command="hermes", home=home, is_system=True).name for home in homes]
        assert len({*names}) == len(names)
        assert names[0] == "hermes.service"
        assert all(name.isascii() for name in names)

    def test_a_home_below_home_stays_within_reach(self) -> None:
        text = Service(command="/usr/bin/hermes", home=Path("/home/ann/x"), is_system=True).text
        assert "ProtectHome=read-only\n" in text
        assert "ReadWritePaths=/home/ann/x\n" in text
