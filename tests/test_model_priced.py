"""What answers cost."""

import pytest

from contracts.model import events_of, request, user
from fakes import VirtualClock
from hermes.agent.models.base import Finished
from hermes.agent.models.priced import Price, Priced
from hermes.agent.models.scripted import ScriptedChat
from hermes.sessions.model import Usage


def test_tokens_from_a_cache_cost_what_others_do() -> None:
    usage = Usage(input_tokens=1_000_000, cache_read_tokens=500_000, cache_write_tokens=500_000, output_tokens=100_000)
    assert Price(input=2.0, output=10.0).of(usage) == pytest.approx(4.0 + 1.0)


@pytest.mark.parametrize(("name", "costs"), [("scripted", True), ("another", False)])
async def test_an_answer_costs_what_its_model_costs(name: str, costs: bool) -> None:
    model = Priced(ScriptedChat(VirtualClock()), {name: Price(input=1.0, output=1.0)})
    *_, last = await events_of(model, request(user("hello")))
    assert isinstance(last, Finished)
    assert (last.usage.cost_usd > 0) is costs
