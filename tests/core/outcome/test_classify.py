"""Every fault has exactly one meaning, and the facts decide before the words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.failure import FailureClass, Fault, FaultKind, Sent
from cluster_gw.core.outcome.classify import FailureCode, SkipScope, Verdict, classify
from cluster_gw.core.outcome.failure_codes import MEANINGS
from cluster_gw.core.outcome.gate import GATE_CODES
from cluster_gw.core.outcome.peek import PEEK_CODES


def status(number: int | None, message: str = "", **facts: str) -> Fault:
    kind = FaultKind.IN_BAND if number is None else FaultKind.HTTP_STATUS
    return Fault(kind=kind, status=number, message=message, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (status(401), FailureCode.AUTH),
        (status(401, "you do not have access to this model"), FailureCode.AUTH),
        (status(400, "API key not valid. Please pass a valid API key."), FailureCode.AUTH),
        (status(400, "x", code="API_KEY_INVALID"), FailureCode.AUTH),
        (status(402), FailureCode.OUT_OF_CREDITS),
        (status(429, "", code="insufficient_quota"), FailureCode.OUT_OF_CREDITS),
        (status(403, "Insufficient balance"), FailureCode.OUT_OF_CREDITS),
        (status(429, "Daily limit reached"), FailureCode.DAILY_QUOTA_EXHAUSTED),
        (status(429, "", code="GenerateRequestsPerDay"), FailureCode.RATE_LIMITED),
        (
            status(429, "quota", code="GenerateRequestsPerDayPerProject"),
            FailureCode.DAILY_QUOTA_EXHAUSTED,
        ),
        (status(429, "requests per day (RPD): limit 1000"), FailureCode.DAILY_QUOTA_EXHAUSTED),
        (status(404), FailureCode.MODEL_NOT_FOUND),
        (status(410), FailureCode.MODEL_NOT_FOUND),
        (status(400, "", code="model_not_found"), FailureCode.MODEL_NOT_FOUND),
        (status(403), FailureCode.FORBIDDEN),
        (status(400, "You are not allowed to use this model"), FailureCode.FORBIDDEN),
        (status(413), FailureCode.CONTEXT_TOO_LARGE),
        (status(400, "", code="context_length_exceeded"), FailureCode.CONTEXT_TOO_LARGE),
        (
            status(400, "This model's maximum context length is 8192 tokens"),
            FailureCode.CONTEXT_TOO_LARGE,
        ),
        (status(400, "DEGRADED function cannot be invoked"), FailureCode.UPSTREAM_ERROR),
        (status(400, "", code="json_validate_failed"), FailureCode.FORMAT_IGNORED),
        (status(404, "", code="previous_response_not_found"), FailureCode.ANSWER_GONE),
        (status(400, "", code="previous_response_not_found"), FailureCode.ANSWER_GONE),
        (
            status(404, "Item with id 'rs_68af' not found. Items are not persisted."),
            FailureCode.ANSWER_GONE,
        ),
        (status(404, "model gpt-x not found"), FailureCode.MODEL_NOT_FOUND),
        (status(400, "", code="tool_use_failed"), FailureCode.INVALID_TOOL_ARGUMENTS),
        (status(400, "bad"), FailureCode.PROVIDER_BAD_REQUEST),
        (status(422), FailureCode.PROVIDER_BAD_REQUEST),
        (status(408), FailureCode.TIMEOUT),
        (status(429), FailureCode.RATE_LIMITED),
        (status(500), FailureCode.UPSTREAM_ERROR),
        (status(503, "rate limit 429"), FailureCode.UPSTREAM_ERROR),
        (status(529), FailureCode.UPSTREAM_ERROR),
        (status(302), FailureCode.REDIRECTED),
        (status(307, "rate limit"), FailureCode.REDIRECTED),
        (status(304), FailureCode.REDIRECTED),
        (status(409), FailureCode.ERROR),
        (status(418), FailureCode.ERROR),
    ],
)
def test_a_status_decides_before_any_word(fault: Fault, code: FailureCode) -> None:
    assert classify(fault).code is code


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached: used 404 tokens",
        "limit 402, requested 410",
        "500 requests, 413 left, 401k tokens",
        "the quota is gone",
    ],
)
def test_a_number_in_the_text_never_overrules_a_429(message: str) -> None:
    assert classify(status(429, message)).code is FailureCode.RATE_LIMITED


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (status(None, "HTTP 429."), FailureCode.RATE_LIMITED),
        (status(None, "Too Many Requests"), FailureCode.RATE_LIMITED),
        (status(None, "", type="rate_limit_error"), FailureCode.RATE_LIMITED),
        (status(None, "", code="RESOURCE_EXHAUSTED"), FailureCode.RATE_LIMITED),
        (status(None, "", type="authentication_error"), FailureCode.AUTH),
        (status(None, "Unauthorized"), FailureCode.AUTH),
        (status(None, "status 404: gone"), FailureCode.MODEL_NOT_FOUND),
        (status(None, "used 14042 tokens"), FailureCode.UPSTREAM_ERROR),
        (status(None, "took 404.5 ms"), FailureCode.UPSTREAM_ERROR),
        (status(None, "", type="permission_error"), FailureCode.FORBIDDEN),
        (status(None, "request timed out"), FailureCode.TIMEOUT),
        (status(None, "prompt is too long"), FailureCode.CONTEXT_TOO_LARGE),
        (status(None, "API error 400: no"), FailureCode.PROVIDER_BAD_REQUEST),
        (status(None, "", type="invalid_request_error"), FailureCode.PROVIDER_BAD_REQUEST),
        (status(None, "", type="overloaded_error"), FailureCode.UPSTREAM_ERROR),
        (status(None, ""), FailureCode.UPSTREAM_ERROR),
    ],
)
def test_words_decide_only_without_a_status(fault: Fault, code: FailureCode) -> None:
    assert classify(fault).code is code


def test_an_error_inside_a_stream_is_judged_by_its_status() -> None:
    in_band = classify(Fault(kind=FaultKind.IN_BAND, status=429, message="slow down"))

    assert in_band == classify(status(429, "slow down"))


@pytest.mark.parametrize(
    ("kind", "reason", "code", "failure_class", "skip"),
    [
        ("connect", None, "connect_failed", "network", "provider"),
        ("connect_timeout", None, "timeout", "timeout", "provider"),
        ("write_timeout", None, "timeout", "timeout", "provider"),
        ("proxy", None, "proxy_failed", "network", "key"),
        ("address", None, "address_refused", "network", "key"),
        ("headers_timeout", None, "timeout", "timeout", "provider"),
        ("stall", None, "timeout", "timeout", "provider"),
        ("disconnected", None, "stream_broken", "network", "provider"),
        ("cut", None, "stream_broken", "network", "provider"),
        ("no_terminal", None, "stream_broken", "network", "provider"),
        ("malformed", None, "upstream_error", "server_error", "key"),
        ("content_type", None, "upstream_error", "server_error", "provider"),
        ("too_large", None, "upstream_error", "server_error", "model"),
        ("gate", "gate.empty", "empty_completion", "content_rejected", "key"),
        ("gate", "gate.too_short", "content_rejected", "content_rejected", "model"),
        ("gate", "gate.forbidden", "content_rejected", "content_rejected", "model"),
        ("gate", "gate.no_terminal", "content_rejected", "content_rejected", "key"),
        ("peek", "peek.idle", "timeout", "timeout", "model"),
        ("peek", "peek.total", "timeout", "timeout", "model"),
        ("peek", "peek.empty", "empty_completion", "content_rejected", "key"),
        ("peek", "peek.blank", "empty_completion", "content_rejected", "key"),
        ("peek", "peek.closed", "stream_broken", "network", "key"),
        ("peek", "peek.too_large", "content_rejected", "content_rejected", "model"),
        ("hedge", None, "hedge_abort", "timeout", "none"),
        ("deadline", None, "deadline", "timeout", "none"),
        ("client_gone", None, "client_abort", "cancelled", "none"),
        ("credential", None, "auth", "auth", "key"),
    ],
)
def test_kinds_without_a_vendors_answer(
    kind: str, reason: str | None, code: str, failure_class: str, skip: str
) -> None:
    verdict = classify(Fault(kind=FaultKind(kind), reason=reason))

    assert (verdict.code, verdict.failure_class, verdict.skip) == (code, failure_class, skip)
    assert verdict.reason is not None or reason is None


@pytest.mark.parametrize(
    ("fault", "blames"),
    [
        (status(500), True),
        (status(429), False),
        (status(401), False),
        (status(402), False),
        (status(403), False),
        (status(400), False),
        (status(404), False),
        (status(413), False),
        (Fault(kind=FaultKind.STALL), True),
        (Fault(kind=FaultKind.CONNECT), True),
        (Fault(kind=FaultKind.GATE, reason="gate.empty"), True),
        (Fault(kind=FaultKind.CLIENT_GONE), False),
        (Fault(kind=FaultKind.HEDGE), False),
        (Fault(kind=FaultKind.DEADLINE), False),
        (Fault(kind=FaultKind.CREDENTIAL), False),
    ],
)
def test_only_sickness_moves_the_breaker(fault: Fault, blames: bool) -> None:
    assert classify(fault).blames_breaker is blames


@pytest.mark.parametrize("number", [400, 422, 404, 401, 402, 403, 413])
def test_client_faults_fall_through_but_are_not_worth_repeating(number: int) -> None:
    verdict = classify(status(number))

    assert (verdict.fatal, verdict.retryable) == (False, False)


def test_a_request_that_may_have_run_is_repeated_by_policy_only() -> None:
    fault = Fault(kind=FaultKind.DISCONNECTED, sent=Sent.UNKNOWN)

    assert classify(fault).sent is Sent.UNKNOWN
    assert not classify(fault).fatal
    assert classify(fault, repeat_unknown=False).fatal


def test_degraded_is_told_apart() -> None:
    assert classify(status(400, "DEGRADED")).reason == "degraded"


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(FailureCode)


TEXTS = st.text(max_size=20) | st.sampled_from(
    ["429", "degraded", "quota today", "insufficient_quota", "invalid api key", "timeout", "404"]
)
FAULTS = st.builds(
    Fault,
    kind=st.sampled_from(FaultKind),
    sent=st.sampled_from(Sent),
    status=st.none() | st.integers(100, 599),
    type=st.none() | TEXTS,
    code=st.none() | TEXTS,
    message=TEXTS,
    retry_after_ms=st.none() | st.integers(0, 86_400_000),
    reason=st.none() | st.sampled_from([*GATE_CODES, *PEEK_CODES, "unheard.of"]),
)


@settings(deadline=None, max_examples=400)
@given(FAULTS)
def test_every_fault_has_a_verdict_that_holds_together(fault: Fault) -> None:
    verdict = classify(fault)

    assert isinstance(verdict, Verdict)
    assert verdict == classify(fault)
    assert verdict.sent is fault.sent
    assert not (verdict.blames_breaker and verdict.failure_class is FailureClass.CANCELLED)
    assert verdict.fatal == (verdict.skip is SkipScope.NONE)
