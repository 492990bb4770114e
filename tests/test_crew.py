"""A task group whose members can be sent home."""

import asyncio

from hermes.gateway.crew import Crew


async def test_those_who_are_dismissed_do_not_hold_up_the_end() -> None:
    left: list[str] = []

    async def wait_for_ever(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append(name)

    async with asyncio.timeout(5), Crew() as crew:
        for name in ("one", "two"):
            crew.create_task(wait_for_ever(name))
        await asyncio.sleep(0)
        crew.dismiss()
    assert sorted(left) == ["one", "two"]


async def test_without_a_dismissal_everybody_may_finish() -> None:
    async with Crew() as crew:
        task = crew.create_task(asyncio.sleep(0, "done"), name="worker")
    assert (task.result(), task.get_name()) == ("done", "worker")
