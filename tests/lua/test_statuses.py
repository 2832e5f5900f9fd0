"""What is known of keys, models and the pool, against the rules in `core/limits`."""

from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.degraded import DegradedPolicy, PoolState, weigh_pool
from cluster_gw.core.limits.key_status import KeyRecord, book_check
from cluster_gw.core.limits.model_status import (
    ModelRecord,
    ModelStatus,
    book_proof,
    book_success,
)
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.status_board import read_keys, read_models, read_pool
from tests.lua.calls import NOW_MS

KEYS: Final = Keys("gw1")
STATUSES, POOL = KEYS.key_statuses(), KEYS.pool_status()
NAMES: Final = st.sampled_from(["a.a1", "b.b%2E1"])
CHECKS: Final = st.lists(
    st.tuples(
        NAMES,
        st.sampled_from(["valid", "rejected", "unknown"]),
        st.integers(0, 30_000),
        st.integers(-40_000, 400_000),
    ),
    max_size=25,
)
WEIGHTS: Final = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(-90_000, 90_000)), max_size=25
)


def flat_hash(redis: Redis, key: str) -> list[bytes]:
    """What a worker gets of a hash."""
    return [str(word).encode() for pair in redis.hgetall(key).items() for word in pair]


@given(checks=CHECKS, disable_after=st.integers(1, 4))
@example(checks=[("a.a1", "rejected", 0, 0)] * 3, disable_after=3)
@example(checks=[("a.a1", "valid", 0, 10), ("a.a1", "rejected", 5_000, 10)], disable_after=1)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_checks_are_booked_as_the_rules_say(
    redis: Redis, scripts: Scripts, checks: list[tuple[str, str, int, int]], disable_after: int
) -> None:
    redis.flushall()
    judge, now_ms = redis.register_script(scripts["health/judge"].text), NOW_MS
    known: dict[str, KeyRecord] = {}

    for name, said, took_ms, step_ms in checks:
        now_ms += step_ms
        before = known.get(name, KeyRecord())
        after = book_check(
            before, said, "auth", disable_after=disable_after, took_ms=took_ms, now_ms=now_ms
        )
        reply = judge(keys=[STATUSES], args=[name, said, "auth", disable_after, took_ms, now_ms])
        if after is None:
            assert reply == [0, "stale"]
            continue
        assert reply == [1, "ok", int(after.status is not before.status), after.rejections]
        known[name] = after

    flat = flat_hash(redis, STATUSES)
    assert read_keys(flat) == known


@given(
    weights=WEIGHTS,
    min_providers=st.integers(1, 4),
    entry_s=st.integers(0, 90),
    exit_s=st.integers(0, 90),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pool_is_weighed_as_the_rules_say(
    redis: Redis,
    scripts: Scripts,
    weights: list[tuple[int, int, int]],
    min_providers: int,
    entry_s: int,
    exit_s: int,
) -> None:
    redis.flushall()
    weigh, now_ms, state = redis.register_script(scripts["health/weigh"].text), NOW_MS, PoolState()
    policy = DegradedPolicy(min_providers=min_providers, entry_s=entry_s, exit_s=exit_s)

    for usable, more, step_ms in weights:
        now_ms += step_ms
        after = weigh_pool(state, usable=usable, total=usable + more, policy=policy, now_ms=now_ms)
        reply = weigh(
            keys=[POOL],
            args=[
                *(1, usable, usable + more, 500, min_providers),
                *(entry_s * 1000, exit_s * 1000, now_ms),
            ],
        )
        is_changed = after.is_degraded is not state.is_degraded
        assert reply == [1, "ok", int(is_changed), int(after.is_degraded)]
        assert int(redis.hget(POOL, "turning") or 0) == after.turning_ms
        state = after

    flat = flat_hash(redis, POOL)
    assert read_pool(flat).is_degraded is state.is_degraded


def test_pool_of_an_older_term_is_refused(each_server: Redis, scripts: Scripts) -> None:
    weigh = each_server.register_script(scripts["health/weigh"].text)

    weigh(keys=[POOL], args=[7, 3, 3, 500, 3, 0, 0, NOW_MS])
    before = each_server.hgetall(POOL)
    reply = weigh(keys=[POOL], args=[6, 0, 3, 500, 3, 0, 0, NOW_MS])

    assert reply == [0, "stale"]
    assert each_server.hgetall(POOL) == before


def test_key_that_left_the_configuration_is_forgotten(each_server: Redis, scripts: Scripts) -> None:
    judge = each_server.register_script(scripts["health/judge"].text)

    judge(keys=[STATUSES], args=["a.a1", "rejected", "auth", 3, 0, NOW_MS])
    reply = judge(keys=[STATUSES], args=["a.a1", "forget", "-", 1, 0, NOW_MS])

    again = judge(keys=[STATUSES], args=["a.a1", "forget", "-", 1, 0, NOW_MS])

    assert (reply, again) == ([1, "ok", 1, 0], [1, "ok", 0, 0])
    assert each_server.exists(STATUSES) == 0


def test_statuses_expire_when_nobody_checks_any_more(each_server: Redis, scripts: Scripts) -> None:
    each_server.register_script(scripts["health/judge"].text)(
        keys=[STATUSES], args=["a.a1", "valid", "-", 3, 0, 0]
    )

    assert 6 * 86_400_000 < each_server.pttl(STATUSES) <= 7 * 86_400_000


def test_change_of_a_status_is_told_and_nothing_else(redis: Redis, scripts: Scripts) -> None:
    judge = redis.register_script(scripts["health/judge"].text)
    told = redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    told.subscribe(KEYS.events())
    told.get_message(timeout=1)

    for place, said in enumerate(["valid", "valid", "unknown", "rejected", "rejected"]):
        now_ms = NOW_MS + place * 60_000
        judge(keys=[STATUSES], args=["a.a1", said, "auth", 3, 0, now_ms])
    redis.publish(KEYS.events(), "end")
    texts = []
    while "end" not in texts:
        message = told.get_message(timeout=1)
        texts += [message["data"]] if message else []
    told.close()

    assert texts == [f"status {NOW_MS}", f"status {NOW_MS + 180_000}", "end"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["a b", "valid", "-", 3, 0, 1],
        ["a", "perhaps", "-", 3, 0, 1],
        ["a", "valid", "", 3, 0, 1],
        ["a", "valid", "-", 0, 0, 1],
        ["a", "valid", "-", 3, -1, 1],
        ["a", "valid", "-", 3, 0],
    ],
)
def test_wrong_arguments_change_nothing(
    redis: Redis, scripts: Scripts, arguments: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["health/judge"].text)(keys=[STATUSES], args=arguments)

    assert redis.keys() == []


