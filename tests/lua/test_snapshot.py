"""The scripts of the snapshot: who may publish, which versions there are, what is read."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.ring import Ring
from cluster_gw.core.limits.usage import use_at
from cluster_gw.core.limits.windows import (
    DAY_BUCKETS,
    DAY_WIDTH_MS,
    MINUTE_BUCKETS,
    MINUTE_WIDTH_MS,
    Limits,
)
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import HEALTH, MODEL, NOW_MS, STATISTICS, WHOLE, Admission, texts

KEYS = Keys("gw1")
LEAD, SNAPSHOT = KEYS.lead("snap"), KEYS.snapshot()
TERM_MS = 3000


class SnapshotScripts:
    """Calls them by hand, with the clock as an argument."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        names = ("elect", "publish", "read", "look", "rank")
        self._scripts = {n: redis.register_script(scripts[f"snapshot/{n}"].text) for n in names}

    def elect(self, owner: str, now_ms: int = NOW_MS) -> list[Any]:
        return self._call("elect", [LEAD], [owner, TERM_MS, now_ms])

    def publish(self, owner: str, fence: int, now_ms: int = NOW_MS, blob: str = "{}") -> list[Any]:
        return self._call("publish", [LEAD, SNAPSHOT], [owner, fence, now_ms - 5, blob, now_ms])

    def read(self, version: int, now_ms: int = NOW_MS) -> list[Any]:
        return self._call("read", [SNAPSHOT], [version, now_ms])

    def look(self, names: list[str], kinds: str, now_ms: int = NOW_MS) -> list[Any]:
        return self._call("look", names, [kinds, now_ms])

    def rank(self, owner: str, fence: int, *words: str | float, now_ms: int = NOW_MS) -> list[Any]:
        return self._call("rank", [LEAD, KEYS.speed_ranks()], [owner, fence, *words, now_ms])

    def _call(self, name: str, keys: list[str], args: list[Any]) -> list[Any]:
        reply: list[Any] = self._scripts[name](keys=keys, args=args)
        return reply


@pytest.fixture
def snapshot(each_server: Redis, scripts: Scripts) -> SnapshotScripts:
    return SnapshotScripts(each_server, scripts)


def test_the_builder_publishes_and_versions_rise(snapshot: SnapshotScripts) -> None:
    fence = snapshot.elect("one")[2]

    replies = [snapshot.publish("one", fence, NOW_MS + step) for step in (0, 0, 1000)]

    assert replies == [
        [1, "ok", NOW_MS, NOW_MS],
        [1, "ok", NOW_MS + 1, NOW_MS],
        [1, "ok", NOW_MS + 1000, NOW_MS + 1000],
    ]
    assert snapshot.redis.pttl(SNAPSHOT) > 80_000_000


def test_who_never_had_the_role_is_refused(snapshot: SnapshotScripts) -> None:
    fence = snapshot.elect("one")[2]

    assert snapshot.publish("other", fence) == [0, "stale", 0, NOW_MS]
    assert snapshot.publish("one", fence + 1) == [0, "stale", 0, NOW_MS]
    assert not snapshot.redis.exists(SNAPSHOT)


def test_a_builder_that_slept_is_refused(snapshot: SnapshotScripts) -> None:
    sleeper = snapshot.elect("one")[2]
    later_ms = NOW_MS + TERM_MS
    assert snapshot.publish("one", sleeper, later_ms) == [0, "stale", 0, later_ms]

    other = snapshot.elect("other", later_ms)[2]
    version = snapshot.publish("other", other, later_ms)[2]

    assert snapshot.publish("one", sleeper, later_ms) == [0, "stale", version, later_ms]
    assert snapshot.read(0)[2] == version


def test_versions_rise_though_the_clock_was_set_back_or_the_key_was_lost(
    snapshot: SnapshotScripts,
) -> None:
    fence = snapshot.elect("one")[2]
    first = snapshot.publish("one", fence)[2]
    back = snapshot.publish("one", fence, NOW_MS - 60_000)[2]
    snapshot.redis.delete(SNAPSHOT)
    lost = snapshot.publish("one", fence, NOW_MS + 5)[2]

    assert first < back < lost


def test_a_blob_is_read_only_by_who_has_another_version(snapshot: SnapshotScripts) -> None:
    assert snapshot.read(0) == [0, "none", 0, NOW_MS, ""]
    version = snapshot.publish("one", snapshot.elect("one")[2], blob='{"a":1}')[2]

    assert snapshot.read(0) == [1, "ok", version, NOW_MS, '{"a":1}']
    assert snapshot.read(version + 1)[4] == '{"a":1}'
    assert snapshot.read(version) == [2, "ok", version, NOW_MS, ""]


