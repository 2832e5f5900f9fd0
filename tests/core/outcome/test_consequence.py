import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Cause
from cluster_gw.core.limits.penalty import Misdeed
from cluster_gw.core.outcome.classify import classify
from cluster_gw.core.outcome.consequence import NEUTRAL, SICK, Consequence, weigh


def weighed(fault: Fault, **policy: object) -> Consequence:
    return weigh(fault, classify(fault), **policy)  # type: ignore[arg-type]


def status(number: int, message: str = "") -> Fault:
    return Fault(kind=FaultKind.HTTP_STATUS, status=number, message=message)


@pytest.mark.parametrize(
    ("fault", "cause", "misdeed"),
    [
        (status(401), Cause.AUTH, None),
        (status(402), Cause.CREDIT, Misdeed.FAILURE),
        (status(403), Cause.TIER, Misdeed.FAILURE),
        (status(429), Cause.RATE_LIMIT, Misdeed.RATE_LIMIT),
        (status(429, "daily quota exhausted"), Cause.DAILY_QUOTA, Misdeed.RATE_LIMIT),
    ],
)
def test_refusals_of_a_key_rest_it_and_leave_breaker_and_bench_alone(
    fault: Fault, cause: Cause, misdeed: Misdeed | None
) -> None:
    assert weighed(fault) == Consequence(cause=cause, misdeed=misdeed)


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(503),
        status(408),
        Fault(kind=FaultKind.CONNECT),
        Fault(kind=FaultKind.STALL),
        Fault(kind=FaultKind.CUT),
        Fault(kind=FaultKind.IN_BAND),
        Fault(kind=FaultKind.GATE, reason="gate.empty"),
    ],
)
def test_sick_targets_feed_breaker_penalty_and_bench(fault: Fault) -> None:
    assert weighed(fault) == SICK


def test_missing_model_rests_and_counts_for_the_bench_but_not_for_the_breaker() -> None:
    assert weighed(status(404)) == Consequence(
        cause=Cause.MISSING, misdeed=Misdeed.FAILURE, counts_for_bench=True
    )


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=FaultKind.CLIENT_GONE),
        Fault(kind=FaultKind.HEDGE),
        Fault(kind=FaultKind.DEADLINE),
        Fault(kind=FaultKind.CREDENTIAL),
        status(400),
        status(422),
        status(413),
        Fault(kind=FaultKind.HTTP_STATUS, status=400, code="json_validate_failed"),
        Fault(kind=FaultKind.HTTP_STATUS, status=400, code="tool_use_failed"),
    ],
)
def test_what_is_not_the_targets_fault_is_neutral(fault: Fault) -> None:
    assert weighed(fault) == NEUTRAL


@pytest.mark.parametrize(("hung_ms", "booked"), [(0.0, NEUTRAL), (4999.0, NEUTRAL), (5000.0, SICK)])
def test_a_deadline_blames_a_target_that_had_hung_for_long(
    hung_ms: float, booked: Consequence
) -> None:
    assert weighed(Fault(kind=FaultKind.DEADLINE), hung_ms=hung_ms) == booked
    assert weighed(Fault(kind=FaultKind.CLIENT_GONE), hung_ms=hung_ms) == NEUTRAL
    assert weighed(Fault(kind=FaultKind.HEDGE), hung_ms=hung_ms) == NEUTRAL


@pytest.mark.parametrize("message", ["", "daily quota exhausted"])
def test_rate_limits_count_for_the_breaker_only_on_request(message: str) -> None:
    limited = weighed(status(429, message), count_rate_limit=True)

    assert limited.evidence is Evidence.FAILURE
    assert weighed(status(403), count_rate_limit=True).evidence is Evidence.NEUTRAL


@pytest.mark.parametrize("number", [401, 403])
def test_suspended_account_rests_the_whole_key(number: int) -> None:
    suspended = weighed(status(number, "This account has been suspended, contact support"))

    assert suspended.cause is Cause.SUSPENDED


def test_empty_answer_is_exempt_when_its_whole_output_was_hidden() -> None:
    fault = Fault(kind=FaultKind.GATE, reason="gate.empty")

    assert weighed(fault, finish_reason="length").is_exempt
    assert not weighed(fault, finish_reason="stop").is_exempt


def test_cause_that_nobody_is_blamed_for_is_neutral() -> None:
    verdict = msgspec.structs.replace(classify(status(500)), blames_breaker=False)

    assert weigh(status(500), verdict) == NEUTRAL


@given(
    fault=st.builds(
        Fault,
        kind=st.sampled_from(FaultKind),
        status=st.none() | st.sampled_from([200, 400, 401, 402, 403, 404, 408, 413, 429, 500, 503]),
        message=st.text(max_size=30),
        reason=st.none() | st.sampled_from(["gate.empty", "peek.idle", "peek.total"]),
    )
)
def test_only_what_blames_the_target_is_evidence_against_it(fault: Fault) -> None:
    consequence = weighed(fault)

    assert (consequence.evidence is Evidence.FAILURE) == classify(fault).blames_breaker
    assert consequence.evidence is not Evidence.SUCCESS
