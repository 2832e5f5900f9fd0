"""Counting strangers, against a plain model."""

from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.lua.calls import NOW_MS

KEY: Final = "gw1:{auth}:strangers"
MINUTE_MS: Final = 60_000
APART: Final = 2
CALLS: Final = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(-130_000, 130_000)), max_size=30
)


class Model:
    """One window at a time; what finds no place of its own counts with the others."""

    def __init__(self) -> None:
        self.minute = -1
        self.counts: dict[str, int] = {}

    def count(self, network: str, now_ms: int) -> list[object]:
        minute = now_ms // MINUTE_MS
        if self.minute not in (minute, minute + 1):
            self.minute, self.counts = minute, {}
        has_place = network in self.counts or len(self.counts) < APART
        name = network if has_place else "_rest"
        self.counts[name] = self.counts.get(name, 0) + 1
        return [1, "ok", self.counts[name], (self.minute + 1) * MINUTE_MS - now_ms]


@given(calls=CALLS)
@example(calls=[("a", 0), ("b", 0), ("c", 0), ("d", 0), ("a", 0)])
@example(calls=[("a", 0), ("a", -60_000), ("a", -120_000)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_strangers_are_counted_as_the_model_says(
    redis: Redis, scripts: Scripts, calls: list[tuple[str, int]]
) -> None:
    redis.flushall()
    count, model, now_ms = redis.register_script(scripts["client/count_stranger"].text), Model(), 0

    for network, step_ms in calls:
        now_ms += step_ms
        at_ms = NOW_MS + now_ms
        reply = count(keys=[KEY], args=[network, APART, at_ms])
        assert reply == model.count(network, at_ms)

    assert redis.hlen(KEY) <= APART + 2


def test_count_goes_with_its_minute(each_server: Redis, scripts: Scripts) -> None:
    count = each_server.register_script(scripts["client/count_stranger"].text)

    count(keys=[KEY], args=["192.0.2.1", 10, 0])

    assert 0 < each_server.pttl(KEY) <= 2 * MINUTE_MS


@pytest.mark.parametrize("arguments", [["_minute", 10, 0], ["", 10, 0], ["a", 0, 0], ["a", 10]])
def test_wrong_arguments_change_nothing(
    redis: Redis, scripts: Scripts, arguments: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["client/count_stranger"].text)(keys=[KEY], args=arguments)

    assert redis.keys() == []
