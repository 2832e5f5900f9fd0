"""Two clients on one key over three worker processes: who asks for more gets no more than his."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from redis import Redis

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.cluster.test_client_limits import auth, client
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import texts
from tests.lua.window_fields import present

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

RPM: Final = 60
PART: Final = 36  # of 0.6
MODEST: Final = RPM - PART


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 30}) as running:
        yield running


@pytest.fixture(scope="module")
def group(server: RedisServer, provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    greedy: dict[str, Any] = client("greedy")
    greedy["limits"]["key_share"] = 0.6
    config = {
        **one_model(provider.base_url, rpm=RPM),
        "clients": [greedy, client("modest")],
    }
    with GatewayGroup(config, workers=3, redis_url=server.url) as running:
        yield running


def test_three_workers_leave_the_modest_client_its_part_and_the_greedy_one_no_more_than_his(
    group: GatewayGroup, provider: SimulatedProvider, server: RedisServer
) -> None:
    url = f"{group.base_url}/v1/chat/completions"

    async def both() -> tuple[Outcomes, Outcomes]:
        greedy = spread(url, chat(max_tokens=20), count=300, over_s=3, headers=auth("greedy"))
        modest = spread(url, chat(max_tokens=20), count=MODEST, over_s=3, headers=auth("modest"))
        return await asyncio.gather(greedy, modest)

    greedy, modest = asyncio.run(both())

    assert modest.statuses == {200: MODEST}, "its part is there whenever it comes"
    assert greedy.statuses == {200: PART, 429: 300 - PART}
    totals = provider.stats()["totals"]
    assert totals["accepted"] == RPM
    assert sum(totals["violations"].values()) == 0

    link = Redis.from_url(server.url, protocol=2, decode_responses=True)
    window = "gw1:w:{a.a1}:a1:sim-small"
    whole, part = present(texts(link, window)), present(texts(link, f"{window}:greedy"))
    assert (whole["pr"], part["pr"]) == (RPM, PART)
    assert part["pt"] * RPM == whole["pt"] * PART == totals["tokens"] * PART, "all are alike"
    assert whole["i"] == part["i"] == 0
