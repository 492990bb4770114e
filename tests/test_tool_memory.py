"""The memory tool: small files per person or room that people may edit too."""

import asyncio
import fcntl
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.agent.tools.base import ToolContext
from hermes.agent.tools.memory import TARGETS, Memory
from hermes.errors import UserError
from hermes.sessions.model import OWNER, ConversationId


def context(owner: str = "owner") -> ToolContext:
    return ToolContext(conversation=ConversationId("c"), scope=OWNER, role="owner", memory_owner=owner, now=0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def memory(folder: Path) -> Memory:
    return Memory(folder)


async def do(memory: Memory, action: str, owner: str = "owner", **arguments: Any) -> str:
    return (await memory({"action": action, **arguments}, context(owner))).text


async def test_entries_are_list_items_that_later_conversations_see(memory: Memory, folder: Path) -> None:
    await do(memory, "add", content="the server is  called\nyouer")
    await do(memory, "add", target="user", content="likes tea")
    assert (folder / "MEMORY.md").read_text() == "- the server is called youer\n"
    assert (folder / "USER.md").read_text() == "- likes tea\n"
    assert memory.snapshot("owner") == "## Notes\n\n- the server is called youer\n\n## About the user\n\n- likes tea"


async def test_every_answer_shows_the_file_and_how_full_it_is(memory: Memory) -> None:
    assert await do(memory, "read") == "MEMORY.md (0 of 2200 characters):\n(empty)"
    assert await do(memory, "add", content="tea") == "MEMORY.md (5 of 2200 characters):\n- tea"
    assert await do(memory, "add", content="tea") == "MEMORY.md (5 of 2200 characters):\n- tea"


async def test_an_entry_is_replaced_or_removed_by_a_part_of_it(memory: Memory) -> None:
    for content in ("likes tea", "likes cake", "lives in Ghent"):
        await do(memory, "add", content=content)
    assert "- likes tea\n- likes pie\n- lives" in await do(memory, "replace", old_text="cake", content="likes pie")
    assert "- likes tea\n- lives" in await do(memory, "remove", old_text="pie")


@pytest.mark.parametrize(("old_text", "hint"), [("likes", "fits 2 entries.*tea.*cake"), ("rum", "fits 0 entries.*tea")])
async def test_an_unclear_part_changes_nothing_and_shows_the_choice(memory: Memory, old_text: str, hint: str) -> None:
    await do(memory, "add", content="likes tea")
    await do(memory, "add", content="likes cake")
    with pytest.raises(UserError, match=f"(?s){hint}"):
        await do(memory, "remove", old_text=old_text)
    assert "- likes tea\n- likes cake" in await do(memory, "read")


async def test_what_a_person_wrote_by_hand_stays(memory: Memory, folder: Path) -> None:
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# My notes\n\n- likes tea\nSome prose about tea.\n")
    await do(memory, "replace", old_text="tea", content="likes rum")
    await do(memory, "add", content="lives in Ghent")
    text = (folder / "MEMORY.md").read_text()
    assert text == "# My notes\n\n- likes rum\nSome prose about tea.\n- lives in Ghent\n"


@pytest.mark.parametrize(("target", "cap"), [("memory", 2_200), ("user", 1_375)])
async def test_a_full_file_refuses_and_says_what_it_holds(memory: Memory, target: str, cap: int) -> None:
    await do(memory, "add", target=target, content="x" * (cap - 2))
    with pytest.raises(UserError, match=f"{TARGETS[target].file} would have {cap + 4} of at most {cap} characters"):
        await do(memory, "add", target=target, content="y")
    assert f"{cap} of {cap}" in await do(memory, "read", target=target)


async def test_a_file_that_a_person_overfilled_can_be_emptied(memory: Memory, folder: Path) -> None:
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- tea\n- " + "x" * 5_000 + "\n- rum\n")
    await do(memory, "remove", old_text="tea")
    assert "(2 of" not in await do(memory, "remove", old_text="rum")
    assert len(memory.snapshot("owner")) < 2_300


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(owners=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), unique=True, max_size=4))
async def test_every_owner_has_files_of_their_own_below_the_folder(
    tmp_path_factory: pytest.TempPathFactory, owners: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("m") / "memory"
    memory = Memory(folder)
    for owner in owners:
        await do(memory, "add", owner, content=f"about {owners.index(owner)}")
    for number, owner in enumerate(owners):
        assert memory.snapshot(owner) == f"## Notes\n\n- about {number}"
    kept = list(folder.parent.rglob("MEMORY.md"))
    assert len(kept) == len(owners)
    assert all(path.is_relative_to(folder) for path in kept)


@pytest.mark.parametrize("owner", ["..", ".", "../../x", "a/b", "telegram:1", "长" * 300])
async def test_no_owner_reaches_another_folder(memory: Memory, folder: Path, owner: str) -> None:
    await do(memory, "add", owner, content="tea")
    (kept,) = folder.parent.rglob("MEMORY.md")
    assert kept.parent.parent == folder / "people"
    assert memory.snapshot("owner") == ""


async def test_files_are_for_their_user_alone(memory: Memory, folder: Path) -> None:
    await do(memory, "add", "telegram:1", content="tea")
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


async def test_calls_at_once_lose_nothing(folder: Path) -> None:
    """Two instances stand for two processes."""
    one, two = Memory(folder), Memory(folder)
    await asyncio.gather(*(do(memory, "add", content=f"n{n}") for n in range(20) for memory in (one, two)))
    lines = (folder / "MEMORY.md").read_text().splitlines()
    assert sorted(lines) == sorted(f"- n{n}" for n in range(20))
    assert {path.name for path in folder.iterdir()} == {"MEMORY.md", ".lock"}


async def test_a_change_waits_for_whoever_changes_the_same_files(memory: Memory, folder: Path) -> None:
    await do(memory, "add", content="tea")
    with (folder / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = asyncio.create_task(do(memory, "add", content="rum"))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
    assert "- tea\n- rum" in await waiting


async def test_a_file_that_cannot_be_used_is_named(memory: Memory, folder: Path) -> None:
    (folder / "MEMORY.md").mkdir(parents=True)
    with pytest.raises(UserError, match=r"MEMORY\.md: Is a directory\. Check"):
        await do(memory, "add", content="tea")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": "erase"},
        {"action": 7},
        {"action": "read", "target": "world"},
        {"action": "add"},
        {"action": "add", "content": "  \n"},
        {"action": "add", "content": ["a"]},
        {"action": "remove"},
        {"action": "replace", "old_text": "tea"},
    ],
)
async def test_arguments_without_sense_are_explained(memory: Memory, folder: Path, arguments: dict[str, Any]) -> None:
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- tea\n")
    with pytest.raises(UserError, match="memory "):
        await memory(arguments, context())
    assert (folder / "MEMORY.md").read_text() == "- tea\n"
