"""What a client is told when nobody answered: the ladder, the wait, the sentence."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.failure import FailureClass
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.exhaustion import (
    CODE_WORDS,
    PREFIX,
    SKIP_GROUPS,
    eta_words,
    exhausted,
    stream_interrupted,
)
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.core.outcome.retry import StopReason
from cluster_gw.core.outcome.trace import AttemptOutcome, AttemptRecord, SkipCode, Skipped
from cluster_gw.errors import ErrorBody
from cluster_gw.units import RouteId


def failed(code: FailureCode, **facts: Any) -> AttemptRecord:
    base: dict[str, Any] = {
        "ordinal": 1,
        "route": RouteId("g/m"),
        "provider": "g",
        "model": "m",
        "key_ordinal": 1,
        "outcome": AttemptOutcome.ERROR,
        "code": code,
        "failure_class": FailureClass.UNKNOWN,
    }
    return AttemptRecord(**{**base, **facts})


def skip(code: SkipCode, retry_after_ms: int | None = None, route: str = "s/m") -> Skipped:
    return Skipped(
        route=RouteId(route), provider="s", model="m", code=code, retry_after_ms=retry_after_ms
    )


def error(
    records: list[AttemptRecord], skipped: list[Skipped], stop: StopReason | None = None
) -> ErrorBody:
    return exhausted(records, skipped, combo="auto", stop=stop, now_ms=1_000_000)


@pytest.mark.parametrize(
    ("codes", "status", "code"),
    [
        (["auth", "auth"], 502, "provider_authentication_failed"),
        (["auth", "timeout"], 502, "upstream_failed"),
        (["context_too_large"], 413, "context_length_exceeded"),
        (["context_too_large", "error"], 502, "upstream_failed"),
        (["model_not_found"], 404, "model_not_found"),
        (["provider_bad_request", "provider_bad_request"], 400, "provider_rejected_request"),
        (["answer_gone"], 404, "response_not_found"),
        (["upstream_error", "provider_bad_request"], 502, "upstream_failed"),
        (["rate_limited", "forbidden", "out_of_credits"], 429, "rate_limit_exceeded"),
        (["daily_quota_exhausted"], 429, "rate_limit_exceeded"),
        (["rate_limited", "upstream_error"], 502, "upstream_failed"),
        (["timeout", "hedge_abort"], 502, "upstream_failed"),
        (["deadline"], 504, "deadline_exceeded"),
    ],
)
def test_attempts_lead_to_a_status(codes: list[str], status: int, code: str) -> None:
    body = error([failed(FailureCode(c)) for c in codes], [])

    assert (body.status, body.code) == (status, code)
    assert body.type == ERROR_CODES[code].type


def test_a_degraded_last_upstream_is_unavailable() -> None:
    body = error([failed(FailureCode.UPSTREAM_ERROR, reason="degraded")], [])

    assert (body.status, body.code) == (503, "provider_degraded")
    assert body.retry_after_ms == 30_000


def test_the_breaker_of_a_request_is_unavailable() -> None:
    body = error([failed(FailureCode.TIMEOUT)], [], StopReason.CONSECUTIVE_FAILS)

    assert (body.status, body.code) == (503, "upstream_unhealthy")


@pytest.mark.parametrize(
    ("codes", "status", "code"),
    [
        ([], 503, "no_eligible_providers"),
        (["disabled", "no_key"], 503, "no_eligible_providers"),
        (["no_tools", "no_vision"], 422, "unsupported_capability"),
        (["no_tools", "disabled"], 503, "no_eligible_providers"),
        (["too_large", "context_window"], 413, "context_length_exceeded"),
        (["too_large", "disabled", "no_tools"], 413, "context_length_exceeded"),
        (["rpm", "cooldown", "breaker_open"], 429, "rate_limit_exceeded"),
        (["rpm", "no_tools", "too_large"], 429, "rate_limit_exceeded"),
        (["rpm", "failed_earlier"], 429, "routing_exhausted"),
    ],
)
def test_skips_alone_lead_to_a_status(codes: list[str], status: int, code: str) -> None:
    body = error([], [skip(SkipCode(c)) for c in codes])

    assert (body.status, body.code) == (status, code)


def test_the_deadline_wins_without_an_attempt() -> None:
    assert error([], [skip(SkipCode.RPM)], StopReason.DEADLINE).status == 504


def test_the_wait_is_the_shortest_of_this_request_with_a_floor() -> None:
    records = [failed(FailureCode.RATE_LIMITED, retry_after_ms=9000)]

    assert error(records, [skip(SkipCode.RPM, 7000)]).retry_after_ms == 7000
    assert error(records, [skip(SkipCode.RPM, 20)]).retry_after_ms == 1000
    assert error([], [skip(SkipCode.RPM)]).retry_after_ms == 1000
    assert error([], [skip(SkipCode.DISABLED, 5)]).retry_after_ms == 30_000
    assert error([failed(FailureCode.ERROR)], []).retry_after_ms is None


DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("facts", "told_ms"),
    [
        ({"rest_ms": 5000}, 5000),
        ({"rest_ms": 5000, "retry_after_ms": 1500}, 5000),  # it is left alone whatever was stated
        ({"rest_ms": 2 * DAY_MS}, DAY_MS),
        ({"retry_after_ms": 7000}, 7000),
        ({"retryable": True}, 1000),  # the next request may try it
        ({}, DAY_MS),
    ],
)
def test_target_that_was_tried_counts_by_the_rest_it_got(
    facts: dict[str, Any], told_ms: int
) -> None:
    records = [failed(FailureCode.RATE_LIMITED, **facts)]

    assert error(records, [skip(SkipCode.RPD, DAY_MS)]).retry_after_ms == told_ms


def test_nothing_is_told_of_a_failure_after_which_the_next_request_may_try_at_once() -> None:
    records = [failed(FailureCode.ERROR, retryable=True)]

    assert error(records, [skip(SkipCode.RPD, DAY_MS)]).retry_after_ms is None


def test_the_client_may_retry_when_any_attempt_says_so() -> None:
    hopeless = failed(FailureCode.AUTH)
    hopeful = failed(FailureCode.TIMEOUT, retryable=True)

    assert not error([hopeless], []).retryable
    assert error([hopeful, hopeless], []).retryable
    assert error([], [skip(SkipCode.RPM)]).retryable


def test_the_sentence_without_attempts_counts_and_advises() -> None:
    skipped = [
        skip(SkipCode.RPM, 61_000),
        skip(SkipCode.COOLDOWN, route="t/m"),
        skip(SkipCode.NO_TOOLS, route="u/m"),
        skip(SkipCode.DISABLED, route="v/m"),
    ]

    assert error([], skipped).message == (
        "All models exhausted: 4 route(s) checked (2 rate-limited or on cooldown,"
        " 1 model lacks tool-calling, 1 disabled)."
        " Add more API keys or wait for rate limits to reset. Soonest reset ~61s."
    )


def test_the_sentence_after_attempts_tells_the_trail_and_the_last_error() -> None:
    records = [
        failed(FailureCode.TIMEOUT),
        failed(FailureCode.UPSTREAM_ERROR, key_ordinal=2, message="boom"),
    ]

    assert error(records, [], StopReason.TIME_BUDGET).message == (
        "All models exhausted: 1 route(s) checked. Attempt trail: g/m key1: timeout;"
        " g/m key2: upstream_error. Last error: boom"
        " (stopped early: retry time budget exceeded)"
    )


def test_a_hedged_attempt_is_told_as_out_of_time() -> None:
    body = error([failed(FailureCode.HEDGE_ABORT)], [], StopReason.FATAL)

    assert "retry time budget exceeded" in body.message


def test_the_body_carries_cause_combo_attempts_and_skips() -> None:
    records = [failed(FailureCode.TIMEOUT, failure_class=FailureClass.TIMEOUT)]

    body = error(records, [skip(SkipCode.RPM, 5)])

    assert (body.cause, body.combo) == ("timeout", "auto")
    assert [entry["code"] for entry in body.attempts] == ["timeout"]
    assert [entry["retry_at_ms"] for entry in body.skipped] == [1_000_005]


@pytest.mark.parametrize(
    ("wait_ms", "words"),
    [
        (None, None),
        (0, None),
        (1, "~1s"),
        (89_000, "~89s"),
        (90_000, "~2m"),
        (89 * 60_000, "~89m"),
        (90 * 60_000, "~2h"),
        (86_400_000, "~24h"),
    ],
)
def test_waits_are_told_in_readable_units(wait_ms: int | None, words: str | None) -> None:
    assert eta_words(wait_ms) == words


def test_an_interrupted_stream_names_the_provider() -> None:
    body = stream_interrupted(
        [failed(FailureCode.STREAM_BROKEN, failure_class=FailureClass.NETWORK)], combo="auto"
    )

    assert body.message == "Provider error (g/m): stream interrupted"
    assert (body.code, body.type, body.cause) == ("stream_interrupted", "stream_error", "network")
    assert stream_interrupted([], combo="auto").cause is None


def test_every_skip_code_has_a_group_and_words_are_of_known_codes() -> None:
    assert set(SKIP_GROUPS) == set(SkipCode)
    assert set(CODE_WORDS) <= set(SkipCode)


def test_every_error_code_has_a_status_a_type_and_a_sentence() -> None:
    for code, known in ERROR_CODES.items():
        assert code == code.lower()
        assert known.meaning.endswith(".")
        assert known.status >= 400 or code == "stream_interrupted"


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.builds(
            failed,
            code=st.sampled_from(FailureCode),
            retry_after_ms=st.none() | st.integers(0, 10**8),
            reason=st.none() | st.just("degraded"),
            message=st.text(max_size=20),
        ),
        max_size=12,
    ),
    st.lists(
        st.builds(skip, st.sampled_from(SkipCode), st.none() | st.integers(0, 10**8)), max_size=6
    ),
    st.none() | st.sampled_from(StopReason),
)
def test_exhaustion_is_always_an_error_with_a_wait_where_one_is_due(
    records: list[AttemptRecord], skipped: list[Skipped], stop: StopReason | None
) -> None:
    body = error(records, skipped, stop)

    assert body.status >= 400
    assert body.status != 500
    assert body.code in ERROR_CODES
    assert body.message.startswith(PREFIX)
    assert body.status not in {429, 503} or (body.retry_after_ms or 0) >= 1000
