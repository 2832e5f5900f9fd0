"""A master that Sentinels watch is killed, and one is frozen, under steady admissions."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from redis.exceptions import RedisError

from cluster_gw.store.client import DEADLINE_S
from tests.cluster.failover_load import LATE_LOOP_S, RPM, TIGHT, FailoverLoad
from tests.fakes.listening import CHANNEL, Heard, listening
from tests.fakes.redis_nodes import until
from tests.fakes.redis_sentinel import SentinelService
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until_soon

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

OUT_S = 6.0
CUT_OFF_S = 4.0  # min-replicas-max-lag in whole seconds, and the second between two looks at it


@pytest.fixture
def service() -> Iterator[SentinelService]:
    with SentinelService(needed_redis()) as running:
        yield running


async def test_killed_master_is_followed_and_nothing_is_counted_twice(
    service: SentinelService,
) -> None:
    first = service.master()
    async with FailoverLoad(service.url, lambda _: service.master()) as load:
        await asyncio.sleep(1.0)

        first.kill()

        await load.served_anew(OUT_S)
        await asyncio.sleep(1.0)
    assert service.master() is not first
    load.check()


async def test_events_of_the_new_master_are_heard_after_the_old_one_is_killed(
    service: SentinelService,
) -> None:
    async with listening(service.url) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        service.master().kill()

        await until_soon(lambda: _tells(service, heard), 2 * OUT_S)
    assert heard.gaps >= 2


def _tells(service: SentinelService, heard: Heard) -> bool:
    with contextlib.suppress(RedisError):  # the Sentinels may still name the dead one
        service.master().call("PUBLISH", CHANNEL, "told")
    return b"told" in heard.texts


async def test_frozen_master_is_left_with_a_frozen_sentinel_and_has_no_say_when_it_wakes(
    service: SentinelService,
) -> None:
    first = service.master()
    async with FailoverLoad(service.url, lambda _: service.master()) as load:
        await asyncio.sleep(1.0)

        service.sentinels[0].freeze()  # the first of the address; two of three go on
        first.freeze()

        await load.served_anew(OUT_S)
        first.thaw()
        await asyncio.sleep(1.5)
    assert service.master() is not first
    load.check()


async def test_handover_by_hand_is_followed_and_counts_nothing_twice(
    service: SentinelService,
) -> None:
    first = service.master()
    async with FailoverLoad(service.url, lambda _: service.master()) as load:
        await asyncio.sleep(1.0)

        service.hand_over()

        await asyncio.to_thread(until, lambda: service.master() is not first, "another master")
        await load.served_anew(OUT_S)
        await asyncio.sleep(0.5)
    # Sentinel lets the old master take writes until it has learnt of the new one.
    load.check(forgets=True)


async def test_master_without_replicas_stops_admitting_and_only_what_they_missed_is_admitted_twice(
    service: SentinelService,
) -> None:
    first, replicas = service.master(), service.replicas()
    async with FailoverLoad(service.url, lambda _: service.master()) as load:
        await load.served_often(5, within_s=10.0)

        for replica in replicas:
            replica.freeze()
        known, cut_s = Counter(load.granted), time.monotonic()
        last_s = await load.silent(for_s=1.0, within_s=10.0)
        missed = load.granted - known
        first.kill()
        for replica in replicas:
            replica.thaw()

        await load.served_anew(15.0)
        await asyncio.sleep(1.5)
    assert service.master() in replicas
    assert last_s - cut_s <= CUT_OFF_S + 0.5
    assert load.longest_call_s <= DEADLINE_S + LATE_LOOP_S
    for name, told in load.granted.items():
        counted = load.counted(name)
        assert told - missed[name] <= counted <= told, name
        if name.endswith(TIGHT):
            assert load.most_in_a_minute(name) <= RPM + missed[name], name
