"""Workers of two versions on one Redis: no limit is exceeded, nobody fails; one too old stops."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from redis import Redis

from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import MIN_READER, SCHEMA
from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, Running, SimulatedProvider, free_port
from tests.fakes.next_version import FIELD, next_version
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until
from tests.lua.calls import texts
from tests.lua.window_fields import present

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

RPM: Final = 150
TOGETHER: Final = 60  # of each version, while both serve
ALONE: Final = 40
KEYS: Final = Keys("gw1")
WINDOW: Final = KEYS.model_window(KEYS.slot("a", "a1"), "a1", "sim-small")


class Site(msgspec.Struct, frozen=True):
    """One Redis and one provider, which only counts violations."""

    redis: RedisServer
    provider: SimulatedProvider

    def group(self, checkout: Path | None = None) -> GatewayGroup:
        config = one_model(self.provider.base_url, rpm=RPM)
        return GatewayGroup(config, workers=2, redis_url=self.redis.url, checkout=checkout)


@pytest.fixture
def site() -> Iterator[Site]:
    binary = needed_redis()
    keys = {"upstream-secret": {"label": "a1", "rpm": RPM}}
    with (
        RedisServer(binary) as redis,
        SimulatedProvider({"keys": keys, "enforce": False, "latency_ms": 100}) as provider,
    ):
        yield Site(redis=redis, provider=provider)


async def load(group: GatewayGroup, count: int) -> Outcomes:
    return await spread(f"{group.base_url}/v1/chat/completions", chat(), count=count, over_s=3.0)


async def roll_out(old: GatewayGroup, new: GatewayGroup) -> tuple[Outcomes, Outcomes, Outcomes]:
    """Both serve; then the older one ends while the newer one goes on."""
    both = await asyncio.gather(load(old, TOGETHER), load(new, TOGETHER))
    alone, code = await asyncio.gather(load(new, ALONE), asyncio.to_thread(old.stop))
    assert code == 0
    return (*both, alone)


def key_of(provider: SimulatedProvider) -> dict[str, Any]:
    found: dict[str, Any] = provider.stats()["keys"]["a1"]
    return found


def test_old_and_new_workers_share_every_limit_and_read_what_the_others_wrote(
    site: Site, tmp_path: Path
) -> None:
    newer = next_version(tmp_path / "next", schema=SCHEMA + 1, min_reader=MIN_READER)
    link = Redis.from_url(site.redis.url, protocol=2, decode_responses=True)
    with site.group() as old, site.group(newer) as new:
        old_served, new_served, alone = asyncio.run(roll_out(old, new))
        with site.group() as again:  # a version taken back; nothing is left of this minute
            rest = asyncio.run(load(again, ALONE))
            until(lambda: present(texts(link, WINDOW))["i"] == 0)
            key, counted = key_of(site.provider), present(texts(link, WINDOW))
            assert "Traceback" not in old.log() + new.log() + again.log()

    served = [one.statuses for one in (old_served, new_served, alone, rest)]
    assert served[:2] == [{200: TOGETHER}, {200: TOGETHER}]
    assert set(served[2]) | set(served[3]) <= {200, 429}
    assert sum(one[200] for one in served) == RPM == key["accepted"] == key["peak_requests_60s"]
    assert key["violations"]["rpm"] == 0
    assert (counted["pr"], counted["pt"]) == (key["accepted"], key["tokens"])
    assert int(texts(link, WINDOW)[FIELD]) == served[1][200] + served[2][200]
    assert texts(link, KEYS.meta()) == {"schema": str(SCHEMA + 1), "min_reader": str(MIN_READER)}
    link.close()


def test_a_worker_too_old_for_what_a_newer_one_writes_does_not_start_and_says_so(
    site: Site, tmp_path: Path
) -> None:
    newer = next_version(tmp_path / "next", schema=SCHEMA + 1, min_reader=SCHEMA + 1)
    with site.group(newer) as new:
        old = Running("serve", "--config", str(config_of(site, tmp_path)))
        try:
            until(lambda: "child.exited" in old.log(), 30.0)
            told = [line for line in old.log().splitlines() if "schema.refused" in line]
            assert old.stop() == 0
        finally:
            old.close()
        assert asyncio.run(load(new, 5)).statuses == {200: 5}

    assert f"redis holds schema {SCHEMA + 1}, readable from {SCHEMA + 1}" in told[0]
    assert key_of(site.provider)["accepted"] == 5


def config_of(site: Site, folder: Path) -> Path:
    """The configuration of a group that nobody waits for."""
    document = {
        **one_model(site.provider.base_url, rpm=RPM),
        "auth": {"mode": "none"},
        "server": {"port": free_port(), "admin_port": free_port(), "workers": 1},
        "redis": {"url": site.redis.url},
    }
    path = folder / "gw.json"
    path.write_bytes(msgspec.json.encode(document))
    return path
