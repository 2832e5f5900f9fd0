"""One clear word of a provider about a model spares all workers the rest of the calls."""

import asyncio
import json
from typing import Final

import pytest

from tests.cluster.fleet import running_fleet
from tests.cluster.load import spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

GONE: Final = {"id": "gone", "fault": {"kind": "status", "code": 410}, "times": None}


def calls(provider: SimulatedProvider) -> int:
    story = provider.stats()["requests"].get("gone", {"calls": 0})
    count: int = story["calls"]
    return count


def test_retired_model_is_called_by_no_worker(provider: SimulatedProvider) -> None:
    body = chat(f"[[sim {json.dumps(GONE)}]]")
    with running_fleet(one_model(provider.base_url)) as fleet:
        url = f"{fleet.groups[0].base_url}/v1/chat/completions"
        first = asyncio.run(spread(url, body, count=1, over_s=0.0)).statuses
        fleet.wait_for_each(lambda told: told["gw_models_retired_count"] == 1)
        before = calls(provider)
        refused = asyncio.run(fleet.spread(body, each=20, over_s=0.1)).statuses

        assert (first, before) == ({404: 1}, 1)
        assert refused == {503: 60}
        assert calls(provider) == before
        assert fleet.log().count("model.retired") == 1
