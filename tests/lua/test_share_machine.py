"""Clients with a share of a key, beside one without, on the same windows.

The scripts know nothing of shares: they are windows more. So the windows are those of `Plans`, the
scripts are held against the model of admission, and what each client got against a list of its own.
"""

import copy
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from cluster_gw.core.limits.client_share import ClientShare, share_of
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.plan import SCOPE_CLIENT, SCOPE_NONE, Plans
from cluster_gw.units import ClientId, KeyId
from tests.fakes.redis_server import RedisServer
from tests.lua.admission_model import AdmissionModel
from tests.lua.calls import KEYS, MODEL, SLOT, WHOLE, Admission, scores
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.test_admission_machine import read_ring, shown

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
GREEDY, MODEST, FREE = "greedy", "modest", "free"
WINDOWS: Final = (MODEL, WHOLE, *(f"{w}:{c}" for w in (MODEL, WHOLE) for c in (GREEDY, MODEST)))
WORKERS: Final = ("w1", "w2")
LIMITS: Final = st.builds(
    Limits,
    rpm=st.none() | st.integers(3, 12),
    rpd=st.none() | st.integers(3, 40),
    tpm=st.none() | st.integers(300, 2000),
    tpd=st.none() | st.integers(300, 6000),
)
SIZES: Final = st.tuples(st.integers(0, 150), st.integers(0, 100))
RATIOS: Final = st.sampled_from((0.1, 0.25, 0.34, 0.5))  # two of them are never more than all


@dataclass
class Grant:
    """What a client was let in with; `tokens` is the least that still counts of it."""

    lease: str
    client: str
    at_ms: int
    tokens: int
    estimate: int
    requests: int = 1
    is_open: bool = True


class ShareMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = Admission(self.redis, self.loaded)
        self.model = AdmissionModel()
        self.plans = Plans(KEYS, self.loaded)
        self.ratios: dict[str, float] = {GREEDY: 0.5, MODEST: 0.5}
        self.grants: list[Grant] = []
        self.is_shared_out = True
        self.told: dict[str, int] = {}

    @initialize(model=LIMITS, key=LIMITS)
    def choose_limits(self, model: Limits, key: Limits) -> None:
        self.whole = {MODEL: model, WHOLE: key}

    @rule(step_ms=st.integers(0, 3_000) | st.integers(0, 90_000) | st.integers(0, 3 * 3_600_000))
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(greedy=RATIOS, modest=RATIOS)
    def reload(self, greedy: float, modest: float) -> None:
        """Shares of another size hold from now on; who had more before may be in the way."""
        self.is_shared_out &= greedy <= self.ratios[GREEDY] and modest <= self.ratios[MODEST]
        self.ratios = {GREEDY: greedy, MODEST: modest}

    @rule(
        client=st.sampled_from((GREEDY, GREEDY, MODEST, FREE)),
        size=SIZES,
        worker=st.sampled_from(WORKERS),
    )
    def reserve(self, client: str, size: tuple[int, int], worker: str) -> None:
        lease, (prompt, more) = f"lease-{len(self.grants)}-{self.now_ms}", size
        held = list(self.plans.windows_of(self.target(client)))
        bounds = {window: limits for _, window, limits in held}
        estimate = prompt + more
        reply = self.scripts.reserve(
            lease,
            *bounds.items(),
            now_ms=self.now_ms,
            estimate=estimate,
            prompt=prompt,
            ttl_ms=100_000,
            worker=worker,
        )
        expected = self.model.reserve(
            lease,
            bounds,
            estimate=estimate,
            prompt=prompt,
            ttl_ms=100_000,
            now_ms=self.now_ms,
            worker=worker,
        )
        assert (reply[1], *((reply[2], reply[3]) if not reply[0] else (0, 0))) == expected
        if reply[0]:
            self.told[lease] = reply[4]
            self.grants.append(Grant(lease, client, self.now_ms, prompt, estimate))
            self.is_shared_out &= client != FREE
            self.nobody_has_more_than_its_share(client)
        elif client != FREE and self.is_shared_out:
            scope = held[reply[2] - 1][0] if reply[2] else SCOPE_NONE
            fits = all(
                limit is None or limit >= estimate
                for limits in self.whole.values()
                for limit in (limits.tpm, limits.tpd)
            )
            # The whole may be in the way as well, and is then named: its place is before.
            own = {window: limits for kind, window, limits in held if kind == SCOPE_CLIENT}
            alone = copy.deepcopy(self.model).reserve(
                lease,
                own,
                estimate=estimate,
                prompt=prompt,
                ttl_ms=100_000,
                now_ms=self.now_ms,
                worker=worker,
            )
            assert scope == SCOPE_CLIENT or alone[1] or not fits, "its own share is in the way"

    @precondition(lambda self: self.grants)
    @rule(data=st.data(), used=st.integers(0, 100), counts_request=st.integers(0, 1))
    def settle(self, data: st.DataObject, used: int, counts_request: int) -> None:
        """Within what was reserved; also a second time, and after it expired."""
        grant = data.draw(st.sampled_from(self.grants[-20:]))
        actual = grant.estimate * used // 100 * counts_request
        windows = [window for _, window, _ in self.plans.windows_of(self.target(grant.client))]
        reply = self.scripts.settle(
            grant.lease,
            *windows,
            now_ms=self.now_ms,
            actual=actual,
            counts_request=counts_request,
            second=self.told[grant.lease],
        )
        code = self.model.settle(
            grant.lease,
            windows,
            actual=actual,
            counts_request=counts_request,
            now_ms=self.now_ms,
        )
        assert reply == ([2, "settled"] if code == "again" else [1, code])
        if code == "late":  # its id was forgotten: it counts anew, in the present
            self.is_shared_out = False
        if grant.is_open:
            grant.is_open, grant.requests, grant.tokens = False, counts_request, actual

    @rule(window=st.sampled_from(WINDOWS), worker=st.sampled_from(WORKERS))
    def reap(self, window: str, worker: str) -> None:
        freed = self.model.reap(window, {worker}, now_ms=self.now_ms)

        assert self.scripts.reap(worker, window=window, now_ms=self.now_ms) == [1, "ok", freed]

    @invariant()
    def every_counter_equals_the_model(self) -> None:
        for window in WINDOWS:
            fields, modelled = self.scripts.counters(window), self.model.windows.get(window)
            assert bool(fields) == (modelled is not None)
            if fields and modelled is not None:
                assert read_ring(fields, "") == shown(modelled.minute)
                assert read_ring(fields, "h") == shown(modelled.day)
                assert fields["i"] == modelled.in_flight()
                assert self.redis.pttl(window) > 0

    @invariant()
    def both_remember_the_same_leases(self) -> None:
        known = scores(self.redis, KEYS.lease_expiries(SLOT))
        assert self.model.forget(set(known), self.now_ms) == set()
        assert known == self.model.forget_at_ms

    def nobody_has_more_than_its_share(self, client: str) -> None:
        """By the list of what it got: whoever was just let in is within every part it may take."""
        ratio = self.ratios.get(client, 1.0)
        for limits in self.whole.values():
            part = share_of(limits, ratio)
            for span_ms, requests, tokens in (
                (MINUTE_MS, part.rpm, part.tpm),
                (DAY_MS, part.rpd, part.tpd),
            ):
                since_ms = self.now_ms - span_ms
                mine = [g for g in self.grants if g.client == client and g.at_ms > since_ms]
                assert requests is None or sum(g.requests for g in mine) <= requests
                assert tokens is None or sum(g.tokens for g in mine) <= tokens

    def target(self, client: str) -> TargetLimits:
        ratio = self.ratios.get(client)
        return TargetLimits(
            provider="p",
            account="acc",
            key=KeyId("k"),
            model="m",
            day_reset="rolling",
            model_limits=self.whole[MODEL],
            key_limits=self.whole[WHOLE],
            share=None if ratio is None else ClientShare(client=ClientId(client), ratio=ratio),
        )


def test_share_of_a_client_is_a_window_like_any_other(redis_7: RedisServer) -> None:
    run_machine(ShareMachine, redis_7, histories=30, steps=40)
