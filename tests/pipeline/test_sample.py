"""Which failures count against a target in its statistics, and which say that it is slow."""

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Cause, Cooldown, Scope
from cluster_gw.core.outcome.classify import classify
from cluster_gw.core.routing.statistics import Result, Sample
from cluster_gw.pipeline.sample import failure_sample
from cluster_gw.store.admission import Outcome

SICK = Outcome(evidence=Evidence.FAILURE)
RESTS = Outcome(cooldown=Cooldown(scope=Scope.TARGET, reason=Cause.RATE_LIMIT, wait_ms=1))


@pytest.mark.parametrize(
    ("fault", "health", "result"),
    [
        (Fault(kind=FaultKind.CUT), SICK, Result.FAILURE),
        (Fault(kind=FaultKind.HTTP_STATUS, status=429), RESTS, Result.FAILURE),
        (Fault(kind=FaultKind.STALL), SICK, Result.TIMEOUT),
        (Fault(kind=FaultKind.HEADERS_TIMEOUT), SICK, Result.TIMEOUT),
    ],
)
def test_a_failure_of_the_target_counts(fault: Fault, health: Outcome, result: Result) -> None:
    sample = failure_sample(health, classify(fault), 1.5)

    latency_ms = 1500 if result is Result.TIMEOUT else 0
    assert sample == Sample(result=result, latency_ms=latency_ms)


def test_what_is_not_the_doing_of_the_target_does_not_count() -> None:
    fault = Fault(kind=FaultKind.HTTP_STATUS, status=400)

    assert failure_sample(Outcome(), classify(fault), 1.0) is None


@pytest.mark.parametrize(("took_s", "counts"), [(4.9, False), (5.0, True)])
def test_what_a_deadline_ended_after_a_while_was_too_slow(took_s: float, counts: bool) -> None:
    late = failure_sample(Outcome(), classify(Fault(kind=FaultKind.DEADLINE)), took_s)

    assert (late == Sample(result=Result.TIMEOUT, latency_ms=5000)) is counts
    assert failure_sample(Outcome(), classify(Fault(kind=FaultKind.CLIENT_GONE)), took_s) is None
