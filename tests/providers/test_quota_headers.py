from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.quota import Observation, QuotaBreadth, QuotaKind, QuotaWindow
from cluster_gw.providers.quota_headers import (
    RESET_MAX_MS,
    parse_count,
    parse_reset_ms,
    read_quota,
    strictest,
)

NOW_MS = 1_795_000_000_000
HOUR_MS = 3_600_000
DAY, MINUTE = QuotaWindow.DAY, QuotaWindow.MINUTE
REQUESTS, TOKENS = QuotaKind.REQUESTS, QuotaKind.TOKENS


def seen(
    window: QuotaWindow,
    kind: QuotaKind,
    limit: int | None,
    remaining: int | None,
    reset_ms: int | None = None,
    *,
    breadth: QuotaBreadth = QuotaBreadth.MODEL,
) -> Observation:
    return Observation(
        window=window,
        kind=kind,
        breadth=breadth,
        limit=limit,
        remaining=remaining,
        reset_ms=reset_ms,
    )


def read(text: str, *, by_day: bool = False) -> set[Observation]:
    lines = (line.strip().partition(": ") for line in text.strip().splitlines())
    headers = {name: value for name, _, value in lines}
    return set(read_quota(headers, NOW_MS, requests_by_day=by_day))


def rfc3339(after_ms: int) -> str:
    return datetime.fromtimestamp((NOW_MS + after_ms) / 1000, UTC).isoformat()


PLAIN = """
    x-ratelimit-limit-requests: 60
    x-ratelimit-remaining-requests: 59
    x-ratelimit-reset-requests: 1s
    x-ratelimit-limit-tokens: 150000
    x-ratelimit-remaining-tokens: 149984
    x-ratelimit-reset-tokens: 6m0s
"""


def test_openai_counts_a_minute() -> None:
    assert read(PLAIN) == {
        seen(MINUTE, REQUESTS, 60, 59, 1000),
        seen(MINUTE, TOKENS, 150_000, 149_984, 360_000),
    }


def test_plain_requests_that_reset_after_more_than_a_minute_are_a_days() -> None:
    found = read("x-ratelimit-remaining-requests: 3\nx-ratelimit-reset-requests: 7m12s")

    assert found == {seen(DAY, REQUESTS, None, 3, 432_000)}


def test_groq_counts_requests_a_day_and_tokens_a_minute() -> None:
    assert read(PLAIN, by_day=True) == {
        seen(DAY, REQUESTS, 60, 59, 1000),
        seen(MINUTE, TOKENS, 150_000, 149_984, 360_000),
    }


def test_cerebras_names_its_windows() -> None:
    found = read("""
        x-ratelimit-limit-requests-day: 14400
        x-ratelimit-remaining-requests-day: 14399
        x-ratelimit-reset-requests-day: 33011.382867
        x-ratelimit-limit-tokens-minute: 60000
        x-ratelimit-remaining-tokens-minute: 51000
        x-ratelimit-reset-tokens-minute: 11.382867
    """)

    assert found == {
        seen(DAY, REQUESTS, 14_400, 14_399, 33_011_383),
        seen(MINUTE, TOKENS, 60_000, 51_000, 11_383),
    }


def test_mistral_abbreviates_and_states_no_reset() -> None:
    found = read("""
        x-ratelimit-limit-req-minute: 60
        x-ratelimit-remaining-req-minute: 59
        x-ratelimit-limit-tokens-minute: 50000
        x-ratelimit-remaining-tokens-minute: 47196
        x-ratelimit-limit-tokens-month: 4000000
        x-ratelimit-remaining-tokens-month: 3950246
        x-ratelimit-tokens-query-cost: 2804
    """)

    assert found == {seen(MINUTE, REQUESTS, 60, 59), seen(MINUTE, TOKENS, 50_000, 47_196)}


def test_openrouter_counts_over_all_models_and_resets_at_an_instant() -> None:
    found = read(f"""
        x-ratelimit-limit: 1000
        x-ratelimit-remaining: 0
        x-ratelimit-reset: {NOW_MS + 5 * HOUR_MS}
    """)

    assert found == {seen(DAY, REQUESTS, 1000, 0, 5 * HOUR_MS, breadth=QuotaBreadth.KEY)}


