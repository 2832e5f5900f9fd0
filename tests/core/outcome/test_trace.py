"""Headers and bodies made of attempt records: bounded, printable, without key ids."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import FailureClass, Sent
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.core.outcome.trace import (
    DETAIL_MAX,
    ROUTED_VIA_MAX,
    TRAIL_MAX,
    AttemptOutcome,
    AttemptRecord,
    KeyOrdinals,
    SkipCode,
    Skipped,
    attempts_json,
    detail_header,
    joined,
    routed_via,
    skipped_json,
    trail_header,
    warnings_header,
)
from cluster_gw.units import KeyId, RouteId


def record(ordinal: int = 1, **facts: Any) -> AttemptRecord:
    base: dict[str, Any] = {
        "ordinal": ordinal,
        "route": RouteId("groq/llama"),
        "provider": "groq",
        "model": "llama",
        "key_ordinal": 1,
        "outcome": AttemptOutcome.ERROR,
        "code": FailureCode.RATE_LIMITED,
        "failure_class": FailureClass.RATE_LIMIT,
    }
    return AttemptRecord(**{**base, **facts})


SUCCESS = record(2, outcome=AttemptOutcome.SUCCESS, code=None, failure_class=None)


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("groq", "llama-3", "groq/llama-3"),
        ("openrouter", "meta/llama:free", "openrouter/meta/llama:free"),
        ("p", "a b", "p/a b"),
        ("p", "100%", "p/100%25"),
        ("p", "é", "p/%C3%A9"),
        ("p", "a\r\nx: y", "p/a%0D%0Ax: y"),
    ],
)
def test_the_route_header_is_percent_encoded(provider: str, model: str, expected: str) -> None:
    assert routed_via(provider, model) == expected


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_route_header_is_bounded_and_never_ends_in_half_an_escape(
    provider: str, model: str
) -> None:
    value = routed_via(provider, model)

    assert len(value) <= ROUTED_VIA_MAX
    assert value.isascii()
    assert value.isprintable()
    assert "%" not in value[-2:] or value[-3:-2] == "%"


def test_the_trail_names_failures_only() -> None:
    records = [record(), record(2, key_ordinal=2, code=FailureCode.TIMEOUT), SUCCESS]

    assert trail_header(records) == "groq/llama key1=rate_limited; groq/llama key2=timeout"
    assert trail_header([SUCCESS]) == ""
    assert trail_header([]) == ""


def test_a_long_trail_says_how_many_are_missing() -> None:
    trail = trail_header([record(n) for n in range(13)])

    assert trail.count("key1=rate_limited") == 10
    assert trail.endswith("; +3 more")


def test_a_trail_of_long_names_stays_within_its_bound() -> None:
    trail = trail_header([record(n, model="é" * 200) for n in range(12)])

    assert len(trail) <= TRAIL_MAX
    assert trail.endswith(" more")


def test_the_detail_header_tells_times_and_a_short_text() -> None:
    records = [record(started_ms=3, duration_ms=40, message="slow; down" + "x" * 200), SUCCESS]

    detail = detail_header(records)

    assert detail.startswith("groq/llama key1=rate_limited t=3+40ms msg=slow, down")
    assert detail.endswith("; groq/llama key1=success t=0+0ms")
    assert len(detail) < 220


RECORDS = st.lists(
    st.builds(
        record,
        ordinal=st.integers(1, 30),
        provider=st.text(max_size=30),
        model=st.text(max_size=300),
        key_ordinal=st.integers(1, 99),
        code=st.sampled_from(FailureCode),
        message=st.text(max_size=300),
        duration_ms=st.integers(0, 10**7),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(RECORDS)
def test_headers_are_always_printable_ascii_within_bounds(records: list[AttemptRecord]) -> None:
    for header, limit in ((trail_header(records), TRAIL_MAX), (detail_header(records), DETAIL_MAX)):
        assert header.isascii()
        assert header.isprintable()
        assert len(header) <= limit
        assert bool(header) == bool(records)


def test_an_attempt_in_the_body_leaves_out_what_is_unknown() -> None:
    assert attempts_json([SUCCESS]) == [
        {
            "attempt": 2,
            "provider": "groq",
            "model": "llama",
            "key": 1,
            "ok": True,
            "outcome": "success",
            "latency_ms": 0,
            "started_ms": 0,
            "score": 0.0,
        }
    ]


def test_a_failed_attempt_in_the_body_tells_class_code_and_what_was_sent() -> None:
    (entry,) = attempts_json(
        [
            record(
                outcome=AttemptOutcome.REJECTED,
                reason="gate.empty",
                status=200,
                message="m",
                retry_after_ms=5,
                sent=Sent.UNKNOWN,
                usage=Usage(total_tokens=3),
            )
        ]
    )

    assert entry["ok"] is False
    assert (entry["class"], entry["code"]) == ("rate_limit", "rate_limited")
    assert (entry["reason"], entry["http_status"], entry["sent"]) == ("gate.empty", 200, "unknown")
    assert (entry["message"], entry["retry_after_ms"]) == ("m", 5)
    assert entry["usage"] == Usage(total_tokens=3)


def test_a_skipped_candidate_tells_when_it_may_return() -> None:
    skip = Skipped(
        route=RouteId("g/m"),
        provider="g",
        model="m",
        code=SkipCode.RPM,
        key_ordinal=2,
        key=KeyId("secret-name"),
        scope="model",
        detail="rpm is used up",
        retry_after_ms=500,
    )
    bare = Skipped(route=RouteId("g/m"), provider="g", model="m", code=SkipCode.DISABLED)

    assert skipped_json([skip, bare], 1000) == [
        {
            "route": "g/m",
            "code": "rpm",
            "scope": "model",
            "key": 2,
            "detail": "rpm is used up",
            "retry_at_ms": 1500,
            "retry_after_ms": 500,
        },
        {"route": "g/m", "code": "disabled", "scope": "route"},
    ]


def test_keys_are_numbered_by_first_use() -> None:
    ordinals = KeyOrdinals()
    used = [("a", "k1"), ("b", "k1"), ("a", "k2"), ("a", "k1")]

    assert [ordinals.of(provider, KeyId(key)) for provider, key in used] == [1, 2, 3, 1]


def test_every_refusal_gate_is_a_skip_code() -> None:
    assert {gate.value for gate in Gate} <= {code.value for code in SkipCode}


def test_warnings_are_one_header_of_printable_text() -> None:
    assert warnings_header(["dropped top_k", "a\r\nb; c"]) == "dropped top_k; a%0D%0Ab, c"


def test_thousands_of_warnings_are_cut_at_once() -> None:
    header = warnings_header(["x" * 20] * 200_000)

    assert len(header) <= 2048
    assert header.endswith(" more")


@given(st.lists(st.text("ab", max_size=9), max_size=12), st.integers(1, 12), st.integers(5, 60))
def test_as_many_entries_are_told_as_fit(entries: list[str], most: int, limit: int) -> None:
    text = joined(entries, most, limit)

    told = next(
        (
            kept
            for kept in range(min(most, len(entries)), 0, -1)
            if len(with_rest(entries, kept)) <= limit
        ),
        0,
    )
    assert text == (with_rest(entries, told) if entries else "")


def with_rest(entries: list[str], told: int) -> str:
    rest = [f"+{len(entries) - told} more"] if told < len(entries) else []
    return "; ".join(entries[:told] + rest)
