"""Several processes that want the same: one of them fetches it, and if that dies another does."""

import asyncio
import subprocess
import sys
import time

from cluster_gw.store.cache_feed import Lost
from cluster_gw.store.cache_look import Following, Lead
from cluster_gw.store.client import RedisClient
from tests.fakes.redis_server import RedisServer
from tests.lua.racing import race
from tests.store.cache_racer import ask
from tests.store.caching import DIGEST, HEAD, cache_of, read_out
from tests.store.clocks import RealClock

DIGESTS = 20
ATTEMPTS = 12
TAKEOVER_S = 2.0  # a second and a poll; the machine has other work


async def test_of_three_processes_exactly_one_fetches_each_answer_and_all_get_it(
    redis_server: RedisServer, client: RedisClient
) -> None:
    leads = race("tests.store.cache_racer", redis_server.url, attempts=ATTEMPTS, limit=DIGESTS)

    cache = cache_of(client, "reader", RealClock())
    answers = [await ask(cache, f"{number:064x}", "reader") for number in range(DIGESTS)]
    await cache.close()
    assert leads == DIGESTS
    assert not any(is_own for _, is_own in answers)
    assert len({answer for answer, _ in answers}) == DIGESTS


async def test_a_leader_that_is_killed_is_followed_by_another_within_a_second(
    redis_server: RedisServer, client: RedisClient
) -> None:
    leader = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.cache_racer", redis_server.url, "doomed", "die"),
        stdout=subprocess.PIPE,
    )
    assert leader.stdout is not None
    await leader.stdout.readline()
    cache = cache_of(client, "heir", RealClock())
    following = await cache.look(DIGEST)
    assert isinstance(following, Following)
    feed = cache.follow(following)
    read = [await anext(feed), await anext(feed)]
    leader.kill()
    await leader.wait()
    died_s = time.monotonic()

    _, _, end = await read_out(feed)
    lead = await cache.look(DIGEST)
    took_s = time.monotonic() - died_s
    await cache.close()

    assert read == [HEAD, b"half"]
    assert end == Lost("dead")
    assert isinstance(lead, Lead)
    assert lead.token > following.token
    assert took_s < TAKEOVER_S
