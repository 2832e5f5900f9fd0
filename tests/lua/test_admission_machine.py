"""The admission scripts against a plain model: random histories, crashes, clock steps."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from cluster_gw.core.limits.observe import Hint
from cluster_gw.core.limits.ring import Ring
from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS, Limits
from cluster_gw.store.batches import UNDONE
from tests.fakes.redis_server import RedisServer
from tests.lua.admission_model import MARK_MS, AdmissionModel
from tests.lua.calls import (
    ACCOUNT,
    BESIDE,
    KEYS,
    MODEL,
    NOW_MS,
    OTHER,
    SLOT,
    WHOLE,
    Admission,
    scores,
)
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.window_fields import Held

ROUTES: Final = (
    (MODEL, WHOLE),
    (OTHER, WHOLE),
    (MODEL,),
    (MODEL, WHOLE, ACCOUNT),
    (BESIDE, ACCOUNT),
)
WINDOWS: Final = (MODEL, OTHER, WHOLE, BESIDE, ACCOUNT)
BOUNDS: Final = st.one_of(st.none(), st.integers(0, 6))
TOKENS: Final = st.one_of(st.none(), st.integers(0, 800))
LIMITS: Final = st.builds(
    Limits,
    rpm=BOUNDS,
    rpd=st.none() | st.integers(0, 30),
    tpm=TOKENS,
    tpd=TOKENS,
    concurrency=BOUNDS,
)
WORKERS: Final = ("w1", "w2", "w3")
LEASES: Final = st.integers(0, 11).map(lambda number: f"lease-{number}")
STEPS_MS: Final = st.one_of(
    st.integers(0, 3_000),
    st.integers(0, 90_000),
    st.integers(0, 40 * 3_600_000),
    st.integers(-3_000, 0),
    st.integers(-90_000, 0),
    st.integers(-30 * 3_600_000, 0),
)


class AdmissionMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = Admission(self.redis, self.loaded)
        self.model = AdmissionModel()
        self.latest_ms = NOW_MS
        self.told: dict[str, int] = {}
        self.routes: dict[str, tuple[str, ...]] = {}

    @initialize(limits=st.fixed_dictionaries(dict.fromkeys(WINDOWS, LIMITS)))
    def choose_limits(self, limits: dict[str, Limits]) -> None:
        self.limits = limits

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms
        self.latest_ms = max(self.latest_ms, self.now_ms)

    @rule(
        lease=LEASES,
        route=st.sampled_from(ROUTES),
        estimate=st.integers(0, 300),
        prompt=st.integers(0, 400),
        ttl_ms=st.integers(1, 200_000),
        worker=st.sampled_from(WORKERS),
    )
    def reserve(
        self,
        lease: str,
        route: tuple[str, ...],
        estimate: int,
        prompt: int,
        ttl_ms: int,
        worker: str,
    ) -> None:
        held = any(lease in window.leases for window in self.model.windows.values())
        if held and lease not in self.model.forget_at_ms:
            return  # nobody uses an id again ten minutes after it expired
        if held:
            route = self.routes[lease]  # a repeat repeats everything
        self.routes[lease] = route
        bounds = [(window, self.limits[window]) for window in route]
        reply = self.scripts.reserve(
            lease,
            *bounds,
            now_ms=self.now_ms,
            estimate=estimate,
            prompt=prompt,
            ttl_ms=ttl_ms,
            worker=worker,
        )
        expected = self.model.reserve(
            lease,
            dict(bounds),
            estimate=estimate,
            prompt=prompt,
            ttl_ms=ttl_ms,
            now_ms=self.now_ms,
            worker=worker,
        )
        wait = (reply[2], reply[3]) if reply[0] == 0 else (0, 0)
        assert (reply[1], *wait) == expected
        if reply[0] == 1:
            self.told[lease] = reply[4]

    @rule(
        lease=LEASES,
        actual=st.integers(0, 500),
        counts_request=st.integers(0, 1),
        age_s=st.none() | st.integers(0, 70),
    )
    def settle(self, lease: str, actual: int, counts_request: int, age_s: int | None) -> None:
        route = self.routes.setdefault(lease, ROUTES[0])
        reply = self.scripts.settle(
            lease,
            *route,
            now_ms=self.now_ms,
            actual=actual,
            counts_request=counts_request,
            second=self.told.get(lease, 0),
            age_s=age_s,
        )
        code = self.model.settle(
            lease,
            list(route),
            actual=actual,
            counts_request=counts_request,
            now_ms=self.now_ms,
            age_s=age_s,
        )
        assert reply == ([2, "settled"] if code == "again" else [1, code])

    @rule(
        leases=st.lists(LEASES, min_size=2, max_size=4),
        route=st.sampled_from(ROUTES),
        sizes=st.lists(
            st.tuples(st.integers(0, 300), st.integers(0, 400), st.integers(1, 200_000)),
            min_size=4,
            max_size=4,
        ),
        worker=st.sampled_from(WORKERS),
    )
    def reserve_many(
        self,
        leases: list[str],
        route: tuple[str, ...],
        sizes: list[tuple[int, int, int]],
        worker: str,
    ) -> None:
        """Each is admitted as it would be alone, or nothing is done about it."""
        held = {name for window in self.model.windows.values() for name in window.leases}
        wanted = [
            (lease, *size)
            for lease, size in zip(leases, sizes, strict=False)
            if lease not in held or lease in self.model.forget_at_ms
        ]
        if not wanted:
            return
        bounds = [(window, self.limits[window]) for window in route]
        reply = self.scripts.reserve_many(wanted, *bounds, now_ms=self.now_ms, worker=worker)
        if reply == [0]:
            return
        assert reply[:2] == [1, self.now_ms // 1000]
        for (lease, estimate, prompt, ttl_ms), left in zip(wanted, reply[2::2], strict=True):
            if left == UNDONE:
                continue
            assert lease not in self.model.forget_at_ms
            self.routes[lease], self.told[lease] = route, reply[1]
            assert self.model.reserve(
                lease,
                dict(bounds),
                estimate=estimate,
                prompt=prompt,
                ttl_ms=ttl_ms,
                now_ms=self.now_ms,
                worker=worker,
            ) == ("ok", 0, 0)

    @rule(
        leases=st.lists(LEASES, min_size=2, max_size=5),
        facts=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 1)), min_size=5, max_size=5),
    )
    def settle_many(self, leases: list[str], facts: list[tuple[int, int]]) -> None:
        """Those of one route; each is settled as it would be alone, or nothing is done about it."""
        route = self.routes.setdefault(leases[0], ROUTES[0])
        ended = [
            (lease, *fact, self.told.get(lease, 0))
            for lease, fact in zip(leases, facts, strict=False)
            if self.routes.setdefault(lease, route) == route
        ]
        reply = self.scripts.settle_many(ended, *route, now_ms=self.now_ms)
        if reply == [0]:
            return
        assert reply[0] == 1
        for (lease, actual, counts_request, _), is_done in zip(ended, reply[1:], strict=True):
            if is_done:
                assert (
                    self.model.settle(
                        lease,
                        list(route),
                        actual=actual,
                        counts_request=counts_request,
                        now_ms=self.now_ms,
                    )
                    == "settled"
                )

    @rule(
        window=st.sampled_from(WINDOWS),
        remaining=st.tuples(*[st.none() | st.integers(0, 900)] * 4),
        hold_ms=st.tuples(st.integers(1, 60_000), st.integers(1, 86_400_000)),
        age_ms=st.sampled_from((0, 0, 700, 5_000, 60_000)),
    )
    def observe(
        self,
        window: str,
        remaining: tuple[int | None, ...],
        hold_ms: tuple[int, int],
        age_ms: int,
    ) -> None:
        """A provider says what it has left."""
        hints = [
            None
            if left is None
            else Hint(remaining=left, limit=None, age_ms=age_ms, hold_ms=hold_ms[at // 2])
            for at, left in enumerate(remaining)
        ]
        reply = self.scripts.observe(
            window, self.limits[window], hints, age_ms=age_ms, now_ms=self.now_ms
        )
        told = self.model.observe(
            window, self.limits[window], hints, age_ms=age_ms, now_ms=self.now_ms
        )
        assert reply == [1, "ok", *told]

    @rule(
        window=st.sampled_from(WINDOWS),
        workers=st.sets(st.sampled_from(WORKERS), min_size=1),
        late_ms=st.integers(-2, 2),
    )
    def reap(self, window: str, workers: set[str], late_ms: int) -> None:
        """The workers may be dead or only slow: what they held may still be settled."""
        reply = self.scripts.reap(
            *sorted(workers),
            window=window,
            now_ms=self.now_ms,
            valid_until_ms=self.now_ms - late_ms,
        )
        if late_ms > 0:
            assert reply == [0, "stale", 0]
            return
        freed = self.model.reap(window, workers, now_ms=self.now_ms)
        assert reply == [1, "ok", freed]

    @invariant()
    def every_counter_equals_the_model(self) -> None:
        for window in WINDOWS:
            fields = self.scripts.counters(window)
            modelled = self.model.windows.get(window)
            if not fields or modelled is None:
                touched = modelled is not None and modelled.minute.buckets
                assert not fields
                assert not touched
                continue
            assert read_ring(fields, "") == shown(modelled.minute)
            assert read_ring(fields, "h") == shown(modelled.day)
            assert min(fields.values()) >= 0
            assert fields["i"] == modelled.in_flight()
            assert self.scripts.leases(window) == {
                name: Held(
                    *(one.state, one.expiry_ms, one.worker, one.second, one.hour),
                    *(one.estimate, one.prompt),
                )
                for name, one in modelled.leases.items()
            }
            for one in modelled.leases.values():  # until `quiet` nothing happens by itself
                ends_ms = one.expiry_ms + (MARK_MS if one.state == "X" else 0)
                assert fields["quiet"] <= ends_ms

    @invariant()
    def every_key_but_none_has_a_ttl(self) -> None:
        for key in self.redis.scan_iter():
            assert self.redis.pttl(key) > 0, key

    @invariant()
    def nothing_is_forgotten_before_its_time(self) -> None:
        known = scores(self.redis, KEYS.lease_expiries(SLOT))
        assert self.model.forget(set(known), self.latest_ms) == set()
        assert known == self.model.forget_at_ms


def read_ring(fields: dict[str, int], prefix: str) -> tuple[int, list[int], dict[int, list[int]]]:
    size = DAY_BUCKETS if prefix else MINUTE_BUCKETS
    slots = {
        slot: [fields.get(f"{prefix}r{slot}", 0), fields.get(f"{prefix}t{slot}", 0)]
        for slot in range(size)
    }
    used = {slot: counts for slot, counts in slots.items() if counts != [0, 0]}
    return fields[f"{prefix}b"], [fields[f"{prefix}rs"], fields[f"{prefix}ts"]], used


def shown(ring: Ring) -> tuple[int, list[int], dict[int, list[int]]]:
    assert ring.newest is not None
    used = {b % ring.size: counts for b, counts in ring.buckets.items() if counts != [0, 0]}
    return ring.newest, ring.sums(), used


def test_scripts_and_model_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(AdmissionMachine, redis_7, histories=30, steps=40)
