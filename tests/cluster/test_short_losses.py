"""Redis is lost for a moment that only some workers notice: no limit is exceeded by it."""

import asyncio
from typing import Final

import pytest

from tests.cluster.load import spread
from tests.cluster.lost_load import binary, counted, is_settled, is_trusted, until
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

RPM, FIRST = 200, 120
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
HEADERS: Final = {"X-Gw-Timeout": "5s"}


@pytest.mark.parametrize(
    ("way", "for_s"),
    [
        ("killed", 0.15),  # and the time a start takes: about the grace
        ("frozen", 0.72),  # a little more than the deadline of a call
        # Long enough for suspicion.
        pytest.param("frozen", 0.55, marks=pytest.mark.soak),
    ],
)
async def test_limit_holds_and_all_of_it_is_served(way: str, for_s: float) -> None:
    lose, regain = {
        "killed": (RedisServer.kill, RedisServer.start),
        "frozen": (RedisServer.freeze, RedisServer.thaw),
    }[way]
    with (
        RedisServer(binary(), *DURABLE) as server,
        SimulatedProvider({"any_key": True, "any_model": True, "enforce": False}) as provider,
        GatewayGroup(
            one_model(provider.base_url, rpm=RPM), workers=3, redis_url=server.url
        ) as group,
    ):
        url = f"{group.base_url}/v1/chat/completions"
        before = await spread(url, chat(), count=FIRST, over_s=1.2, headers=HEADERS)
        during = asyncio.create_task(spread(url, chat(), count=300, over_s=3, headers=HEADERS))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(lose, server)
        await asyncio.sleep(for_s)
        await asyncio.to_thread(regain, server)
        statuses = (await during).statuses
        await until(is_trusted, group)
        await until(is_settled, group)

        (key,) = provider.stats()["keys"].values()
        assert before.statuses == {200: FIRST}
        assert statuses == {200: RPM - FIRST, 429: 300 - RPM + FIRST}
        assert key["peak_requests_60s"] == RPM == counted(server)[0]
