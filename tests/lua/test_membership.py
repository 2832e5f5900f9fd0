"""Beats and roles: examples, and random histories against plain dictionaries."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, NOW_MS, scores, texts
from tests.lua.machine import ScriptMachine, run_machine

SILENT_MS: Final = 1_500
DEAD_MS: Final = 4_000
FORGET_MS: Final = 3_600_000
TERM_MAX_MS: Final = 60_000
NAMED_MAX: Final = 50
WORKERS: Final = st.sampled_from(["w1", "w2", "w3"])
STEPS_MS: Final = st.one_of(
    st.integers(0, 2_000), st.integers(0, 10_000), st.integers(0, 2 * FORGET_MS)
) | st.integers(-200_000, 0)


class Cluster:
    """Calls the scripts by hand, with the clock as an argument."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._beat = redis.register_script(scripts["meta/beat"].text)
        self._leave = redis.register_script(scripts["meta/leave"].text)
        self._elect = redis.register_script(scripts["snapshot/elect"].text)

    def beat(self, worker: str, now_ms: int = NOW_MS, silent_ms: int = SILENT_MS) -> list[Any]:
        args: list[str | int] = [worker, silent_ms, DEAD_MS, now_ms]
        reply: list[Any] = self._beat(keys=[KEYS.workers()], args=args)
        return reply

    def leave(self, worker: str, beat_ms: int = 0) -> list[Any]:
        reply: list[Any] = self._leave(keys=[KEYS.workers()], args=[worker, beat_ms])
        return reply

    def elect(self, owner: str, now_ms: int = NOW_MS, term_ms: int = 3_000) -> list[Any]:
        reply: list[Any] = self._elect(keys=[KEYS.lead("reaper")], args=[owner, term_ms, now_ms])
        return reply


class ClusterMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(self.redis, self.loaded)
        self.beats: dict[str, int] = {}
        self.owner, self.until_ms, self.fence = "", 0, 0

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(worker=WORKERS)
    def beat(self, worker: str) -> None:
        reply = self.cluster.beat(worker, self.now_ms)

        self.beats[worker] = self.now_ms
        self.beats = {w: at for w, at in self.beats.items() if at > self.now_ms - FORGET_MS}
        alive = sum(at > self.now_ms - DEAD_MS for at in self.beats.values())
        quiet = sorted((at, w) for w, at in self.beats.items() if at <= self.now_ms - SILENT_MS)
        named = [word for at, w in quiet for word in (w, str(at))]
        assert reply == [1, "ok", alive, self.now_ms, *named]

    @rule(worker=WORKERS, is_sure=st.booleans(), seen_ms=st.integers(1, 2))
    def leave(self, worker: str, is_sure: bool, seen_ms: int) -> None:
        beat_ms = 0 if is_sure else self.beats.get(worker, 0) + seen_ms - 1
        reply = self.cluster.leave(worker, beat_ms)

        if worker not in self.beats:
            assert reply == [2, "ok"]
        elif beat_ms in {0, self.beats[worker]}:
            assert reply == [1, "ok"]
            del self.beats[worker]
        else:
            assert reply == [0, "alive"]

    @rule(owner=WORKERS, term_ms=st.integers(0, 5_000))
    def elect(self, owner: str, term_ms: int) -> None:
        reply = self.cluster.elect(owner, self.now_ms, term_ms)

        is_held = 0 < self.until_ms - self.now_ms <= TERM_MAX_MS
        if is_held and owner != self.owner:
            assert reply == [0, "held", self.fence, self.until_ms - self.now_ms]
            return
        before, self.until_ms = self.fence, self.now_ms + term_ms
        if not is_held:
            self.fence = max(self.fence + 1, self.now_ms)
            assert self.fence > before
        self.owner = owner
        assert reply == [2 if is_held else 1, "ok", self.fence, self.until_ms]

    @rule()
    def lose_the_role(self) -> None:
        """The key is lost: a later fence must still be greater, as time has passed."""
        self.cluster.redis.delete(KEYS.lead("reaper"))
        self.now_ms = max(self.now_ms, self.fence) + 1
        self.owner, self.until_ms, self.fence = "", 0, 0

    @invariant()
    def state_equals_the_model(self) -> None:
        assert scores(self.cluster.redis, KEYS.workers()) == self.beats
        stored = texts(self.cluster.redis, KEYS.lead("reaper"))
        expected = {"owner": self.owner, "until": str(self.until_ms), "fence": str(self.fence)}
        assert stored == (expected if self.owner else {})

    @invariant()
    def every_key_has_a_ttl(self) -> None:
        for key in self.cluster.redis.scan_iter():
            assert self.cluster.redis.pttl(key) > 0, key


