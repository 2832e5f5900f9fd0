"""What a failed attempt is booked as: from a fault and its target to what settlement is told."""

import msgspec
import pytest

from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.cooldown import Cause, Climb, CooldownPolicy, Scope, Source
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.classify import classify
from cluster_gw.pipeline.health import consequence_of, outcome_of
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.runtime import RoutingPolicy
from cluster_gw.pipeline.targets import Target, build_targets
from cluster_gw.providers import provider_for
from cluster_gw.store.admission import Outcome
from tests.pipeline.catalogs import UNLIMITED, make_catalog, make_route

NOW_MS = 1_795_000_000_000
FAR, NEAR = "https://api.example/v1", "http://127.0.0.1:1/v1"


def make_target(url: str = FAR, limits: Limits = UNLIMITED) -> Target:
    route = msgspec.structs.replace(make_route("m", limits=limits), base_url=url)
    targets = build_targets(make_catalog(route), lambda _: "secret", provider_for)
    return next(iter(targets[route.id].values()))


def booked(
    fault: Fault, target: Target | None = None, policy: RoutingPolicy | None = None
) -> Outcome:
    broken = Broken(fault=fault)
    return judged(target or make_target(), broken, policy or RoutingPolicy())


def judged(target: Target, broken: Broken, policy: RoutingPolicy) -> Outcome:
    consequence = consequence_of(broken, classify(broken.fault), policy)
    return outcome_of(target, broken, consequence, policy, NOW_MS)


def status(code: int, **facts: object) -> Fault:
    return Fault(kind=FaultKind.HTTP_STATUS, status=code, **facts)  # type: ignore[arg-type]


def test_stated_wait_reaches_the_script() -> None:
    outcome = booked(status(429, retry_after_ms=300_000))

    assert outcome.evidence is Evidence.NEUTRAL
    assert outcome.cooldown is not None
    assert (outcome.cooldown.reason, outcome.cooldown.stated_ms) == (Cause.RATE_LIMIT, 300_000)


def test_local_target_rests_briefly_whatever_it_stated() -> None:
    cooldown = booked(status(429, retry_after_ms=300_000), make_target(NEAR)).cooldown

    assert cooldown is not None
    assert (cooldown.wait_ms, cooldown.stated_ms) == (5_000, 0)


@pytest.mark.parametrize(
    ("limits", "climb"), [(Limits(), Climb.REPEATED), (Limits(tpd=9), Climb.DAY_SPENT)]
)
def test_ladder_is_climbed_by_the_days_own_count_where_there_is_one(
    limits: Limits, climb: Climb
) -> None:
    cooldown = booked(status(429), make_target(limits=limits)).cooldown

    assert cooldown is not None
    assert cooldown.climb is climb


def test_key_without_credit_rests_as_a_whole() -> None:
    cooldown = booked(status(402)).cooldown

    assert cooldown is not None
    assert (cooldown.scope, cooldown.source) == (Scope.KEY, Source.CREDIT)


def test_sick_target_is_left_to_the_breaker_unless_told_otherwise() -> None:
    resting = RoutingPolicy(cooldown=CooldownPolicy(transient_s=90.0))

    assert booked(status(503)) == Outcome(evidence=Evidence.FAILURE)
    cooldown = booked(status(503), policy=resting).cooldown
    assert cooldown is not None
    assert cooldown.wait_ms == 90_000


def test_breaker_is_judged_by_the_policy_in_force() -> None:
    policy = BreakerPolicy(threshold=1, count_rate_limit=True)
    outcome = booked(status(429), policy=RoutingPolicy(breaker=policy))

    assert (outcome.breaker, outcome.evidence) == (policy, Evidence.FAILURE)


@pytest.mark.parametrize("kind", [FaultKind.CLIENT_GONE, FaultKind.DEADLINE, FaultKind.HEDGE])
def test_what_the_client_or_we_ended_says_nothing(kind: FaultKind) -> None:
    assert booked(Fault(kind=kind)) == Outcome()


def test_answer_that_reasoning_used_up_is_exempt_and_an_empty_one_is_not() -> None:
    fault = Fault(kind=FaultKind.GATE, reason="gate.empty")
    outcomes = [
        judged(
            make_target(),
            Broken(fault=fault, completion=Completion(raw=b"{}", finish_reason=reason)),
            RoutingPolicy(),
        )
        for reason in ("length", "stop")
    ]

    assert [outcome.is_exempt for outcome in outcomes] == [True, False]
    assert {outcome.evidence for outcome in outcomes} == {Evidence.FAILURE}
