"""Records of requests are bounded by number and by time, against a plain model."""

from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.lua.calls import KEYS, NOW_MS, scores, texts

ORDER, RECORDS = KEYS.requests("a", "plain")
TTL_MS: Final = 60_000
AT_ONCE: Final = 8
CALLS: Final = st.lists(
    st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 40_000), st.integers(1, 6)),
    max_size=30,
)


class Model:
    """What is kept, each with its time; nine of the oldest go at once where there are too many."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}
        self.texts: dict[str, str] = {}

    def keep(self, name: str, text: str, most: int, now_ms: int) -> int:
        if self.at and now_ms >= max(self.renewed_ms + TTL_MS, 0):
            self.at, self.texts = {}, {}
        self.renewed_ms = now_ms
        self.at[name], self.texts[name] = now_ms, text
        oldest = sorted(self.at, key=lambda one: (self.at[one], one))
        above = len(oldest) - most
        if above > 0:
            gone = oldest[: min(above, AT_ONCE + 1)]
        else:
            gone = [one for one in oldest if self.at[one] <= now_ms - TTL_MS][:AT_ONCE]
        for one in gone:
            del self.at[one], self.texts[one]
        return len(gone)

    renewed_ms = 0


@given(calls=CALLS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_kept_is_what_the_model_says(
    redis: Redis, scripts: Scripts, calls: list[tuple[str, int, int]]
) -> None:
    redis.flushall()
    keep, model, now_ms = redis.register_script(scripts["request/record"].text), Model(), NOW_MS

    for number, (name, passed_ms, most) in enumerate(calls):
        now_ms += passed_ms
        if model.at and now_ms >= model.renewed_ms + TTL_MS:
            redis.delete(
                ORDER, RECORDS
            )  # as their time to live would: the server has its own clock
        reply = keep(keys=[ORDER, RECORDS], args=[name, f"r{number}", most, TTL_MS, now_ms])

        assert reply == [1, "ok", model.keep(name, f"r{number}", most, now_ms)]
        assert scores(redis, ORDER) == model.at
        assert texts(redis, RECORDS) == model.texts
        for key in redis.keys("*"):
            assert 0 < redis.pttl(str(key)) <= TTL_MS


def test_server_clock_is_used_when_none_is_given(redis: Redis, scripts: Scripts) -> None:
    keep = redis.register_script(scripts["request/record"].text)

    keep(keys=[ORDER, RECORDS], args=["a", "r", 5, TTL_MS, 0])

    seconds, micros = redis.time()
    assert abs(scores(redis, ORDER)["a"] - seconds * 1000 - micros // 1000) < 5_000


@pytest.mark.parametrize(
    "args",
    [
        ("", "r", 5, TTL_MS, 0),
        ("a", "", 5, TTL_MS, 0),
        ("a", "r", 0, TTL_MS, 0),
        ("a", "r", 5, 0, 0),
        ("a", "r", 5, TTL_MS, -1),
        ("a", "r", 5, TTL_MS),
    ],
)
def test_wrong_argument_is_an_error_and_writes_nothing(
    redis: Redis, scripts: Scripts, args: tuple[object, ...]
) -> None:
    keep = redis.register_script(scripts["request/record"].text)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        keep(keys=[ORDER, RECORDS], args=[str(arg) for arg in args])
    assert redis.keys("*") == []
