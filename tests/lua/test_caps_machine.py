"""Caps beside windows against a plain model: random histories, crashes, clock steps, months."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from tests.fakes.redis_server import RedisServer
from tests.lua.admission_model import MARK_MS, AdmissionModel
from tests.lua.calls import CAPPED, KEYS, MODEL, OTHER, SLOT, WHOLE, Admission, texts
from tests.lua.caps_model import DAY_MS, CapsModel, Taken
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.test_admission_machine import read_ring, shown

KNOWN: Final = KEYS.lease_expiries(SLOT)
WEIGHTS: Final = {MODEL: 1000, OTHER: 2500}
ROUTES: Final = ((MODEL,), (MODEL, WHOLE), (OTHER, WHOLE))
WINDOWS: Final = (MODEL, OTHER, WHOLE)
COUNTS: Final = st.none() | st.integers(1, 12)
LIMITS: Final = st.just(Limits()) | st.builds(
    Limits, rpm=COUNTS, rpd=COUNTS, tpd=st.none() | st.integers(0, 2_000)
)
CAPS: Final = st.builds(
    Caps,
    rpd=COUNTS,
    tpd=st.none() | st.integers(1, 5_000),
    monthly_tokens=st.none() | st.integers(1, 5_000),
)
AGES: Final = st.integers(0, 6)  # how many admissions ago; what is older than all is a ghost
STEPS_MS: Final = st.one_of(
    st.integers(0, 90_000),
    st.integers(0, 200_000),
    st.integers(0, 900_000),
    st.integers(0, 30 * 3_600_000),
    st.integers(0, 40 * DAY_MS),
    st.integers(-90_000, 0),
    st.integers(-3 * DAY_MS, 0),
    st.integers(-70 * DAY_MS, 0),
)


class CapsMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = Admission(self.redis, self.loaded)
        self.windows, self.capped = AdmissionModel(), CapsModel()
        self.asked = 0
        self.routes: dict[str, tuple[str, ...]] = {}

    @initialize(limits=st.fixed_dictionaries(dict.fromkeys(WINDOWS, LIMITS)), caps=CAPS)
    def choose_limits(self, limits: dict[str, Limits], caps: Caps) -> None:
        self.limits, self.caps = limits, caps

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(
        age=st.just(-1) | st.just(-1) | AGES,
        route=st.sampled_from(ROUTES),
        estimate=st.integers(0, 300),
        prompt=st.integers(0, 400),
        ttl_ms=st.integers(1, 200_000),
    )
    def reserve(
        self, age: int, route: tuple[str, ...], estimate: int, prompt: int, ttl_ms: int
    ) -> None:
        """Ask under a new id, or repeat an old one."""
        self.asked += age < 0
        lease = self.name(max(age, 0))
        held = lease in self.capped.leases or self.is_in_a_window(lease)
        if held and lease not in self.windows.forget_at_ms:
            return  # nobody uses an id again ten minutes after it expired
        route = self.routes[lease] if held else route
        self.routes[lease] = route
        weight, bounds = WEIGHTS[route[0]], {window: self.limits[window] for window in route}
        asked: dict[str, Any] = {"estimate": estimate, "prompt": prompt, "ttl_ms": ttl_ms}
        reply = self.scripts.reserve(
            lease, *bounds.items(), now_ms=self.now_ms, caps=(self.caps, weight), **asked
        )
        closed = []
        if lease not in self.windows.forget_at_ms:
            closed = self.capped.closed(
                self.caps, weight=weight, estimate=estimate, now_ms=self.now_ms
            )
        expected = self.windows.reserve(
            lease,
            bounds,
            now_ms=self.now_ms,
            worker="w1",
            capped=[(code, len(route) + 2, wait_ms) for code, wait_ms in closed],
            **asked,
        )
        wait = (reply[2], reply[3]) if reply[0] == 0 else (0, 0)
        assert (reply[1], *wait) == expected
        if reply[0] == 1:
            prompt = min(prompt, estimate)
            taken = Taken("w1", self.now_ms + ttl_ms, 0, 0, estimate, prompt, weight)
            self.capped.take(lease, taken, self.now_ms)

    @rule(age=AGES, actual=st.integers(0, 500), counts_request=st.integers(0, 1))
    def settle(self, age: int, actual: int, counts_request: int) -> None:
        lease = self.name(age)
        route = self.routes.setdefault(lease, ROUTES[0])
        weight = WEIGHTS[route[0]]
        fact: dict[str, Any] = {
            "actual": actual,
            "counts_request": counts_request,
            "now_ms": self.now_ms,
        }
        reply = self.scripts.settle(lease, *route, weight=weight, **fact)
        code = self.windows.settle(lease, list(route), **fact)
        assert reply == ([2, "settled"] if code == "again" else [1, code])
        if code != "again":
            self.capped.settle(lease, late_weight=weight if code == "late" else None, **fact)

    @invariant()
    def counters_of_the_caps_equal_the_model(self) -> None:
        fields = texts(self.redis, CAPPED)
        day, month = self.capped.day, self.capped.month
        if not fields or day is None or month is None:
            assert not fields
            assert day is None
            return
        *now, quiet = map(int, fields.pop("now").split())
        assert now == [day.id, day.ends_ms, *day.used, month.id, month.ends_ms, *month.used]
        assert {name[1:]: text for name, text in fields.items()} == {
            name: f"{one.state} {one.expiry_ms} {one.worker} {one.day} {one.month} {one.estimate} "
            f"{one.prompt} {one.weight}"
            for name, one in self.capped.leases.items()
        }
        for one in self.capped.leases.values():
            assert quiet <= one.expiry_ms + (MARK_MS if one.state == "X" else 0)
        assert self.redis.pttl(CAPPED) > 0

    @invariant()
    def counters_of_the_windows_equal_the_model(self) -> None:
        for window in WINDOWS:
            fields, modelled = self.scripts.counters(window), self.windows.windows.get(window)
            if fields and modelled is not None:
                assert read_ring(fields, "") == shown(modelled.minute)
                assert read_ring(fields, "h") == shown(modelled.day)
                assert set(self.scripts.leases(window)) == set(modelled.leases)
            else:
                assert not fields

    @invariant()
    def what_the_script_forgets_the_model_forgets(self) -> None:
        known = {str(name) for name in self.redis.zrange(KNOWN, 0, -1)}
        self.windows.forget_at_ms = {
            name: at for name, at in self.windows.forget_at_ms.items() if name in known
        }

    def name(self, age: int) -> str:
        return f"lease-{self.asked - age}"

    def is_in_a_window(self, lease: str) -> bool:
        return any(lease in window.leases for window in self.windows.windows.values())


def test_caps_and_model_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(CapsMachine, redis_7, histories=50, steps=40)
