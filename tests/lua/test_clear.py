"""What an operator forgets: rests, ladders, breakers, penalties, benches; late calls stay late."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import HEALTH, MODEL, NOW_MS, Admission, texts
from tests.lua.clear_model import cleared
from tests.lua.health_calls import RECORD, ModelScripts

FREE: Final = Limits()
FAILURE: Final = "failure 0 1 1 30000"


class Clear:
    """Calls the script on one server."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._script = redis.register_script(scripts["health/clear"].text)

    def __call__(self, kind: str, *keys: str, now_ms: int = NOW_MS) -> list[Any]:
        reply: list[Any] = self._script(keys=[*keys], args=[kind, now_ms])
        return reply


@pytest.fixture
def clear(each_server: Redis, scripts: Scripts) -> Clear:
    return Clear(each_server, scripts)


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def open_breaker(admission: Admission, name: str) -> None:
    admission.reserve(name, (MODEL, FREE))
    admission.settle(name, MODEL, outcome=FAILURE)


def test_target_that_was_cut_off_is_admitted_again(clear: Clear, admission: Admission) -> None:
    open_breaker(admission, "a")
    before = admission.reserve("b", (MODEL, FREE))

    reply = clear("target", *HEALTH)

    assert before[:2] == [0, "breaker_open"]
    assert reply == [1, "ok", 1]
    assert admission.reserve("c", (MODEL, FREE))[0] == 1
    assert list(texts(clear.redis, HEALTH[0])) == ["gen"]
    assert 0 < clear.redis.pttl(HEALTH[0]) <= 4_800_000


def test_call_that_was_admitted_before_does_not_cut_it_off_again(
    clear: Clear, admission: Admission
) -> None:
    admission.reserve("early", (MODEL, FREE))
    open_breaker(admission, "a")
    clear("target", *HEALTH)

    admission.settle("early", MODEL, outcome=FAILURE)

    assert admission.reserve("c", (MODEL, FREE))[0] == 1


def test_model_loses_its_points_and_its_bench(
    clear: Clear, each_server: Redis, scripts: Scripts
) -> None:
    models, bench = ModelScripts(each_server, scripts), BenchPolicy(failures=1)
    models.book("a", points=3.0, bench=bench)

    reply = clear("model", RECORD, now_ms=NOW_MS + 1000)

    assert reply == [1, "ok", 1]
    assert models.look("m", now_ms=NOW_MS + 1000)[3:] == [1, "0", 0, 0, 0, 0]
    late = models.book("b", bench=bench, reserved_at_ms=NOW_MS, now_ms=NOW_MS + 2000)
    assert late[2] == 0
    fresh = models.book("c", bench=bench, reserved_at_ms=NOW_MS + 1500, now_ms=NOW_MS + 2000)
    assert fresh[2] == 1


def test_clearing_twice_changes_nothing_more(clear: Clear, admission: Admission) -> None:
    open_breaker(admission, "a")

    assert clear("target", *HEALTH) == [1, "ok", 1]
    assert clear("target", *HEALTH) == [1, "ok", 0]


def test_kind_that_is_none_is_an_error(clear: Clear) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        clear("planet", *HEALTH)


def test_record_of_somebody_else_keeps_all_of_them(clear: Clear) -> None:
    clear.redis.hset(HEALTH[0], mapping={"fails": "2"})
    clear.redis.hset(HEALTH[1], mapping={"gen": "x"})

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 2"):
        clear("target", *HEALTH)

    assert texts(clear.redis, HEALTH[0]) == {"fails": "2"}


FIELDS: Final = st.dictionaries(
    st.sampled_from(["rest_until", "fails", "gen", "points", "bench_set_at", "bench_until"])
    | st.sampled_from(["state", "failed", "changed_at"]),
    st.integers(0, 2 * NOW_MS).map(str),
)


@given(
    records=st.lists(FIELDS, min_size=2, max_size=2),
    kind=st.sampled_from(["target", "model", "provider"]),
    now_ms=st.integers(NOW_MS, NOW_MS + 10**6),
)
@settings(max_examples=60, deadline=None)
def test_script_does_what_the_model_says(
    redis_7: RedisServer, records: list[dict[str, str]], kind: str, now_ms: int
) -> None:
    with Redis.from_url(redis_7.url, protocol=2, decode_responses=True) as redis:
        redis.flushall()
        for key, fields in zip(HEALTH, records, strict=True):
            if fields:
                redis.hset(key, mapping=fields)
        expected = [cleared(fields, kind, now_ms) for fields in records]

        reply = Clear(redis, load_scripts())(kind, *HEALTH, now_ms=now_ms)

        assert reply == [1, "ok", sum(had for _, had in expected)]
        assert [texts(redis, key) for key in HEALTH] == [after for after, _ in expected]
