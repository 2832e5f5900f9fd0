"""Rest and breaker inside the admission scripts against the pure rules: random histories."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Cause, Climb, Cooldown, Scope, Source
from cluster_gw.core.limits.windows import DAY_WIDTH_MS, Limits
from cluster_gw.store.lease import Outcome
from cluster_gw.store.plan import a_day
from tests.fakes.redis_server import RedisServer
from tests.lua.admission_model import AdmissionModel
from tests.lua.calls import (
    HEALTH,
    KEYS,
    MODEL,
    OTHER,
    OTHER_HEALTH,
    SLOT,
    WHOLE,
    Admission,
    outcome_words,
    scores,
    texts,
)
from tests.lua.health_model import POLICY, HealthModel
from tests.lua.machine import ScriptMachine, run_machine

ROUTES: Final = ((MODEL, WHOLE), (OTHER, WHOLE), (MODEL,))
RECORDS: Final = {MODEL: HEALTH, OTHER: OTHER_HEALTH}
LIMITS: Final = st.one_of(
    st.just(Limits()),
    st.builds(Limits, rpd=st.integers(1, 4)),
    st.builds(Limits, rpm=st.integers(3, 9), concurrency=st.none() | st.just(3)),
)
WORKERS: Final = ("w1", "w2")
AGO: Final = st.one_of(st.just(0), st.just(0), st.integers(0, 3))
STEPS_MS: Final = st.one_of(
    st.integers(0, 600),
    st.sampled_from((1, 499, 500, 5_000, 29_999, 30_000, 90_000)),
    st.integers(0, 200_000),
    st.sampled_from((3_700_000, 86_400_000, -1, -3_000, -3_700_000, -30 * 3_600_000)),
    st.integers(-40 * 3_600_000, 30 * 3_600_000),
)
RESTS: Final = st.builds(
    Cooldown,
    scope=st.sampled_from(Scope),
    source=st.sampled_from(Source),
    reason=st.sampled_from(Cause),
    wait_ms=st.sampled_from((1, 500, 5_000, 90_000, 86_400_000)),
    stated_ms=st.sampled_from((0, 0, 400, 100_000)),
    climb=st.sampled_from(Climb),
    step_cap_ms=st.sampled_from((600_000, 86_400_000)),
)
ANSWERED: Final = Outcome(evidence=Evidence.SUCCESS, breaker=POLICY)
FAILED: Final = st.builds(
    Outcome,
    evidence=st.sampled_from((Evidence.FAILURE, Evidence.NEUTRAL)),
    breaker=st.just(POLICY),
    cooldown=st.none() | RESTS,
)
SICK: Final = Outcome(evidence=Evidence.FAILURE, breaker=POLICY)
EXEMPT: Final = st.builds(
    Outcome,
    evidence=st.just(Evidence.FAILURE),
    breaker=st.just(POLICY),
    cooldown=st.none() | RESTS,
    is_exempt=st.just(True),
)
OUTCOMES: Final = st.one_of(st.just(ANSWERED), st.just(SICK), FAILED, EXEMPT, EXEMPT)


class HealthMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = Admission(self.redis, self.loaded)
        self.windows, self.health = AdmissionModel(), HealthModel()
        self.told: dict[str, tuple[int, int]] = {}
        self.seconds: dict[str, int] = {}
        self.routes: dict[str, tuple[str, ...]] = {}
        self.asked: list[str] = []

    @initialize(limits=st.fixed_dictionaries(dict.fromkeys((MODEL, OTHER, WHOLE), LIMITS)))
    def choose_limits(self, limits: dict[str, Limits]) -> None:
        self.limits = limits

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(
        ago=st.integers(-9, 2),
        route=st.sampled_from(ROUTES),
        ttl_ms=st.sampled_from((400, 20_000, 60_000, 200_000)),
        worker=st.sampled_from(WORKERS),
    )
    def reserve(self, ago: int, route: tuple[str, ...], ttl_ms: int, worker: str) -> None:
        """Ask under a new id, now and then under one of the last."""
        lease = self.recent(ago) if ago >= 0 and self.asked else f"lease-{len(self.asked)}"
        held = any(lease in window.leases for window in self.windows.windows.values())
        if held and lease not in self.windows.forget_at_ms:
            return  # nobody uses an id again ten minutes after it expired
        if held:
            route = self.routes[lease]
        self.routes[lease] = route
        self.asked.append(lease)
        names = RECORDS[route[0]]
        bounds = [(window, self.limits[window]) for window in route]
        reply = self.scripts.reserve(
            lease, *bounds, now_ms=self.now_ms, ttl_ms=ttl_ms, worker=worker
        )
        is_new = lease not in self.windows.forget_at_ms
        expected = self.windows.reserve(
            lease,
            dict(bounds),
            estimate=100,
            prompt=40,
            ttl_ms=ttl_ms,
            now_ms=self.now_ms,
            worker=worker,
            unwell=self.health.unwell(names, len(route), lease, self.now_ms),
        )
        wait = (reply[2], reply[3]) if reply[0] == 0 else (0, 0)
        assert (reply[1], *wait) == expected
        assert (reply[0] == 1) == (is_new and expected[0] == "ok")
        if reply[0] == 1:
            expiry_ms = self.now_ms + ttl_ms
            assert reply[5:] == self.health.admit(names, lease, expiry_ms, self.now_ms)
            generation, _, reserved_at_ms = reply[5:] or (0, 0, reply[4] * 1000)
            self.told[lease] = (generation, reserved_at_ms)
            self.seconds[lease] = reply[4]

    def recent(self, ago: int) -> str:
        return self.asked[max(0, len(self.asked) - 1 - ago)] if self.asked else "never-asked"

    @rule(ago=AGO, outcome=OUTCOMES, actual=st.integers(0, 300))
    def settle(self, ago: int, outcome: Outcome, actual: int) -> None:
        lease = self.recent(ago)
        route = self.routes.setdefault(lease, ROUTES[0])
        told = self.told.get(lease, (0, 0))
        held = [
            name
            for name in route
            if name in self.windows.windows and lease in self.windows.windows[name].leases
        ]
        reply = self.scripts.settle(
            lease,
            *route,
            now_ms=self.now_ms,
            actual=actual,
            second=self.seconds.get(lease, 0),
            outcome=outcome_words(told, outcome, [a_day(self.limits[name]) for name in route]),
        )
        code = self.windows.settle(
            lease, list(route), actual=actual, counts_request=1, now_ms=self.now_ms
        )
        is_booked = False
        if code != "again":
            is_booked = self.health.settle(
                RECORDS[route[0]],
                lease,
                told,
                outcome,
                now_ms=self.now_ms,
                day_spent=any(self.is_day_spent(name) for name in held),
            )
        told_back = [2, "settled"] if code == "again" else [1, code]
        assert reply == [*told_back, *([1] if is_booked else [])]

    @rule(name=st.sampled_from((MODEL, OTHER)), worker=st.sampled_from(WORKERS))
    def reap(self, name: str, worker: str) -> None:
        before = self.windows.windows.get(name)
        live = [one for one, lease in before.leases.items() if lease.state == "R"] if before else []
        freed = self.windows.reap(name, {worker}, now_ms=self.now_ms)
        assert self.scripts.reap(worker, window=name, now_ms=self.now_ms) == [1, "ok", freed]
        for lease in live:
            if before and before.leases[lease].state == "F":
                self.health.release(RECORDS[name], lease, self.now_ms)

    def is_day_spent(self, name: str) -> bool:
        day, limit = self.windows.windows[name].day, self.limits[name].rpd
        assert day.newest is not None
        is_present = self.now_ms < (day.newest + 1) * DAY_WIDTH_MS
        return limit is not None and is_present and day.sums()[0] >= limit

    @invariant()
    def what_the_scripts_forget_is_forgotten(self) -> None:
        known = scores(self.redis, KEYS.lease_expiries(SLOT))
        self.windows.forget(set(known), self.now_ms)

    @invariant()
    def every_record_equals_the_model(self) -> None:
        for name in {*HEALTH, *OTHER_HEALTH}:
            fields = texts(self.redis, name)
            if fields.get("breaker") != "open":
                fields.pop("until", None)
            assert fields == self.health.of(name).fields(), name
            assert not fields or self.redis.pttl(name) > 4_000_000


def test_health_follows_its_rules_after_every_step(redis_7: RedisServer) -> None:
    run_machine(HealthMachine, redis_7, histories=80, steps=50)
