"""Every form of a stated wait, and nothing that is not one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire.duration import parse_duration_ms
from cluster_gw.wire.retry_after import MAX_WAIT_MS, stated_wait_ms

NOW_MS = 1_700_000_000_000  # Tue, 14 Nov 2023 22:13:20 GMT


def wait(
    headers: dict[str, str] | None = None,
    document: Any = None,
    prose: str = "",
    *,
    is_limit: bool = True,
) -> int | None:
    return stated_wait_ms(headers or {}, document, prose, NOW_MS, is_limit=is_limit)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7000),
        ({"retry-after": " 1.5 "}, 1500),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30_000),
        ({"retry-after": "Tuesday, 14-Nov-23 22:13:50 GMT"}, 30_000),
        ({"retry-after": "Tue Nov 14 22:13:50 2023"}, 30_000),
        ({"retry-after": "2023-11-14T22:13:30Z"}, 10_000),
        ({"retry-after": "17s"}, 17_000),
        ({"retry-after-ms": "250", "retry-after": "1"}, 250),
        ({"retry-after": "1700000060"}, 60_000),
        ({"retry-after": "99999999"}, MAX_WAIT_MS),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, None),
        ({"retry-after": "2023-11-14T22:13:30"}, None),
        ({"x-ratelimit-reset": "1700000005000"}, 5000),
        ({"x-ratelimit-reset-requests": "1m30.5s"}, None),
        ({"x-ratelimit-reset-requests": "1m30.5s", "x-ratelimit-remaining-requests": "0"}, 90_500),
        ({"x-ratelimit-reset-tokens": "6ms", "x-ratelimit-remaining-tokens": "12"}, None),
        ({"retry-after": "2", "x-ratelimit-reset": "9"}, 2000),
    ],
)
def test_headers_state_a_wait(headers: dict[str, str], expected: int | None) -> None:
    assert wait(headers) == expected


def test_the_longest_reset_among_spent_limits_counts() -> None:
    headers = {
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-tokens": "5s",
        "x-ratelimit-remaining-tokens": "0.0",
    }

    assert wait(headers) == 5000
    assert wait(headers, is_limit=False) is None


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"error": {"details": [{"retryDelay": "17s"}]}}, 17_000),
        ({"retry_after": 3}, 3000),
        ({"error": {"retryAfterSeconds": 2.5}}, 2500),
        ({"retry-after-ms": "40"}, 40),
        ({"retry_after": "4"}, 4000),
        ({"retry_after": True}, None),
        ({"retry_after": -1}, None),
        ({"retry_after": None}, None),
        ({"a": {"b": {"c": {"d": {"e": {"retry_after": 1}}}}}}, 1000),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"retry_after": 1}}}}}}}, None),
        ({"retry_afterwards": 5}, None),
        ("retry_after", None),
        ([*[{"a": 1}] * 2000, {"retry_after": 1}], None),
    ],
)
def test_fields_of_the_body_state_a_wait(document: Any, expected: int | None) -> None:
    assert wait(document=document) == expected


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("Please try again in 1.5s. Thank you", 1500),
        ("Please try again in 7m12.5s.", 432_500),
        ("retry after 2 minutes", 120_000),
        ("Please retry in 20.1 seconds.", 20_100),
        ("Try again in about 1 hour and 5 minutes", 3_900_000),
        ("try again in 250ms", 250),
        ("used 404 of 500 tokens in 20 seconds", None),
        ("try again in a while", None),
        ("try again in 5 models", None),
    ],
)
def test_prose_states_a_wait_only_after_an_explicit_phrase(
    prose: str, expected: int | None
) -> None:
    assert wait(prose=prose) == expected


def test_headers_win_over_fields_and_fields_over_prose() -> None:
    prose = "try again in 3s"

    assert wait({"retry-after": "1"}, {"retry_after": 2}, prose) == 1000
    assert wait({"retry-after": "never"}, {"retry_after": 2}, prose) == 2000
    assert wait({}, {"retry_after": "never"}, prose) == 3000


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]),
        st.text(max_size=20),
    ),
    st.recursive(
        st.none() | st.floats() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.dictionaries(st.sampled_from(["retry_after", "retryDelay", "a"]), inner)
            | st.lists(inner, max_size=3)
        ),
        max_leaves=10,
    ),
    st.text(max_size=30),
)
def test_a_wait_is_always_within_a_day(headers: dict[str, str], document: Any, prose: str) -> None:
    found = stated_wait_ms(headers, document, "try again in " + prose, NOW_MS, is_limit=True)

    assert found is None or 0 <= found <= MAX_WAIT_MS


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_glued_and_spelled_durations_agree(hours: int, minutes: int, seconds: int) -> None:
    expected = ((hours * 60 + minutes) * 60 + seconds) * 1000

    assert parse_duration_ms(f"{hours}h{minutes}m{seconds}s") == expected
    assert parse_duration_ms(f"{hours} hours, {minutes} min and {seconds} seconds") == expected
