"""What workers say of themselves and which are drained: examples, and histories against a model."""

from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, NOW_MS, texts
from tests.lua.machine import ScriptMachine, run_machine

STATES, DRAINS, WORKERS = KEYS.worker_states(), KEYS.drains(), KEYS.workers()
NAMES: Final = st.sampled_from(("w1", "w2", "w3"))


class FleetMachine(ScriptMachine):
    """Workers come, go without a word, and report; operators drain some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: set[str] = set()
        self.states: dict[str, str] = {}
        self.drained: dict[str, int] = {}

    def run(self, name: str, keys: list[str], *args: str | int) -> list[Any]:
        reply: list[Any] = self.redis.register_script(self.loaded[name].text)(keys=keys, args=args)
        return reply

    @rule(worker=NAMES)
    def come(self, worker: str) -> None:
        self.redis.zadd(WORKERS, {worker: self.now_ms})
        self.listed.add(worker)

    @rule(worker=NAMES)
    def go(self, worker: str) -> None:
        self.redis.zrem(WORKERS, worker)
        self.listed.discard(worker)

    @rule(worker=NAMES, text=st.sampled_from(("{}", '{"a":1}')))
    def report(self, worker: str, text: str) -> None:
        since = self.drained.get(worker, 0)
        self.states[worker] = text
        if len(self.states) > len(self.listed):
            kept = self.listed | {worker}
            gone = self.states.keys() - kept
            self.states = {w: said for w, said in self.states.items() if w in kept}
            self.drained = {w: at for w, at in self.drained.items() if w not in gone}

        assert self.run("meta/report", [STATES, DRAINS, WORKERS], worker, text) == [1, "ok", since]

    @rule(workers=st.sets(NAMES), drained=st.booleans())
    def drain(self, workers: set[str], drained: bool) -> None:
        self.now_ms += 1
        named = sorted(workers)
        reply = self.run("meta/drain", [DRAINS, WORKERS], int(drained), *named, self.now_ms)

        unknown = [worker for worker in named if worker not in self.listed]
        if unknown:
            assert reply == [0, "unknown", self.now_ms, *unknown]
            return
        meant = workers or self.listed
        changed = {worker for worker in meant if (worker in self.drained) is not drained}
        if drained:
            self.drained |= dict.fromkeys(changed, self.now_ms)
        else:
            self.drained = {w: at for w, at in self.drained.items() if w not in changed}
        assert (reply[:3], set(reply[3:])) == ([1, "ok", self.now_ms], changed)

    @invariant()
    def state_equals_the_model(self) -> None:
        assert texts(self.redis, STATES) == self.states
        assert texts(self.redis, DRAINS) == {w: str(at) for w, at in self.drained.items()}
        for key in (STATES, DRAINS):
            assert self.redis.pttl(key) > 0 or not self.redis.exists(key)


def test_scripts_and_model_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(FleetMachine, redis_7, histories=20, steps=30)


def test_workers_are_told_of_a_drain_and_of_nothing_that_changes_nothing(
    each_server: Redis, scripts: Scripts
) -> None:
    drain = each_server.register_script(scripts["meta/drain"].text)
    each_server.zadd(WORKERS, {"w1": NOW_MS})
    with each_server.pubsub() as heard:  # type: ignore[no-untyped-call]
        heard.subscribe(KEYS.events())
        heard.get_message(timeout=5)
        for _ in range(2):
            drain(keys=[DRAINS, WORKERS], args=[1, NOW_MS])
        drain(keys=[DRAINS, WORKERS], args=[0, "w1", NOW_MS + 1])
        told = [heard.get_message(timeout=5)["data"] for _ in range(2)]
        rest = heard.get_message(timeout=0.01)

    assert told == [f"drain {NOW_MS}", f"drain {NOW_MS + 1}"]
    assert rest is None


def test_drain_that_nobody_can_read_is_told(redis: Redis, scripts: Scripts) -> None:
    redis.hset(DRAINS, "w1", "soon")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 2"):
        redis.register_script(scripts["meta/report"].text)(
            keys=[STATES, DRAINS, WORKERS], args=["w1", "{}"]
        )

    assert not redis.exists(STATES)