def test_modelscope_counts_the_key_and_the_model_a_day() -> None:
    found = read("""
        modelscope-ratelimit-requests-limit: 2000
        modelscope-ratelimit-requests-remaining: 1500
        modelscope-ratelimit-model-requests-limit: 500
        modelscope-ratelimit-model-requests-remaining: 499
    """)

    assert found == {
        seen(DAY, REQUESTS, 2000, 1500, breadth=QuotaBreadth.KEY),
        seen(DAY, REQUESTS, 500, 499),
    }


def test_anthropic_resets_at_an_rfc_3339_time() -> None:
    found = read(f"""
        anthropic-ratelimit-requests-limit: 50
        anthropic-ratelimit-requests-remaining: 49
        anthropic-ratelimit-requests-reset: {rfc3339(1000)}
        anthropic-ratelimit-tokens-limit: 40000
        anthropic-ratelimit-tokens-remaining: 39000
        anthropic-ratelimit-tokens-reset: {rfc3339(90_000).replace("+00:00", "Z")}
        anthropic-ratelimit-input-tokens-remaining: 0
        anthropic-ratelimit-unified-status: allowed
    """)

    assert found == {
        seen(MINUTE, REQUESTS, 50, 49, 1000),
        seen(MINUTE, TOKENS, 40_000, 39_000, 90_000),
    }


@pytest.mark.parametrize(
    "text",
    [
        'ratelimit: "default";r=50;t=30\nratelimit-policy: "burst";q=9;w=1, "default";q=100;w=60',
        "ratelimit: limit=100, remaining=50, reset=30\nratelimit-policy: 9;w=1, 100;w=60",
        "ratelimit: limit=100, remaining=50, reset=30",
        "ratelimit-limit: 100, 100;w=60\nratelimit-remaining: 50\nratelimit-reset: 30",
        'ratelimit: "a,b;c";r=50;t=30\nratelimit-policy: "a,b;c"; q=100; w=60; qu="requests"',
    ],
)
def test_every_revision_of_the_ietf_draft_is_read(text: str) -> None:
    found = read(text)

    assert {(o.window, o.kind, o.remaining, o.reset_ms) for o in found} == {
        (MINUTE, REQUESTS, 50, 30_000)
    }


def test_ietf_policy_tells_a_day_and_a_unit() -> None:
    found = read("""
        ratelimit: "d";r=7;t=52800, "mem";r=5;t=3, "tok";r=9;t=3
        ratelimit-policy: "d";q=75;w=86400, "mem";q=9;w=60;qu="bytes", "tok";q=99;w=60;qu=tokens
    """)

    assert found == {seen(DAY, REQUESTS, 75, 7, 52_800_000), seen(MINUTE, TOKENS, 99, 9, 3000)}


@pytest.mark.parametrize(
    "text",
    [
        'ratelimit: "s";r=9;t=1\nratelimit-policy: "s";q=10;w=1',
        'ratelimit: "h";r=9;t=1\nratelimit-policy: "h";q=10;w=3600',
        "x-ratelimit-limit: 10, 10;window=1, 99;window=60\nx-ratelimit-remaining: 0",
        "x-ratelimit-remaining-requests-hour: 5",
        "x-ratelimit-limit-requests-second: 5",
        "x-ratelimit-remaining-images: 5",
        "x-ratelimit-requests: 5",
        "helicone-ratelimit-remaining: 5",
        "x-ratelimit-limit-limit: 5",
    ],
)
def test_limit_we_do_not_keep_is_not_read(text: str) -> None:
    assert read(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "x-ratelimit-limit-requests: 10\nx-ratelimit-remaining-requests: 11",
        f"x-ratelimit-remaining: 5\nx-ratelimit-reset: {NOW_MS - 1}",
        f"x-ratelimit-remaining-requests-day: 5\nx-ratelimit-reset-requests-day: {26 * 3600}",
        "x-ratelimit-remaining-requests: plenty",
        "x-ratelimit-limit-requests: -1\nx-ratelimit-remaining-requests: -1",
        "x-ratelimit-reset-requests: 5s",
        'ratelimit: ""',
        "x-ratelimit-limit: \nx-ratelimit-remaining: ",
    ],
)
def test_what_cannot_be_true_is_not_believed(text: str) -> None:
    assert read(text) == set()


def test_reset_that_cannot_be_read_does_not_spoil_the_rest() -> None:
    found = read("x-ratelimit-remaining-tokens: 5\nx-ratelimit-reset-tokens: soon")

    assert found == {seen(MINUTE, TOKENS, None, 5)}


