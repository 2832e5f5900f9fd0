"""The script's sums against the pure rule: random attempts at random times."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.routing.statistics import (
    BUCKET_MS,
    NO_STATISTICS,
    Result,
    Sample,
    Statistics,
    add,
    bucket_of,
    coded,
    decoded,
    of_sample,
    roll,
    statistics_at,
    values_of,
    weight,
)
from cluster_gw.store.scripts import Scripts, load_scripts
from cluster_gw.store.statistics import FIELDS, PAST, is_present, read_record, read_whole
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS, STATISTICS
from tests.lua.window_fields import ANY_BYTES

SAMPLES: Final = st.builds(
    Sample,
    result=st.sampled_from(Result),
    output_tokens=st.integers(0, 5000),
    latency_ms=st.integers(0, 200_000),
    first_byte_ms=st.none() | st.integers(0, 20_000),
)
STEPS_MS: Final = st.one_of(
    st.integers(0, 5000),
    st.integers(0, BUCKET_MS),
    st.sampled_from((0, BUCKET_MS - 1, BUCKET_MS, 5 * BUCKET_MS, 28 * BUCKET_MS, 40 * BUCKET_MS)),
    st.integers(-BUCKET_MS // 2, 0),
)
TOKENS: Final = st.sampled_from((0, 1, 70, 10**12))
DAY_MS: Final = 86_400_000
OCTOBER_ENDS_MS: Final = 1_793_491_200_000
FAILURE: Final = Sample(result=Result.FAILURE)
ANSWER: Final = Sample(result=Result.SUCCESS, output_tokens=700, latency_ms=3200, first_byte_ms=450)


def month_of(now_ms: int) -> int:
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return moment.year * 100 + moment.month


def rounded(sums: Statistics) -> Statistics:
    """As they are kept when their bucket is over."""
    return Statistics(*(decoded(coded(one)) for one in values_of(sums)))


class Model:
    """Every bucket that was ever written, each in its own weights.

    Attributes:
        exact: the same as if nothing was rounded when it was over.
    """

    def __init__(self) -> None:
        self.buckets: dict[int, Statistics] = {}
        self.exact: dict[int, Statistics] = {}
        self.newest = 0
        self.month = (0, 0)

    def add(self, sample: Sample, now_ms: int) -> None:
        present = bucket_of(now_ms)
        if self.newest - present > 1:
            self.buckets, self.exact, self.newest, self.month = {}, {}, present, (0, 0)
        if present > self.newest and self.newest in self.buckets:
            self.buckets[self.newest] = rounded(self.buckets[self.newest])
        self.newest = max(self.newest, present)  # a clock that stepped back a little
        grown = weight(now_ms, self.newest * BUCKET_MS)
        for buckets in (self.buckets, self.exact):
            before = buckets.get(self.newest, NO_STATISTICS)
            buckets[self.newest] = add(before, of_sample(sample), grown)

    def use(self, tokens: int, now_ms: int) -> None:
        if tokens:
            month = month_of(now_ms)
            self.month = month, tokens + (self.month[1] if self.month[0] == month else 0)

    def at(self, now_ms: int) -> Statistics:
        return statistics_at(roll(self.buckets, bucket_of(now_ms)), now_ms)

    def exactly_at(self, now_ms: int) -> Statistics:
        return statistics_at(roll(self.exact, bucket_of(now_ms)), now_ms)


class Tally:
    """Adds to the statistics of one target on one server."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._tally = redis.register_script(scripts["admission/tally"].text)

    def add(self, *samples: Sample, tokens: int = 0, now_ms: int = NOW_MS) -> list[Any]:
        """Add attempts at once, as a worker does that saw all of them since it last told."""
        sums = map(sum, zip(*(values_of(of_sample(one)) for one in samples), strict=True))
        return self.call(*map(round, sums), tokens, now_ms)

    def call(self, *args: Any) -> list[Any]:
        reply: list[Any] = self._tally(keys=[STATISTICS], args=list(args))
        return reply


def stored(redis: Redis) -> dict[str, bytes]:
    fields = redis.hgetall(STATISTICS).items()
    return {str(name): str(value).encode(errors=ANY_BYTES) for name, value in fields}


def read(redis: Redis, now_ms: int) -> tuple[Statistics | None, Statistics]:
    """What the record says by its three fields, if it can, and by all of them."""
    fields = stored(redis)
    record = read_record([fields.get(name) for name in FIELDS])
    past = b"".join(fields.get(name, b"") for name in PAST)
    whole = read_whole(fields["now"], past, now_ms)
    if record is None or not is_present(record, now_ms):
        return None, whole
    return statistics_at(record, now_ms), whole


@pytest.fixture
def tally(each_server: Redis, scripts: Scripts) -> Tally:
    return Tally(each_server, scripts)


