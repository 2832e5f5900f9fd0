"""What bars a target by what a snapshot says of it."""

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.snapshot import Barred, HealthView, bar_of

NOW_MS = 1_795_000_000_000
OPEN = HealthView(breaker="open", breaker_until_ms=NOW_MS + 30_000)


def test_a_rest_bars_until_its_end() -> None:
    view = HealthView(rest_until_ms=NOW_MS + 1)

    assert bar_of(view, NOW_MS) == Barred(gate=Gate.COOLDOWN, until_ms=NOW_MS + 1)
    assert bar_of(view, NOW_MS + 1) is None


def test_an_open_breaker_bars_until_its_trial_is_due() -> None:
    assert bar_of(OPEN, NOW_MS) == Barred(gate=Gate.BREAKER_OPEN, until_ms=NOW_MS + 30_000)
    assert bar_of(OPEN, NOW_MS + 30_000) is None


def test_of_both_the_one_that_ends_last_is_told() -> None:
    longer = HealthView(
        rest_until_ms=NOW_MS + 60_000, breaker="open", breaker_until_ms=NOW_MS + 30_000
    )

    assert bar_of(longer, NOW_MS) == Barred(gate=Gate.COOLDOWN, until_ms=NOW_MS + 60_000)
    assert bar_of(OPEN, NOW_MS) == Barred(gate=Gate.BREAKER_OPEN, until_ms=NOW_MS + 30_000)


def test_a_running_trial_is_no_bar_since_it_may_end_at_any_moment() -> None:
    view = HealthView(breaker="half_open", breaker_until_ms=NOW_MS + 60_000, fails=3)

    assert bar_of(view, NOW_MS) is None
