"""What a worker saw of its targets reaches Redis once, whatever happens on the way."""

from typing import Final

import pytest

from cluster_gw.core.routing.statistics import Result, Sample, Statistics
from cluster_gw.store.client import RedisClient
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.statistics import read_whole
from cluster_gw.store.tallies import Tallies
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon

RECORD: Final = "gw1:b:{p.a}:k:m"
NOW_MS: Final = 1_795_000_000_000
ANSWER: Final = Sample(result=Result.SUCCESS, output_tokens=700, latency_ms=3200, first_byte_ms=450)
FAILURE: Final = Sample(result=Result.FAILURE)


def tallies_of(client: RedisClient, scripts: Scripts) -> Tallies:
    return Tallies(client, scripts, server_now_ms=lambda: NOW_MS)


async def told(client: RedisClient) -> Statistics:
    return read_whole(await client.call("HGET", RECORD, "now"), b"", NOW_MS)


async def test_many_attempts_are_one_call(client: RedisClient, scripts: Scripts) -> None:
    tallies = tallies_of(client, scripts)
    for sample in (ANSWER, ANSWER, FAILURE):
        tallies.add(RECORD, sample)
    client.know(scripts["admission/tally"])
    calls = client.calls

    await tallies.flush()

    assert client.calls == calls + 1
    stored = await told(client)
    assert (stored.successes, stored.failures) == pytest.approx((2.0, 1.0), rel=1e-3)
    assert stored.mean_first_byte_ms == pytest.approx(450)
    assert stored.tokens_per_s == pytest.approx(700 / 3.2)


async def test_what_was_told_is_not_told_again(client: RedisClient, scripts: Scripts) -> None:
    tallies = tallies_of(client, scripts)
    tallies.add(RECORD, ANSWER)

    await tallies.flush()
    await tallies.flush()

    assert (await told(client)).successes == pytest.approx(1.0, rel=1e-3)


async def test_while_redis_is_away_nothing_is_lost(
    own_server: RedisServer, scripts: Scripts
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    tallies = tallies_of(client, scripts)
    own_server.kill()
    await until_soon(lambda: not client.is_up)
    tallies.add(RECORD, ANSWER)
    await tallies.flush()
    tallies.add(RECORD, ANSWER)
    own_server.start()
    await until_soon(lambda: client.is_up)

    await tallies.flush()

    assert (await told(client)).successes == pytest.approx(2.0, rel=1e-3)
    assert tallies.dropped == 0
    await client.close()


async def test_a_batch_of_unknown_outcome_is_dropped_and_counted(
    own_server: RedisServer, scripts: Scripts
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.1)
    await client.start(5.0)
    tallies = tallies_of(client, scripts)
    tallies.add(RECORD, ANSWER)
    own_server.freeze()
    await tallies.flush()
    own_server.thaw()

    await tallies.flush()

    assert tallies.dropped == 1
    await client.close()


async def test_tokens_are_told_of_attempts_that_say_nothing_else(
    client: RedisClient, scripts: Scripts
) -> None:
    tallies = tallies_of(client, scripts)
    tallies.add(RECORD, None, 40)
    tallies.add(RECORD, ANSWER, 30)
    tallies.add("gw1:b:{p.a}:k:idle", None, 0)

    await tallies.flush()

    assert await client.call("HGET", RECORD, "month") == b"202611 70"
    assert await client.call("EXISTS", "gw1:b:{p.a}:k:idle") == 0
