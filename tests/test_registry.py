"""Platforms are found through entry points, loaded one at a time, and missing ones are explained."""

import sys
from pathlib import Path

import pytest

from hermes.adapters import registry
from hermes.errors import ConfigError

MODULES = {
    "good_platform": (
        "from hermes.adapters.base import Platform\nPLATFORM = Platform(name='pigeon', config=dict, open=None)\n"
    ),
    "needy_platform": "import a_library_that_nobody_has\n",
    "odd_platform": "PLATFORM = 'not a platform'\n",
}
ENTRIES = """\
[hermes.platforms]
pigeon = good_platform:PLATFORM
needy = needy_platform:PLATFORM
odd = odd_platform:PLATFORM
hollow = good_platform:NOTHING
twice = odd_platform:PLATFORM
"""


def install(site: Path, distribution: str, entries: str) -> None:
    """What pip leaves behind, as far as entry points go."""
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "pigeons", ENTRIES)
    install(tmp_path, "rivals", "[hermes.platforms]\ntwice = good_platform:PLATFORM\n")
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def test_the_platforms_that_come_with_hermes_are_there() -> None:
    assert {"api_server", "loopback", "web"} <= set(registry.names())


@pytest.mark.usefixtures("third_party")
def test_a_third_partys_platform_comes_through_the_same_door() -> None:
    assert "pigeon" in registry.names()
    assert registry.find("pigeon").name == "pigeon"


@pytest.mark.usefixtures("third_party")
def test_only_the_platform_that_is_asked_for_is_imported() -> None:
    registry.names()
    registry.find("pigeon")
    assert "good_platform" in sys.modules
    assert "odd_platform" not in sys.modules


@pytest.mark.usefixtures("third_party")
def test_a_missing_client_library_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"a_library_that_nobody_has.*pip install 'hermes-gateway\[needy\]'"):
        registry.find("needy")


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize("name", ["odd", "hollow"])
def test_something_else_behind_the_door_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match="is broken"):
        registry.find(name)


@pytest.mark.usefixtures("third_party")
def test_two_packages_for_one_platform_are_not_guessed_between() -> None:
    with pytest.raises(ConfigError, match=r"Several packages.*odd_platform.*good_platform|good_platform.*odd_platform"):
        registry.find("twice")


def test_an_unknown_platform_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'loopbak'.*Did you mean 'loopback'"):
        registry.find("loopbak")
    with pytest.raises(ConfigError, match=r"Installed are: .*web"):
        registry.find("zzz")


def test_a_labelled_instance_belongs_to_its_platform() -> None:
    assert registry.platform_of("telegram@work") == "telegram"
    assert registry.platform_of("telegram") == "telegram"
