"""What must hold after a storm: every book that the gateway keeps is opened and compared with what people did."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.sessions.database import integrity
from worlds.daemon import Daemon, asking
from worlds.kills import plan, tokens
from worlds.llm import LlmWorld
from worlds.person import page, program
from worlds.scene import query, settled
from worlds.storm import API, CHATS, REMEMBERED, Moment, Storm


async def weather_a_storm(folder: Path, *, kills: int, seed: int) -> None:
    """Talk through `kills` kills, then look into every book."""
    async with LlmWorld() as world, Daemon(folder, asking(world.url)) as daemon:
        storm = Storm(daemon, world, plan(seed, kills, Moment), seed=seed)
        async with page(daemon, storm.hear) as talk, program(daemon, "the program") as api:
            await storm.rage(talk, api)
            assert storm.kills.struck.total() == kills
            assert storm.oracle.strangers == []
            for chat in CHATS:
                check_transcript(talk.rows[chat], chat, len(storm.said[chat]))
            check_program(storm.programs)
            await settled(daemon)
        check_inbox(daemon, storm)
        check_memory(daemon)
        await check_status(daemon, sum(map(len, storm.said.values())) + len(storm.programs))
        daemon.terminate()
        assert await daemon.ended() == 0
        assert integrity(daemon.home.database) == []


def check_transcript(rows: Sequence[Mapping[str, Any]], chat: str, questions: int) -> None:
    """Each question once and in order, each answered once and in order, and nobody else's words."""
    every = [(chat, number) for number in range(1, questions + 1)]
    assert [token for row in rows if row["role"] == "user" for token in tokens(row["content"])] == every
    assert [token for row in rows if row["role"] == "assistant" for token in tokens(row["content"])] == every
    calls = [call["id"] for row in rows for call in row["tool_calls"]]
    results = [row["tool_call_id"] for row in rows if row["role"] == "tool"]
    assert len({*calls}) == len(calls)
    assert {*results} <= {*calls}
    assert len({*results}) == len(results)


def check_program(answers: Sequence[str]) -> None:
    """Its questions were alone, so that each has an answer of its own."""
    assert [tokens(answer) for answer in answers] == [[(API, number)] for number in range(1, len(answers) + 1)]


def check_inbox(daemon: Daemon, storm: Storm) -> None:
    """Every event that was sent is there once, and ended in an answer of its own or a common one."""
    rows = query(daemon, "SELECT platform, chat_id, event_id, outcome FROM inbox")
    web = [(chat, event) for platform, chat, event, _ in rows if platform == "web"]
    assert sorted(web) == sorted((chat, f"m:{one}") for chat, said in storm.said.items() for one in said)
    assert len(rows) - len(web) == len(storm.programs)
    assert {outcome for *_, outcome in rows} <= {"answered", "merged"}
    turns = query(daemon, "SELECT turn, count(*) FROM inbox WHERE outcome = 'answered' GROUP BY turn")
    assert {number for _, number in turns} == {1}
    assert query(daemon, "SELECT id FROM turns WHERE ended_at IS NULL") == []
    delivered = query(daemon, "SELECT turn, platform, state, why FROM outbox")
    assert sorted(turn for turn, *_ in delivered) == sorted(turn for turn, _ in turns)
    # A program that was away when its answer went out is given it when it asks again.
    assert {tuple(facts) for _, *facts in delivered} <= {
        ("web", "sent", ""),
        ("api_server", "sent", ""),
        ("api_server", "dead", "gone"),
    }


def check_memory(daemon: Daemon) -> None:
    """A tool's effect comes once, and wherever its result says so."""
    kept = REMEMBERED.findall((daemon.home.memory / "MEMORY.md").read_text(encoding="utf-8"))
    assert kept
    assert len({*kept}) == len(kept)
    reported = query(daemon, "SELECT content FROM messages WHERE role = 'tool'")
    assert {entry for (content,) in reported for entry in REMEMBERED.findall(content)} <= {*kept}


async def check_status(daemon: Daemon, received: int) -> None:
    """What people are shown adds up."""
    status = await daemon.run("status", "--json")
    assert status.code == 0, status.err  # it runs and is ready
    facts = json.loads(status.out)
    for book, total in (("inbound", "received"), ("outbound", "created")):
        assert facts[book][total] == sum(number for name, number in facts[book].items() if name != total)
        assert facts[book]["open"] == 0
    assert facts["inbound"]["received"] == received
