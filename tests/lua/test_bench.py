"""A key rests because an operator says so, and no shorter rest takes the place of a longer one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import HEALTH, MODEL, NOW_MS, Admission

KEY = HEALTH[1]
MOST_MS, REST_MAX_MS = 86_400_000, 93_600_000


def bench(redis: Redis, scripts: Scripts, wait_ms: int, now_ms: int = NOW_MS) -> list[Any]:
    script = redis.register_script(scripts["health/bench"].text)
    reply: list[Any] = script(keys=[KEY], args=[wait_ms, now_ms])
    return reply


def test_key_that_rests_is_refused_on_every_model_and_then_tried(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)

    told = bench(redis, scripts, 60_000)
    refused = admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS + 59_999)
    later = admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS + 60_000)

    assert told == [1, "ok", NOW_MS + 60_000, NOW_MS]
    assert refused[:2] == [0, "cooldown"]
    assert later[0] == 1
    assert redis.hget(KEY, "rest_reason") == "operator"


def test_all_workers_are_told(each_server: Redis, scripts: Scripts) -> None:
    with each_server.pubsub() as heard:  # type: ignore[no-untyped-call]
        heard.subscribe("gw1:events")
        heard.get_message(timeout=5)
        bench(each_server, scripts, 60_000)
        bench(each_server, scripts, 30_000)
        told = heard.get_message(timeout=5)["data"]
        rest = heard.get_message(timeout=0.01)

    assert told == f"health {KEY} cooldown 60000 {NOW_MS}"
    assert rest is None


@pytest.mark.parametrize("wait_ms", [0, -1, MOST_MS + 1])
def test_time_out_of_bounds_is_a_bug_of_the_caller(
    redis: Redis, scripts: Scripts, wait_ms: int
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        bench(redis, scripts, wait_ms)

    assert redis.keys() == []


def test_rest_that_nobody_can_read_is_told(redis: Redis, scripts: Scripts) -> None:
    redis.hset(KEY, "rest_until", "soon")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        bench(redis, scripts, 1000)


@given(
    orders=st.lists(
        st.tuples(st.integers(-100_000, 200_000_000), st.integers(1, MOST_MS)), max_size=8
    )
)
@settings(max_examples=20, deadline=None)
def test_longest_rest_holds_as_by_plain_numbers(
    redis_7: RedisServer, orders: list[tuple[int, int]]
) -> None:
    redis = Redis.from_url(redis_7.url, protocol=2, decode_responses=True)
    redis.flushall()
    scripts, until_ms = load_scripts(), 0

    for step_ms, wait_ms in orders:
        now_ms = NOW_MS + step_ms
        holds = now_ms + wait_ms <= until_ms <= now_ms + REST_MAX_MS
        until_ms = until_ms if holds else now_ms + wait_ms

        assert bench(redis, scripts, wait_ms, now_ms) == [2 if holds else 1, "ok", until_ms, now_ms]
        assert 0 < redis.pttl(KEY) <= 194_400_000