MODELS: Final = KEYS.model_statuses()
ENDS: Final = st.lists(
    st.tuples(
        st.sampled_from(["p.m", "p.n%2E1"]),
        st.sampled_from(["definitive", "probable", "probable", "answered"]),
        st.sampled_from("abc"),
        st.integers(-100_000, 4_000_000),
        st.integers(-50_000, 10_000),
    ),
    max_size=25,
)
CODES: Final = {None: 0, ModelStatus.SUSPECTED: 1, ModelStatus.RETIRED: 2}


@given(ends=ENDS)
@example(ends=[("p.m", "probable", "a", 0, 0), ("p.m", "definitive", "a", 0, 0)])
@example(ends=[("p.m", "definitive", "a", 0, 0), ("p.m", "answered", "a", 9, 0)])
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_models_are_retired_as_the_rules_say(
    redis: Redis, scripts: Scripts, ends: list[tuple[str, str, str, int, int]]
) -> None:
    redis.flushall()
    retire, now_ms = redis.register_script(scripts["health/retire"].text), NOW_MS
    known: dict[str, ModelRecord] = {}

    for name, proof, request, step_ms, reserved_step_ms in ends:
        now_ms += step_ms
        before = known.get(name)
        if proof == "answered":
            reserved_ms = now_ms + reserved_step_ms
            after = book_success(before, reserved_ms)
            request = str(reserved_ms)  # noqa: PLW2901 - what an answer sends in its place
        else:
            after = book_proof(before, proof, request, "removed", now_ms)
        reply = retire(keys=[MODELS], args=[name, proof, request, "removed", now_ms])
        codes = [CODES[one.status if one else None] for one in (before, after)]
        assert reply == [1 if codes[0] != codes[1] else 2, "ok", codes[1]]
        if after is None:
            known.pop(name, None)
        else:
            known[name] = after

    assert read_models(flat_hash(redis, MODELS)) == known


def test_proofs_expire_when_nobody_proves_any_more(each_server: Redis, scripts: Scripts) -> None:
    each_server.register_script(scripts["health/retire"].text)(
        keys=[MODELS], args=["p.m", "probable", "a", "removed", 0]
    )

    assert 29 * 86_400_000 < each_server.pttl(MODELS) <= 30 * 86_400_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["p m", "probable", "a", "removed", 1],
        ["p.m", "perhaps", "a", "removed", 1],
        ["p.m", "probable", "", "removed", 1],
        ["p.m", "answered", "a", "answered", 1],
        ["p.m", "probable", "a", 1],
    ],
)
def test_wrong_proofs_change_nothing(
    redis: Redis, scripts: Scripts, arguments: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["health/retire"].text)(keys=[MODELS], args=arguments)

    assert redis.keys() == []