def test_sums_follow_the_rule_whatever_happens_when(redis_7: RedisServer) -> None:
    redis = Redis.from_url(
        redis_7.url, protocol=2, decode_responses=True, encoding_errors=ANY_BYTES
    )
    tally = Tally(redis, load_scripts())

    @settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        steps=st.lists(
            st.tuples(STEPS_MS, st.lists(SAMPLES, min_size=1, max_size=4), TOKENS),
            min_size=1,
            max_size=30,
        )
    )
    def run(steps: list[tuple[int, list[Sample], int]]) -> None:
        redis.flushall()
        model, now_ms = Model(), NOW_MS
        for step_ms, samples, tokens in steps:
            now_ms += step_ms
            tally.add(*samples, tokens=tokens, now_ms=now_ms)
            for sample in samples:
                model.add(sample, now_ms)
            model.use(tokens, now_ms)
        used = stored(redis).get("month", b"0 0")
        assert tuple(map(int, used.split())) == model.month
        now_ms = max(now_ms, model.newest * BUCKET_MS)
        by_three, whole = read(redis, now_ms)
        expected = pytest.approx(values_of(model.at(now_ms)), rel=1e-6, abs=1e-6)
        assert values_of(whole) == expected
        assert by_three is not None
        assert values_of(by_three) == expected
        exactly = pytest.approx(values_of(model.exactly_at(now_ms)), rel=2.6e-4, abs=1e-6)
        assert values_of(whole) == exactly
        assert redis.pttl(STATISTICS) > 7 * 86_400_000

    run()


def test_a_clock_that_was_far_ahead_does_not_stop_the_statistics(tally: Tally) -> None:
    tally.add(ANSWER, now_ms=NOW_MS + 100 * BUCKET_MS)

    tally.add(ANSWER)

    assert read(tally.redis, NOW_MS)[1].successes == pytest.approx(1.0)


def test_seven_days_of_attempts_take_bounded_room(tally: Tally) -> None:
    for number in range(60):
        tally.add(ANSWER, now_ms=NOW_MS + number * BUCKET_MS)

    fields = stored(tally.redis)
    assert set(fields) == {*FIELDS, *PAST}
    assert sum(len(fields[name]) for name in PAST) == 28 * 7 * 2


def test_nothing_of_more_than_a_week_ago_is_kept_but_the_tokens_of_the_month(
    tally: Tally,
) -> None:
    for number in range(10):
        tally.add(ANSWER, tokens=70, now_ms=OCTOBER_ENDS_MS - 30 * DAY_MS + number * BUCKET_MS)

    later_ms = OCTOBER_ENDS_MS - 18 * DAY_MS
    tally.add(FAILURE, now_ms=later_ms)

    assert set(stored(tally.redis)) == {*FIELDS, "month"}
    by_three, whole = read(tally.redis, later_ms)
    assert by_three is not None
    assert values_of(by_three) == values_of(whole) == values_of(of_sample(FAILURE))


def test_past_of_another_length_is_refused_before_anything_is_written(tally: Tally) -> None:
    for number in range(10):
        tally.add(ANSWER, now_ms=NOW_MS + number * BUCKET_MS)
    tally.redis.hset(STATISTICS, "p1", "by hand")
    before = stored(tally.redis)

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        tally.add(ANSWER, now_ms=NOW_MS + 10 * BUCKET_MS)

    assert stored(tally.redis) == before
    with pytest.raises(ValueError, match="14 bytes"):
        read(tally.redis, NOW_MS + 10 * BUCKET_MS)


def test_tokens_of_a_month_are_kept_to_its_end_and_those_of_the_last_one_are_gone(
    tally: Tally,
) -> None:
    tally.add(ANSWER, tokens=70, now_ms=OCTOBER_ENDS_MS - 30 * DAY_MS)
    to_the_end_ms = tally.redis.pttl(STATISTICS)
    tally.add(ANSWER, tokens=5, now_ms=OCTOBER_ENDS_MS - 1)
    october = stored(tally.redis)["month"]
    least_ms = tally.redis.pttl(STATISTICS)
    tally.add(ANSWER, tokens=3, now_ms=OCTOBER_ENDS_MS)

    assert (october, stored(tally.redis)["month"]) == (b"202610 75", b"202611 3")
    assert 29.9 * DAY_MS < to_the_end_ms <= 30 * DAY_MS
    assert 7.9 * DAY_MS < least_ms <= 8 * DAY_MS


@pytest.mark.parametrize(
    "sums", [(1,), (1, 0, 0, 5, 5, 5, 0), (1, 0, 0, 5, 5, 5, 0, -1), (1,) * 10]
)
def test_sums_of_another_form_are_refused_before_anything_is_written(
    tally: Tally, sums: tuple[int, ...]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        tally.call(*sums, NOW_MS)

    assert stored(tally.redis) == {}
