"""Rests outside admission: found, lifted and imposed on a real server, by the rules of the core."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_gw.core.limits.probe import Pace, is_ripe
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.rests import KeyRecords, Rests
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import NOW_MS, SharedClock

MINUTE_MS = 60_000


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


@pytest.fixture
def rests(client: RedisClient, scripts: Scripts, clock: SharedClock) -> Rests:
    return Rests(client, scripts, Keys("gw1"), worker_id="w1", server_now_ms=clock.server_now_ms)


def key_of(rests: Rests, name: str = "k", models: int = 2) -> KeyRecords:
    return rests.key_of(
        [
            TargetLimits(
                provider="p",
                account=name,
                key=KeyId(name),
                model=f"m{number}",
                day_reset="rolling",
                model_limits=Limits(),
                key_limits=Limits(),
            )
            for number in range(models)
        ]
    )


async def rest(
    client: RedisClient,
    record: str,
    *,
    set_at_ms: int,
    until_ms: int,
    source: str = "heuristic",
    **more: Any,
) -> None:
    fields = {
        "rest_set_at": set_at_ms,
        "rest_until": until_ms,
        "rest_source": source,
        "rest_reason": "rate_limit",
        "hits": NOW_MS,
        **more,
    }
    await client.call("HSET", record, *(word for pair in fields.items() for word in pair))


async def fields(client: RedisClient, record: str) -> dict[str, str]:
    flat = [word.decode() for word in await client.call("HGETALL", record)]
    return dict(zip(flat[::2], flat[1::2], strict=True))


def test_records_of_a_key_are_those_of_its_models_and_its_own(rests: Rests) -> None:
    assert key_of(rests) == KeyRecords(
        name="p.k",
        records=("gw1:h:{p.k}:k:m0", "gw1:h:{p.k}:k:m1", "gw1:h:{p.k}:k:_all"),
        check="gw1:kc:{p.k}:k",
    )


async def test_keys_with_a_ripe_rest_are_found_among_many_records(
    rests: Rests, client: RedisClient
) -> None:
    ripe, well = key_of(rests, "ripe", models=250), key_of(rests, "well")
    await rest(
        client, ripe.records[249], set_at_ms=NOW_MS - 5 * MINUTE_MS, until_ms=NOW_MS + 5 * MINUTE_MS
    )

    found = await rests.list_ripe([well, ripe])

    assert (found.names, found.now_ms) == (("p.ripe",), NOW_MS)


async def test_lifting_ends_what_was_guessed_and_keeps_the_ladder(
    rests: Rests, client: RedisClient
) -> None:
    key = key_of(rests)
    for record, source in zip(key.records, ("heuristic", "credit", "heuristic"), strict=True):
        await rest(
            client,
            record,
            set_at_ms=NOW_MS - 6 * MINUTE_MS,
            until_ms=NOW_MS + 5 * MINUTE_MS,
            source=source,
        )

    assert await rests.lift(key) == 2
    assert await rests.lift(key) == 0
    assert await fields(client, key.records[0]) == {
        "rest_set_at": str(NOW_MS - 6 * MINUTE_MS),
        "hits": str(NOW_MS),
    }
    assert (await fields(client, key.records[1]))["rest_source"] == "credit"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    served_ms=st.integers(-1000, 600_000),
    left_ms=st.sampled_from([0, 1, MINUTE_MS, MINUTE_MS + 1, 90_000, 300_000]),
    source=st.sampled_from(["heuristic", "heuristic", "authoritative", "tier"]),
)
async def test_script_and_core_agree_on_what_is_ripe(
    rests: Rests, client: RedisClient, served_ms: int, left_ms: int, source: str
) -> None:
    key = key_of(rests, models=1)
    set_at_ms, until_ms = NOW_MS - served_ms, NOW_MS + left_ms
    await rest(client, key.records[0], set_at_ms=set_at_ms, until_ms=until_ms, source=source)
    ripe = is_ripe(source, set_at_ms=set_at_ms, until_ms=until_ms, now_ms=NOW_MS)

    assert bool((await rests.list_ripe([key])).names) is ripe
    assert await rests.lift(key) == int(ripe)


async def test_one_worker_checks_a_key_and_nobody_else_for_half_a_minute(
    rests: Rests, client: RedisClient, scripts: Scripts
) -> None:
    other = Rests(client, scripts, Keys("gw1"), worker_id="w2")
    key = key_of(rests)

    claims = [await one.claim(key) for one in (rests, other, rests)]

    assert claims == [True, False, False]
    assert 0 < await client.call("PTTL", key.check) <= 30_000


async def test_paces_are_kept_for_the_next_leader_and_an_old_one_is_refused(
    rests: Rests, redis_server: RedisServer
) -> None:
    pace = Pace(due_ms=NOW_MS + 5, tries=2)
    await rests.pace(7, {"p.a": pace, "p.b": Pace(due_ms=NOW_MS)})

    later = await rests.pace(8, {"p.b": None})
    stale = await rests.pace(7, {"p.a": None})

    assert later is not None
    assert (later.known, later.now_ms) == ({"p.a": pace}, NOW_MS)
    assert stale is None