def test_nothing_left_lasts_as_long_as_retry_after_when_no_reset_is_stated() -> None:
    text = "retry-after: 7\nx-ratelimit-remaining-req-minute: 0"
    left = "retry-after: 7\nx-ratelimit-remaining-req-minute: 1"

    assert read(text) == {seen(MINUTE, REQUESTS, None, 0, 7000)}
    assert read(left) == {seen(MINUTE, REQUESTS, None, 1)}


def test_answer_without_such_headers_states_nothing() -> None:
    assert read_quota({"content-type": "application/json", "retry-after": "3"}, NOW_MS) == ()


def test_stricter_of_two_readings_of_one_limit_is_kept() -> None:
    readings = [
        seen(MINUTE, REQUESTS, 9, None),
        seen(MINUTE, REQUESTS, 9, 5),
        seen(MINUTE, REQUESTS, 9, 2),
    ]

    assert strictest(readings) == (readings[2],)


@pytest.mark.parametrize(
    ("text", "reset_ms"),
    [
        ("1m2.5s", 62_500),
        ("2m59.56s", 179_560),
        ("7.66s", 7660),
        ("20ms", 20),
        ("0s", 0),
        ("1h0m0s", HOUR_MS),
        ("0.0001s", 1),
        ("1.0001", 1001),
        ("30", 30_000),
        (" 30 ", 30_000),
        (f"{NOW_MS + 5}.2", 6),
        (f"{NOW_MS // 1000 + 2}", 2000),
        (f"{NOW_MS // 1000 - 2}", -2000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 1000 - NOW_MS),
    ],
)
def test_reset_is_read_in_every_form_and_rounded_up(text: str, reset_ms: int) -> None:
    assert parse_reset_ms(text, NOW_MS) == reset_ms


@pytest.mark.parametrize("text", ["", "soon", "-3", "1e5", "5 parsecs", "NaN", "s"])
def test_reset_that_is_none_is_none(text: str) -> None:
    assert parse_reset_ms(text, NOW_MS) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [("59", 59), (" 59.9 ", 59), ("-3", None), ("", None), ("1e3", None), ("9" * 40, None)],
)
def test_count_is_a_whole_number_or_none(text: str, count: int | None) -> None:
    assert parse_count(text) == count


@given(micros=st.integers(0, 10**11))
def test_durations_are_never_rounded_down(micros: int) -> None:
    exact_ms = micros / 1000
    minutes, rest = divmod(micros, 60_000_000)
    reset_ms = parse_reset_ms(f"{minutes}m{rest // 10**6}.{rest % 10**6:06d}s", NOW_MS)

    assert reset_ms is not None
    assert exact_ms <= reset_ms < exact_ms + 1


NAMES = st.sampled_from(
    [
        f"{vendor}ratelimit{ending}"
        for vendor in ("x-", "", "anthropic-", "modelscope-", "y-")
        for ending in (
            "",
            "-policy",
            "-limit",
            "-remaining",
            "-reset",
            "-requests-limit",
            "-requests-remaining",
            "-reset-requests",
            "-remaining-tokens-minute",
            "-reset-tokens-day",
            "--",
        )
    ]
)
PIECES = st.sampled_from(
    ["0", "17", "-1", "1.5", "6m0s", "1e9", '"', ";", ",", "=", "w", "r", "q", "t", "60", "٣", " "]
)
TEXTS = st.text(max_size=40) | st.lists(PIECES, max_size=12).map("".join)


@given(
    headers=st.dictionaries(NAMES, TEXTS, max_size=8),
    retry_after=TEXTS,
    by_day=st.booleans(),
)
def test_no_text_of_a_header_raises_and_what_is_read_makes_sense(
    headers: dict[str, str], retry_after: str, by_day: bool
) -> None:
    found = read_quota({**headers, "retry-after": retry_after}, NOW_MS, requests_by_day=by_day)

    assert len({(o.window, o.kind, o.breadth) for o in found}) == len(found)
    for reading in found:
        assert reading.limit is None or reading.limit >= 0
        assert reading.remaining is None or reading.remaining >= 0
        assert reading.reset_ms is None or 0 <= reading.reset_ms <= RESET_MAX_MS
        if reading.limit is not None and reading.remaining is not None:
            assert reading.remaining <= reading.limit
