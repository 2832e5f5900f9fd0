"""The master is cut off with one worker; the others go on with a new one that Sentinels choose."""

import asyncio
from hashlib import sha256
from typing import Any, Final

import pytest

from tests.cluster.lost_load import (
    Load,
    binary,
    is_settled,
    is_trusted,
    metric,
    numbers_of,
    simulated,
    until,
)
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup
from tests.fakes.redis_island import why_not
from tests.fakes.redis_nodes import until as until_servers
from tests.fakes.redis_shores import FAR, NEAR, RedisShores

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240)]

CLIENT: Final = "key-of-app"
HEADERS: Final = {"Authorization": f"Bearer {CLIENT}"}
RPM: Final = 600
WORKERS: Final = 3  # two with the Sentinels that choose, one with the old master
PER_S: Final = 8  # of each worker: more than twice what the limit allows
BEFORE_S: Final = 5.0
AWAY_S: Final = 62.0  # so that a whole minute of both sides is judged
CUT_OFF_S: Final = 4.5  # min-replicas-max-lag, two looks at it a second apart, and the grace
MOST: Final = 1.2


def configuration(base_url: str) -> dict[str, Any]:
    client = {"id": "app", "key_sha256": sha256(CLIENT.encode()).hexdigest()}
    return {**one_model(base_url, rpm=RPM), "auth": {"mode": "keys"}, "clients": [client]}


def group_on(shores: RedisShores, shore: int, port: int, workers: int) -> GatewayGroup:
    config = configuration(f"http://{shores.home(shore)}:{port}/v1")
    return GatewayGroup(config, workers=workers, redis_url=shores.url, place=shores.places[shore])


def knows_all(group: GatewayGroup) -> bool:
    return metric(group, "gw_alive_workers_count") == WORKERS


async def test_master_cut_off_with_a_worker_admits_at_most_a_fifth_above_the_limit() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with (
        RedisShores(binary()) as shores,
        simulated("0.0.0.0") as provider,  # on all its addresses
        group_on(shores, FAR, provider.port, WORKERS - 1) as many,
        group_on(shores, NEAR, provider.port, 1) as alone,
    ):
        groups = (many, alone)
        for group in groups:
            await until(knows_all, group)
        async with (
            Load(many, per_s=PER_S * (WORKERS - 1), headers=HEADERS) as loads,
            Load(alone, per_s=PER_S, headers=HEADERS) as load,
        ):
            await asyncio.sleep(BEFORE_S)
            cut_s = load.now_s()
            await asyncio.to_thread(shores.cut)
            await asyncio.to_thread(until_servers, shores.has_moved, "a master on the far shore")
            await asyncio.sleep(AWAY_S)
        await asyncio.to_thread(shores.mend)
        await asyncio.to_thread(until_servers, shores.is_one_again, "one master", 60.0)
        for group in groups:
            await until(is_trusted, group)
            await until(is_settled, group)
        (key,) = provider.stats()["keys"].values()
        counted = numbers_of(shores.command)

    good = loads.statuses()[200] + load.statuses()[200]
    by_itself_s = min(one.at_s for one in load.answers if one.is_degraded)
    # What the old master let in meanwhile the new one never heard of: the worker tells it.
    from_old = [one for one in load.answers if cut_s < one.at_s < by_itself_s]
    assert set(loads.statuses() | load.statuses()) <= {200, 429}
    assert cut_s < by_itself_s <= cut_s + CUT_OFF_S
    assert sum(one.status == 200 for one in from_old) > 0
    assert RPM <= key["peak_requests_60s"] <= MOST * RPM
    assert key["accepted"] == good
    assert counted == (good, key["tokens"], 0)
