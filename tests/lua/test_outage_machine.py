"""The breaker of a provider inside its scripts against the pure rule: random histories."""

from typing import Final

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.outage import Entry, Outage, enter, fail, recent, release, succeed
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS, texts
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.outage_calls import OUTAGE, REST_MS, OutageScripts

STEPS_MS: Final = st.one_of(
    st.integers(0, 600),
    st.sampled_from((1, 9_999, 29_999, 30_000, 59_999, 60_000)),
    st.integers(0, 90_000),
    st.sampled_from((-1, -3_000, -3_700_000, 3_700_000)),
)
TARGETS: Final = ("k1/a", "k2/a", "k1/b", "k2/b")
MARK_MS: Final = 600_000


class OutageMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = OutageScripts(self.redis, self.loaded)
        self.latest_ms = NOW_MS
        self.outage = Outage()
        self.worker = ""
        self.asked: list[str] = []
        self.forget_at_ms: dict[str, int] = {}

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms
        self.latest_ms = max(self.latest_ms, self.now_ms)

    @rule(
        ago=st.integers(-5, 2), ttl_ms=st.sampled_from((400, 60_000)), worker=st.sampled_from("ab")
    )
    def enter(self, ago: int, ttl_ms: int, worker: str) -> None:
        lease = self.some(ago)
        before = self.outage
        until_ms = self.now_ms + ttl_ms
        self.outage, entry = enter(before, lease, until_ms=until_ms, now_ms=self.now_ms)
        if self.outage is not before:
            self.worker = worker
        status, code, value, now_ms = self.scripts.enter(
            lease, ttl_ms=ttl_ms, worker=worker, now_ms=self.now_ms
        )
        assert now_ms == self.now_ms
        if entry in (Entry.PASS, Entry.TRIAL):
            assert (status, code, value) == (1, "ok", int(entry is Entry.TRIAL))
        else:
            assert (status, code) == (0, entry.value)
            assert value > 0

    @rule(
        ago=st.integers(-5, 2),
        sign=st.sampled_from(("failure", "failure", "failure", "success", "neutral")),
        called=st.sampled_from(TARGETS),
        began_ms_ago=st.sampled_from((1, 0, 500, 40_000)),
        succeeded_ago_ms=st.sampled_from((-1, -1, -1, 0, 10, 20_000)),
    )
    def end(
        self, ago: int, sign: str, called: str, began_ms_ago: int, succeeded_ago_ms: int
    ) -> None:
        """Report the end of a lease: often that of the trial, now and then one twice."""
        lease = self.outage.trial if ago == -1 and self.outage.trial else self.some(ago)
        if lease in self.forget_at_ms and self.forget_at_ms[lease] <= self.latest_ms:
            return  # nobody repeats a report after ten minutes, also if the clock steps back then
        is_again = lease in self.forget_at_ms
        reserved_at_ms = self.now_ms - began_ms_ago
        before = self.outage.state
        if not is_again:
            self.forget_at_ms[lease] = self.now_ms + MARK_MS
            self.apply(lease, sign, called, reserved_at_ms, succeeded_ago_ms)

        reply = self.scripts.report(
            lease,
            sign,
            called,
            reserved_at_ms=reserved_at_ms,
            ago_ms=succeeded_ago_ms,
            now_ms=self.now_ms,
        )

        opened = self.outage.state is BreakerState.OPEN and before is not BreakerState.OPEN
        assert reply == [2 if is_again else 1, "ok", int(opened), self.now_ms, *self.standing()]

    @rule(ago_ms=st.integers(0, 40_000))
    def contradict(self, ago_ms: int) -> None:
        """A worker tells of a success without a lease."""
        at_ms = self.now_ms - ago_ms
        self.outage = succeed(self.outage, at_ms=at_ms, now_ms=self.now_ms)
        self.scripts.report("-", "neutral", "-", ago_ms=ago_ms, now_ms=self.now_ms)

    @rule(worker=st.sampled_from("ab"))
    def free(self, worker: str) -> None:
        """A worker is dead."""
        is_held = self.outage.trial is not None and self.worker == worker
        assert self.scripts.free("nobody", worker, now_ms=self.now_ms) == [1, "ok", int(is_held)]
        if is_held:
            self.outage = msgspec.structs.replace(self.outage, trial=None, trial_until_ms=0)

    def apply(
        self, lease: str, sign: str, target: str, reserved_at_ms: int, succeeded_ago_ms: int
    ) -> None:
        is_closed = self.outage.state is BreakerState.CLOSED
        if succeeded_ago_ms >= 0 and (sign != "failure" or is_closed):
            at_ms = self.now_ms - succeeded_ago_ms
            self.outage = succeed(self.outage, at_ms=at_ms, now_ms=self.now_ms)
        if sign == "failure":
            self.outage = fail(
                self.outage,
                target,
                lease,
                reserved_at_ms=reserved_at_ms,
                rest_ms=REST_MS,
                now_ms=self.now_ms,
            )
        elif sign == "success":
            self.outage = succeed(self.outage, at_ms=self.now_ms, now_ms=self.now_ms)
        else:
            self.outage = release(self.outage, lease)

    def some(self, ago: int) -> str:
        """A lease that was used before, or a new one."""
        if ago < 0 or not self.asked:
            self.asked.append(f"lease-{len(self.asked)}")
            return self.asked[-1]
        return self.asked[max(0, len(self.asked) - 1 - ago)]

    def standing(self) -> tuple[str, int, int]:
        outage = self.outage
        is_open = outage.state is BreakerState.OPEN and outage.changed_at_ms <= self.now_ms
        wait_ms = max(0, outage.until_ms - self.now_ms) if is_open else 0
        return outage.state.value, wait_ms, len(recent(outage, self.now_ms))

    @invariant()
    def record_equals_the_model(self) -> None:
        outage = self.outage
        numbers = {
            "succeeded_at": outage.succeeded_at_ms,
            "changed_at": outage.changed_at_ms,
            "until": outage.until_ms if outage.state is not BreakerState.CLOSED else 0,
            "trial_until": outage.trial_until_ms,
        }
        words = {
            "state": "" if outage.state is BreakerState.CLOSED else outage.state.value,
            "failed": " ".join(f"{one.target} {one.at_ms}" for one in outage.failed),
            "trial": outage.trial or "",
            "trial_worker": self.worker if outage.trial else "",
        }
        expected = {name: str(number) for name, number in numbers.items() if number}
        expected |= {name: word for name, word in words.items() if word}
        assert texts(self.redis, OUTAGE) == expected
        assert self.scripts.outage(self.now_ms) == [1, "ok", self.now_ms, *self.standing()]
        assert not expected or 50_000 < self.redis.pttl(OUTAGE) <= 86_400_000


def test_breaker_of_a_provider_follows_its_rule_after_every_step(redis_7: RedisServer) -> None:
    run_machine(OutageMachine, redis_7, histories=50, steps=50)
