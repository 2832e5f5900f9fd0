import pytest

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.pipeline.headers import duration_words, standing_headers
from cluster_gw.store.clients import Standing


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (1, "1s"),
        (1_000, "1s"),
        (59_001, "1m0s"),
        (62_000, "1m2s"),
        (360_000, "6m0s"),
        (3_600_000, "1h0m0s"),
        (7_325_000, "2h2m5s"),
    ],
)
def test_durations_are_written_as_openai_does_in_whole_seconds(
    duration_ms: int, words: str
) -> None:
    assert duration_words(duration_ms) == words


def test_a_reset_counts_down_from_the_moment_it_was_told() -> None:
    standing = Standing(
        allowance=Allowance(rpm=60, monthly_tokens=5),
        at_s=100.0,
        requests_left=59,
        requests_reset_ms=62_000,
        tokens_left=-1,
        tokens_reset_ms=62_000,
    )

    assert standing_headers(standing, 110.0) == [
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"59"),
        (b"x-ratelimit-reset-requests", b"52s"),
    ]


def test_who_holds_nothing_is_told_nothing() -> None:
    assert standing_headers(None, 0.0) == []
