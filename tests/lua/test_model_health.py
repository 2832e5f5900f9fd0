"""What the scripts of model health answer, and what they refuse."""

from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.lua.calls import NOW_MS
from tests.lua.health_calls import MARKS, RECORD, ModelScripts

TEN_MINUTES_MS = 600_000


@pytest.fixture
def model(each_server: Redis, scripts: Scripts) -> ModelScripts:
    return ModelScripts(each_server, scripts)


def test_third_failure_benches_for_ten_minutes_and_is_told_once(model: ModelScripts) -> None:
    leases = (("a", "k1"), ("b", "k2"), ("c", "k1"), ("c", "k1"))
    replies = [model.book(name, key=key) for name, key in leases]

    assert [reply[2] for reply in replies] == [0, 0, 1, 0]
    assert [reply[0] for reply in replies] == [1, 1, 1, 2]
    assert replies[3][6:] == [0, NOW_MS + TEN_MINUTES_MS]


def test_record_names_the_failures_behind_a_bench(model: ModelScripts) -> None:
    model.book("a", key="k1")
    model.book("b", key="k2", failed="timeout")
    model.book("c", key="k1")

    by: Any = model.redis.hget(RECORD, "bench_by")
    assert by == "k1:upstream_error k2:timeout k1:upstream_error"


def test_look_tells_only_of_models_that_are_not_well(model: ModelScripts) -> None:
    model.book("a", points=3.0)
    model.book("b")

    assert model.look("other", "m", "third") == [1, "ok", NOW_MS, 2, "3", NOW_MS, 1, 2, 0]
    assert model.look("other") == [1, "ok", NOW_MS]


def test_model_that_is_well_again_has_no_record(model: ModelScripts) -> None:
    model.book("a", points=1.0)
    model.book("b", failed=None, points=-1.0, reserved_at_ms=NOW_MS + 1, now_ms=NOW_MS + 1)

    assert not model.redis.exists(RECORD)


def test_bookings_are_forgotten_after_ten_minutes(model: ModelScripts) -> None:
    model.book("a")
    model.book("b", now_ms=NOW_MS + TEN_MINUTES_MS)

    assert model.redis.zrange(MARKS, 0, -1) == ["b"]
    assert 0 < model.redis.pttl(MARKS) <= 2 * TEN_MINUTES_MS


@pytest.mark.parametrize("points", ["x", "1001", "nan", ""])
def test_points_that_are_none_are_an_error(redis: Redis, scripts: Scripts, points: str) -> None:
    args: list[str | int] = ["a", "failure", 0, "k", "error", points, 1, 1, 1, 1, 1, NOW_MS]

    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["health/book"].text)(keys=[MARKS, RECORD], args=args)

    assert redis.keys() == []
