"""The home folder: where it is, that it is private, and what is said when it cannot be used."""

import stat
from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.home import Home, locate, network_filesystem, open_home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_names_the_home() -> None:
    assert locate({"HERMES_HOME": "/srv/hermes", "HOME": "/home/ada"}) == Path("/srv/hermes")


@pytest.mark.parametrize("unset", [{}, {"HERMES_HOME": ""}, {"HERMES_HOME": "  "}])
def test_without_a_name_it_lies_below_the_users_home(unset: dict[str, str]) -> None:
    assert locate({"HOME": "/home/ada", **unset}) == Path("/home/ada/.hermes")


def test_a_relative_home_becomes_absolute() -> None:
    assert locate({"HERMES_HOME": "data"}) == Path.cwd() / "data"


def test_a_new_home_is_closed_to_others_under_any_umask(tmp_path: Path) -> None:
    home = open_home(tmp_path / "deep" / "hermes")
    assert home.root.is_dir()
    assert mode(home.root) == 0o700


def test_an_open_home_of_ours_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_home(tmp_path)
    assert mode(tmp_path) == 0o700


def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("language: zh\n")
    assert open_home(tmp_path) == open_home(tmp_path)
    assert (tmp_path / "config.yaml").read_text() == "language: zh\n"


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "hermes").write_text("not a folder")
    with pytest.raises(ConfigError, match=r"file is in the way.*hermes.*HERMES_HOME"):
        open_home(tmp_path / "hermes")
    with pytest.raises(ConfigError, match="file is in the way"):
        open_home(tmp_path / "hermes" / "below")


def test_a_folder_that_cannot_be_made_says_why() -> None:
    with pytest.raises(ConfigError, match=r"/proc/hermes: .+\. Give this user the right"):
        open_home(Path("/proc/hermes"))


def test_every_public_path_lies_below_the_root(tmp_path: Path) -> None:
    home = Home(tmp_path)
    places = {
        "config": "config.yaml",
        "env": ".env",
        "database": "state.db",
        "mirror": "sessions/sessions.json",
        "saved": "sessions/saved",
        "exports": "session-exports",
        "cache": "cache",
        "memory": "memory",
        "skills": "skills",
        "logs": "logs",
        "lock": "gateway.lock",
        "web_token": "web-token",
        "backups": "backups",
    }
    assert {name: getattr(home, name) for name in places} == {name: tmp_path / at for name, at in places.items()}
    assert not list(tmp_path.iterdir())


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/vda / ext4 rw 0 0\n"
        "server:/export /mnt/far nfs4 rw 0 0\n"
        "/dev/vdb /mnt/far/near xfs rw 0 0\n"
        "share /mnt/my\\040share cifs rw 0 0\n"
        "tag /mnt/vm ext4 rw 0 0\n"
        "tag /mnt/vm virtiofs rw 0 0\n"
    )
    return table


@pytest.mark.parametrize(
    ("path", "word"),
    [("/mnt/far/hermes", "NFS"), ("/mnt/my share/hermes", "CIFS"), ("/mnt/vm", "virtiofs")],
)
def test_a_folder_on_another_machine_is_said(mounts: Path, path: str, word: str) -> None:
    sentence = network_filesystem(Path(path), mounts)
    assert sentence is not None
    assert path in sentence
    assert word in sentence
    assert "HERMES_HOME" in sentence


@pytest.mark.parametrize("path", ["/home/ada", "/mnt/far/near/hermes", "/mnt/farther"])
def test_a_local_disk_is_fine(mounts: Path, path: str) -> None:
    assert network_filesystem(Path(path), mounts) is None


def test_without_a_mount_table_nothing_is_claimed(tmp_path: Path) -> None:
    assert network_filesystem(Path("/home"), tmp_path / "none") is None
