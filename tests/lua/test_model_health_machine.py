"""Penalty and bench of a model inside the script against the pure rules: random histories."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from cluster_gw.core.limits.bench import Bench, BenchPolicy, book, succeed
from cluster_gw.core.limits.penalty import NO_PENALTY, PenaltyPolicy, change
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import texts
from tests.lua.health_calls import RECORD, ModelScripts
from tests.lua.machine import ScriptMachine, run_machine

CODES: Final = ("upstream_error", "timeout", "model_not_found")
STEPS_MS: Final = st.one_of(
    st.integers(0, 600),
    st.sampled_from((1, 119_999, 120_000, 599_999, 600_000, 899_999, 900_000)),
    st.integers(0, 2_000_000),
    st.sampled_from((-1, -3_000, -3_700_000, -40 * 3_600_000)),
)
POINTS: Final = st.sampled_from((0.0, 1.0, 3.0, 0.25, -1.0))


class ModelHealthMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = ModelScripts(self.redis, self.loaded)
        self.bench, self.penalty = Bench(), NO_PENALTY
        self.points_by = self.bench_by = ""
        self.why: dict[str, str] = {}
        self.booked: list[str] = []
        self.forget_at_ms: dict[str, int] = {}

    @initialize(
        failures=st.integers(1, 4),
        decay_s=st.sampled_from((120.0, 0.7)),
        most=st.sampled_from((10.0, 2.5)),
    )
    def choose_policies(self, failures: int, decay_s: float, most: float) -> None:
        self.bench_policy = BenchPolicy(failures=failures)
        self.penalty_policy = PenaltyPolicy(decay_s=decay_s, max=most)

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(
        ago=st.integers(-6, 2),
        began_ms_ago=st.sampled_from((0, 1, 500, 700_000, -5)),
        code=st.none() | st.sampled_from(CODES),
        key=st.sampled_from(("k1", "k2")),
        points=POINTS,
        counts=st.booleans(),
    )
    def end(
        self,
        ago: int,
        began_ms_ago: int,
        code: str | None,
        key: str,
        points: float,
        counts: bool,
    ) -> None:
        """Book the end of a lease, now and then one that was booked before."""
        is_again = ago >= 0 and bool(self.booked)
        lease = self.booked[max(0, len(self.booked) - 1 - ago)] if is_again else self.fresh()
        if is_again and lease not in self.forget_at_ms:
            return  # nobody repeats a booking after ten minutes
        reserved_at_ms = self.now_ms - began_ms_ago

        reply = self.scripts.book(
            lease,
            failed=code,
            points=points,
            counts=counts,
            key=key,
            reserved_at_ms=reserved_at_ms,
            now_ms=self.now_ms,
            penalty=self.penalty_policy,
            bench=self.bench_policy,
        )

        crossed = False
        if not is_again:
            self.booked.append(lease)
            self.forget_at_ms[lease] = self.now_ms + 600_000
            self.why[lease] = f"{key}:{code}"
            if points:
                self.move_points(points, f"{key}:{code or '-'}")
            crossed = self.move_bench(lease, code, reserved_at_ms, counts=counts)
        self.forget_at_ms = {
            name: at for name, at in self.forget_at_ms.items() if is_again or at > self.now_ms
        }
        assert reply == [
            2 if is_again else 1,
            "ok",
            int(crossed),
            self.now_ms,
            f"{self.penalty.points:.17g}",
            self.penalty.since_ms,
            len(self.bench.failures),
            self.bench.until_ms,
        ]

    def fresh(self) -> str:
        return f"lease-{len(self.booked)}"

    def move_points(self, points: float, by: str) -> None:
        self.penalty = change(self.penalty, points, self.penalty_policy, self.now_ms)
        if not self.penalty.points:
            self.points_by = ""
        elif points > 0:
            self.points_by = by

    def move_bench(
        self, lease: str, code: str | None, reserved_at_ms: int, *, counts: bool
    ) -> bool:
        if code is None:
            self.bench = succeed(self.bench, reserved_at_ms=reserved_at_ms, now_ms=self.now_ms)
            return False
        if not counts:
            return False
        before = self.bench
        self.bench, crossed = book(
            before,
            lease,
            self.why[lease].partition(":")[0],
            self.bench_policy,
            reserved_at_ms=reserved_at_ms,
            now_ms=self.now_ms,
        )
        if crossed:
            recent = [f for f in before.failures if abs(self.now_ms - f.at_ms) < 900_000]
            names = [*(self.why[failure.lease] for failure in recent), self.why[lease]]
            self.bench_by = " ".join(names[-self.bench_policy.failures :])
        return crossed

    @invariant()
    def record_equals_the_model(self) -> None:
        expected: dict[str, str] = {}
        if self.penalty.points:
            expected["points"] = f"{self.penalty.points:.17g}"
            expected["points_since"] = str(self.penalty.since_ms)
            expected["points_by"] = self.points_by
            expected["hits"] = str(self.penalty.hits)
        if self.bench.failures:
            expected["failures"] = " ".join(
                f"{one.lease} {one.at_ms} {self.why[one.lease].replace(':', ' ')}"
                for one in self.bench.failures
            )
        if self.bench.set_at_ms:
            expected["bench_until"] = str(self.bench.until_ms)
            expected["bench_set_at"] = str(self.bench.set_at_ms)
            expected["bench_by"] = self.bench_by
        assert texts(self.redis, RECORD) == expected
        assert not expected or self.redis.pttl(RECORD) > 600_000


def test_model_health_follows_its_rules_after_every_step(redis_7: RedisServer) -> None:
    run_machine(ModelHealthMachine, redis_7, histories=80, steps=50)