def test_scripts_and_model_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(ClusterMachine, redis_7, histories=30, steps=40)


@pytest.fixture
def cluster(each_server: Redis, scripts: Scripts) -> Cluster:
    return Cluster(each_server, scripts)


def test_worker_that_falls_silent_is_named_and_then_not_counted(cluster: Cluster) -> None:
    cluster.beat("quiet")

    assert cluster.beat("w1", NOW_MS + 1_499) == [1, "ok", 2, NOW_MS + 1_499]
    named = cluster.beat("w1", NOW_MS + 1_500)
    assert named == [1, "ok", 2, NOW_MS + 1_500, "quiet", str(NOW_MS)]
    assert cluster.beat("w1", NOW_MS + 4_000)[2] == 1


def test_worker_that_was_silent_for_an_hour_is_forgotten(cluster: Cluster) -> None:
    cluster.beat("old")

    cluster.beat("w1", NOW_MS + FORGET_MS - 1)
    assert set(scores(cluster.redis, KEYS.workers())) == {"old", "w1"}
    cluster.beat("w1", NOW_MS + FORGET_MS)

    assert set(scores(cluster.redis, KEYS.workers())) == {"w1"}


def test_only_the_fifty_longest_silent_are_named(cluster: Cluster) -> None:
    for number in range(NAMED_MAX + 5):
        cluster.beat(f"old{number:02}", NOW_MS + number)

    reply = cluster.beat("w1", NOW_MS + 10_000)

    assert reply[4::2] == [f"old{number:02}" for number in range(NAMED_MAX)]


def test_dead_worker_that_was_heard_again_stays(cluster: Cluster) -> None:
    cluster.beat("back", NOW_MS)
    cluster.beat("back", NOW_MS + 9_000)

    assert cluster.leave("back", NOW_MS) == [0, "alive"]
    assert cluster.leave("back", NOW_MS + 9_000) == [1, "ok"]


def test_role_goes_to_another_only_after_its_term(cluster: Cluster) -> None:
    _, _, fence, until_ms = cluster.elect("w1")

    assert cluster.elect("w2", until_ms - 1) == [0, "held", fence, 1]
    assert cluster.elect("w2", until_ms)[:3] == [1, "ok", until_ms]
    assert until_ms > fence


def test_role_that_was_given_up_is_vacant_at_once(cluster: Cluster) -> None:
    fence = cluster.elect("w1")[2]

    cluster.elect("w1", term_ms=0)

    assert cluster.elect("w2") == [1, "ok", fence + 1, NOW_MS + 3_000]


def test_term_of_a_clock_that_was_wrong_does_not_bar_the_role_for_long(cluster: Cluster) -> None:
    cluster.elect("w1", NOW_MS + 10_000_000)

    reply = cluster.elect("w2", NOW_MS)

    assert reply == [1, "ok", NOW_MS + 10_000_001, NOW_MS + 3_000]


def test_wrong_calls_are_errors(redis: Redis, scripts: Scripts) -> None:
    cluster = Cluster(redis, scripts)

    wrong: list[Callable[[], object]] = [
        lambda: cluster.beat("a b"),
        lambda: cluster.beat("w1", silent_ms=0),
        lambda: cluster.leave("w1", -1),
        lambda: cluster.elect(""),
        lambda: cluster.elect("w1", term_ms=60_001),
    ]
    for call in wrong:
        with pytest.raises(ResponseError, match="GW_BADARG"):
            call()
    assert redis.keys() == []