def test_a_new_version_is_told_to_all(snapshot: SnapshotScripts) -> None:
    with snapshot.redis.pubsub() as channel:  # type: ignore[no-untyped-call]
        channel.subscribe("gw1:events")
        channel.get_message(timeout=5)
        version = snapshot.publish("one", snapshot.elect("one")[2])[2]
        message = channel.get_message(timeout=5)

    assert message["data"] == f"snapshot {version} {NOW_MS}"


def test_a_look_gives_what_there_is_and_nothing_for_what_is_not(
    snapshot: SnapshotScripts, scripts: Scripts
) -> None:
    admission = Admission(snapshot.redis, scripts)
    admission.settle("a", MODEL, outcome="failure 0 0 1 30000")
    tally = snapshot.redis.register_script(scripts["admission/tally"].text)
    tally(keys=[STATISTICS], args=[0, 1, 0, 0, 0, 0, 0, 70, NOW_MS])

    names = [MODEL, WHOLE, *HEALTH, STATISTICS]
    _, _, now_ms, window, whole, sick, key, statistics = snapshot.look(names, "wwhhb")

    assert now_ms == NOW_MS
    assert window == snapshot.redis.hget(MODEL, "now")
    assert (whole, key) == ("", "")
    assert f"breaker open\nfails 1\ngen {NOW_MS * 1000}" in "\n".join(sorted(sick.split("\n")))
    now, _, _, month = statistics.split("\n")
    assert now == snapshot.redis.hget(STATISTICS, "now")
    assert month == snapshot.redis.hget(STATISTICS, "month") == "202611 70"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from((0, 400, 1000, 17_000, 60_500, 61_500, 3_600_000, 40_000_000))
            | st.integers(0, 70_000),
            st.integers(1, 50),
        ),
        min_size=1,
        max_size=12,
    ),
    later_ms=st.sampled_from((0, 999, 61_000, 62_000, 90_000_000)) | st.integers(0, 5_000_000),
)
def test_a_look_at_a_window_leaves_out_what_has_left_it(
    snapshot: SnapshotScripts,
    scripts: Scripts,
    steps: list[tuple[int, int]],
    later_ms: int,
) -> None:
    snapshot.redis.flushall()
    admission = Admission(snapshot.redis, scripts)
    minute, day = Ring(MINUTE_BUCKETS, MINUTE_WIDTH_MS), Ring(DAY_BUCKETS, DAY_WIDTH_MS)
    now_ms = NOW_MS
    for number, (passed_ms, tokens) in enumerate(steps):
        now_ms += passed_ms
        bound = (MODEL, Limits(rpm=1000))
        # A lease that expires keeps its prompt: here that is all of it.
        admission.reserve(str(number), bound, estimate=tokens, prompt=tokens, now_ms=now_ms)
        for ring in (minute, day):
            ring.advance(now_ms)
            ring.add(1, tokens)

    text = snapshot.look([MODEL], "w", now_ms + later_ms)[3]

    use = use_at(tuple(map(int, text.split())), now_ms + later_ms)
    for ring in (minute, day):
        ring.advance(now_ms + later_ms)
    assert [use.requests_minute, use.tokens_minute] == minute.sums()
    assert [use.requests_day, use.tokens_day] == day.sums()


@pytest.mark.parametrize("kinds", ["", "ww", "x", "W"])
def test_a_look_without_a_letter_for_each_key_is_refused(
    snapshot: SnapshotScripts, kinds: str
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        snapshot.look([MODEL], kinds)


def test_ranks_are_written_by_who_has_the_role_alone(snapshot: SnapshotScripts) -> None:
    fence = snapshot.elect("one")[2]

    replies = [
        snapshot.rank("one", fence, "a", 3, "b", 10),
        snapshot.rank("one", fence, "a", 3, "b", 0, "c", 0, now_ms=NOW_MS + 5),
        snapshot.rank("two", fence, "a", 9),
        snapshot.rank("one", fence + 1, "a", 9),
        snapshot.rank("one", fence, "a", 9, now_ms=NOW_MS + TERM_MS),
    ]

    assert replies == [
        [1, "ok", 2, NOW_MS],
        [1, "ok", 1, NOW_MS + 5],
        [0, "stale", 0, NOW_MS],
        [0, "stale", 0, NOW_MS],
        [0, "stale", 0, NOW_MS + TERM_MS],
    ]
    assert texts(snapshot.redis, KEYS.speed_ranks()) == {"a": "3", "_written_at": str(NOW_MS + 5)}


@pytest.mark.parametrize(
    "words", [(), ("a",), ("a", 11), ("a", -1), ("a", 1.5), ("", 1), ("a b", 1), ("_a", 1)]
)
def test_what_is_no_rank_of_a_route_is_refused_before_anything_is_written(
    snapshot: SnapshotScripts, words: tuple[Any, ...]
) -> None:
    fence = snapshot.elect("one")[2]

    with pytest.raises(ResponseError, match="GW_BADARG"):
        snapshot.rank("one", fence, "good", 1, *words) if words else snapshot.rank("one", fence)

    assert not snapshot.redis.exists(KEYS.speed_ranks())
