"""One clear word of a provider about a model spares all workers the rest of the calls."""

import asyncio
import json
from typing import Final

import pytest

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

GONE: Final = {"id": "gone", "fault": {"kind": "status", "code": 410}, "times": None}


def calls(provider: SimulatedProvider) -> int:
    story = provider.stats()["requests"].get("gone", {"calls": 0})
    count: int = story["calls"]
    return count


def test_retired_model_is_called_by_no_worker(provider: SimulatedProvider) -> None:
    text = f"[[sim {json.dumps(GONE)}]]"
    with GatewayGroup(one_model(provider.base_url), workers=3) as group:

        def ask(count: int) -> Outcomes:
            url = f"{group.base_url}/v1/chat/completions"
            return asyncio.run(spread(url, chat(text), count=count, over_s=0.1))

        first = ask(1).statuses
        until(lambda: ask(12).statuses == {503: 12})
        before = calls(provider)
        refused = ask(60).statuses

        assert (first, before) == ({404: 1}, 1)
        assert refused == {503: 60}
        assert calls(provider) == before
        assert "model.retired" in group.log()
