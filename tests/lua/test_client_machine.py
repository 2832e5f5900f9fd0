"""The scripts of clients against a plain model: random histories, crashes, clock steps."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from cluster_gw.core.limits.allowance import Allowance
from tests.fakes.redis_server import RedisServer
from tests.lua.admission_model import MARK_MS
from tests.lua.calls import NOW_MS, scores
from tests.lua.client_calls import COUNTERS, EXPIRIES, ClientScripts
from tests.lua.client_model import ClientModel
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.test_admission_machine import read_ring, shown
from tests.lua.window_fields import Held

WORKERS: Final = ("w1", "w2")
DAY_MS: Final = 86_400_000
HOLDS: Final = st.integers(0, 11).map(lambda number: f"hold-{number}")
COUNTS: Final = st.none() | st.integers(0, 6)
ALLOWANCES: Final = st.builds(
    Allowance,
    rpm=COUNTS,
    tpm=st.none() | st.integers(0, 800),
    concurrency=COUNTS,
    monthly_tokens=st.none() | st.integers(0, 2_000),
    monthly_micro_usd=st.none() | st.integers(0, 1_000),
)
STEPS_MS: Final = st.one_of(
    st.integers(0, 3_000),
    st.integers(0, 90_000),
    st.integers(0, 40 * DAY_MS),
    st.integers(-3_000, 0),
    st.integers(-90_000, 0),
    st.integers(-3 * DAY_MS, 0),
)


class ClientMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = ClientScripts(self.redis, self.loaded)
        self.model = ClientModel()
        self.latest_ms = NOW_MS
        self.told: dict[str, int] = {}

    @initialize(allowance=ALLOWANCES)
    def choose_limits(self, allowance: Allowance) -> None:
        self.allowance = allowance

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms
        self.latest_ms = max(self.latest_ms, self.now_ms)

    @rule(
        hold=HOLDS,
        estimate=st.integers(0, 300),
        prompt=st.integers(0, 400),
        cost=st.integers(0, 200),
        kept=st.integers(0, 300),
        ttl_ms=st.integers(1, 200_000),
        worker=st.sampled_from(WORKERS),
    )
    def hold(
        self, hold: str, estimate: int, prompt: int, cost: int, kept: int, ttl_ms: int, worker: str
    ) -> None:
        if hold in self.model.holds and hold not in self.model.forget_at_ms:
            return  # nobody uses an id again ten minutes after it expired
        asked = {"estimate": estimate, "prompt": prompt, "cost": cost, "kept": kept}
        status, code, wait_ms, *left, second = self.scripts.hold(
            hold, self.allowance, ttl_ms=ttl_ms, worker=worker, now_ms=self.now_ms, **asked
        )
        expected = self.model.hold(
            hold, self.allowance, ttl_ms=ttl_ms, worker=worker, now_ms=self.now_ms, **asked
        )

        told = (status, code, wait_ms, tuple(left))
        assert told == (expected.status, expected.code, expected.wait_ms, expected.left)
        if status == 1:
            self.told[hold] = second

    @rule(
        hold=HOLDS,
        tokens=st.integers(0, 500),
        cost=st.integers(0, 300),
        counts_request=st.integers(0, 1),
        age_s=st.none() | st.integers(0, 70),
    )
    def settle(
        self, hold: str, tokens: int, cost: int, counts_request: int, age_s: int | None
    ) -> None:
        used = {"tokens": tokens, "cost": cost, "counts_request": counts_request}
        second = self.told.get(hold, 0)
        reply = self.scripts.settle(hold, now_ms=self.now_ms, second=second, age_s=age_s, **used)
        code = self.model.settle(hold, now_ms=self.now_ms, age_s=age_s, **used)

        assert reply == ([2, "settled"] if code == "again" else [1, code])

    @rule(workers=st.sets(st.sampled_from(WORKERS), min_size=1))
    def reap(self, workers: set[str]) -> None:
        """The workers may be dead or only slow: what they held may still be settled."""
        reply = self.scripts.reap(*sorted(workers), now_ms=self.now_ms)

        assert reply == [1, "ok", self.model.reap(workers, now_ms=self.now_ms)]

    @invariant()
    def every_counter_equals_the_model(self) -> None:
        if not self.redis.exists(COUNTERS):
            assert not self.model.minute.buckets
            assert self.model.month is None
            return
        month = self.model.month
        assert month is not None
        assert self.scripts.month() == (month.id, month.ends_ms, month.tokens, month.cost)
        fields = self.scripts.minute()
        assert read_ring(fields, "") == shown(self.model.minute)
        assert min(fields.values()) >= 0
        assert fields["i"] == self.model.in_flight()
        assert self.scripts.holds() == {
            name: Held(
                *(one.state, one.expiry_ms, one.worker, one.second, one.month),
                *(one.estimate, one.prompt),
            )
            for name, one in self.model.holds.items()
        }
        for one in self.model.holds.values():  # until `quiet` nothing happens by itself
            ends_ms = one.expiry_ms + (MARK_MS if one.state == "X" else 0)
            assert fields["quiet"] <= ends_ms

    @invariant()
    def nothing_is_forgotten_before_its_time(self) -> None:
        known = scores(self.redis, EXPIRIES)
        assert self.model.forget(set(known), self.latest_ms) == set()
        assert known == self.model.forget_at_ms

    @invariant()
    def every_key_has_a_ttl(self) -> None:
        for key in self.redis.scan_iter():
            assert self.redis.pttl(key) > 0, key


def test_scripts_and_model_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(ClientMachine, redis_7, histories=30, steps=40)
