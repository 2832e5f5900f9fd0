"""What the end of an attempt adds to the statistics of its target: reliability and speed."""

from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.outcome.classify import FailureCode, Verdict
from cluster_gw.core.outcome.consequence import HANGING_MS
from cluster_gw.core.routing.statistics import Result, Sample
from cluster_gw.store.admission import Outcome
from cluster_gw.units import MS_PER_S


def failure_sample(health: Outcome, verdict: Verdict, duration_s: float) -> Sample | None:
    """Tell what a failed attempt adds; None for what is not the target's doing.

    What the client's deadline ended after a while was too slow, whosever fault that is: where this
    happens to many requests, they had better be sent elsewhere.

    Args:
        health: what the failure is booked as; neutral ones are not the target's.
        verdict: of `classify` on its fault.
        duration_s: from the attempt's start to its end.
    """
    is_late = verdict.code is FailureCode.DEADLINE and duration_s * MS_PER_S >= HANGING_MS
    if is_late:
        return Sample(result=Result.TIMEOUT, latency_ms=round(duration_s * MS_PER_S))
    if health.evidence is not Evidence.FAILURE and health.cooldown is None:
        return None
    if verdict.code is FailureCode.TIMEOUT:
        return Sample(result=Result.TIMEOUT, latency_ms=round(duration_s * MS_PER_S))
    return Sample(result=Result.FAILURE)
