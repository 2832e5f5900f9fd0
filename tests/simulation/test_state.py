"""What stands in Redis' place admits and refuses as the model of the scripts does."""

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.windows import Limits
from cluster_gw.simulation.journey import EPOCH_MS
from cluster_gw.simulation.state import FleetState, Taken
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import Settlement, TargetLimits
from cluster_gw.store.plan import Plans
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId
from tests.lua.admission_model import AdmissionModel

PLANS: Final = Plans(Keys("gw1"), load_scripts())
BOUNDS: Final = st.none() | st.integers(1, 6)
LIMITS: Final = st.builds(
    Limits,
    rpm=BOUNDS,
    rpd=BOUNDS,
    tpm=st.none() | st.integers(10, 60),
    tpd=st.none() | st.integers(10, 60),
    concurrency=BOUNDS,
)
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 900, 30_000, 61_000, 3_600_000, 90_000_000)),
        st.integers(1, 30),
        st.none() | st.tuples(st.integers(0, 1), st.integers(0, 40)),
    ),
    min_size=1,
    max_size=25,
)


def target(model: Limits, key: Limits) -> TargetLimits:
    return TargetLimits(
        provider="p",
        account="a",
        key=KeyId("k"),
        model="m",
        day_reset="rolling",
        model_limits=model,
        key_limits=key,
    )


@settings(max_examples=150, deadline=None)
@given(model_limits=LIMITS, key_limits=LIMITS, steps=STEPS)
def test_leases_are_granted_and_refused_as_the_model_says(
    model_limits: Limits,
    key_limits: Limits,
    steps: list[tuple[int, int, tuple[int, int] | None]],
) -> None:
    plan = PLANS.of(target(model_limits, key_limits))
    bounds = dict(zip(plan.windows, (model_limits, key_limits), strict=False))
    state, model, now_ms = FleetState(BreakerPolicy()), AdmissionModel(), EPOCH_MS
    for number, (passed_ms, tokens, end) in enumerate(steps):
        now_ms += passed_ms
        lease = str(number)

        got = state.reserve(plan, "rolling", lease, tokens, now_ms, now_ms + 10**9)

        code, _, wait_ms = model.reserve(
            lease, bounds, estimate=tokens, prompt=0, ttl_ms=10**9, now_ms=now_ms, worker="w"
        )
        if isinstance(got, Taken):
            assert code == "ok"
            if end is not None:
                counts, actual = end
                told = Settlement(counts_request=bool(counts), tokens=actual, outcome="x")
                state.settle(got, told, now_ms)
                model.settle(
                    lease, list(bounds), actual=actual, counts_request=counts, now_ms=now_ms
                )
        else:
            assert (got.gate, got.retry_after_ms) == (code, wait_ms)
