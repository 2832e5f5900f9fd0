"""What is barred by health is known from refusals, events and snapshots, whichever is newest."""

import pytest

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.snapshot import HealthView, Snapshot
from cluster_gw.store.bars import Bars
from cluster_gw.store.events import HealthEvent
from cluster_gw.store.lease import Refusal

NOW_MS = 1_795_000_000_000
TARGET, KEY = "gw1:h:{p.a}:k:m", "gw1:h:{p.a}:k:_all"
SCOPES = ("model", "key")


@pytest.fixture
def bars() -> Bars:
    return Bars()


def barring(bars: Bars, now_s: float) -> Refusal | None:
    return bars.barring((TARGET, KEY), SCOPES, now_s)


def told(
    gate: Gate | None, wait_ms: int = 0, *, record: str = TARGET, at_ms: int = NOW_MS
) -> HealthEvent:
    return HealthEvent(record=record, gate=gate, wait_ms=wait_ms, at_ms=at_ms)


def resting(until_ms: int, *, at_ms: int) -> Snapshot:
    return Snapshot(version=1, at_ms=at_ms, health={TARGET: HealthView(rest_until_ms=until_ms)})


def test_a_bar_that_was_told_holds_until_it_is_over(bars: Bars) -> None:
    bars.hear(told(Gate.COOLDOWN, 4000), now_s=10.0)

    assert barring(bars, 13.0) == Refusal(gate=Gate.COOLDOWN, scope="model", retry_after_ms=1000)
    assert barring(bars, 14.0) is None
    assert not bars


def test_a_long_bar_is_believed_for_six_seconds_but_told_in_full(bars: Bars) -> None:
    bars.hear(told(Gate.COOLDOWN, 90_000), now_s=10.0)

    refusal = barring(bars, 15.9)

    assert refusal is not None
    assert refusal.retry_after_ms == 84_100
    assert barring(bars, 16.0) is None


def test_the_end_of_a_bar_lets_ask_again_at_once(bars: Bars) -> None:
    bars.refused(TARGET, Gate.TRIAL_TAKEN, 1000, now_s=10.0)

    bars.hear(told(None), now_s=10.1)

    assert barring(bars, 10.1) is None


def test_the_bar_that_ends_last_is_told_and_whose_it_is(bars: Bars) -> None:
    bars.hear(told(Gate.BREAKER_OPEN, 3000), now_s=0.0)
    bars.hear(told(Gate.COOLDOWN, 5000, record=KEY), now_s=0.0)

    assert barring(bars, 1.0) == Refusal(gate=Gate.COOLDOWN, scope="key", retry_after_ms=4000)


def test_a_snapshot_replaces_what_is_older(bars: Bars) -> None:
    bars.hear(told(Gate.COOLDOWN, 90_000, record=KEY), now_s=0.0)

    bars.take_over(resting(NOW_MS + 9000, at_ms=NOW_MS + 1), server_now_ms=NOW_MS + 2000, now_s=2.0)

    assert barring(bars, 2.0) == Refusal(gate=Gate.COOLDOWN, scope="model", retry_after_ms=7000)


def test_a_snapshot_does_not_undo_what_was_told_since_it_was_begun(bars: Bars) -> None:
    bars.hear(told(Gate.COOLDOWN, 5000, record=KEY), now_s=0.0)
    bars.hear(told(None), now_s=0.0)

    bars.take_over(resting(NOW_MS + 9000, at_ms=NOW_MS - 1), server_now_ms=NOW_MS, now_s=0.0)

    assert barring(bars, 0.0) == Refusal(gate=Gate.COOLDOWN, scope="key", retry_after_ms=5000)


def test_a_bar_that_is_told_after_the_end_of_another_holds(bars: Bars) -> None:
    bars.hear(told(None), now_s=0.0)
    bars.hear(told(Gate.COOLDOWN, 5000, at_ms=NOW_MS + 5), now_s=0.0)

    bars.take_over(Snapshot(at_ms=NOW_MS - 1), server_now_ms=NOW_MS, now_s=0.0)

    assert barring(bars, 0.0) is not None


def test_ending_a_trial_lets_this_worker_ask_again_but_no_rest_ends_by_it(bars: Bars) -> None:
    bars.refused(TARGET, Gate.TRIAL_TAKEN, 1000, now_s=0.0)
    bars.refused(KEY, Gate.COOLDOWN, 1000, now_s=0.0)

    bars.forget_trial((TARGET, KEY))

    assert barring(bars, 0.5) == Refusal(gate=Gate.COOLDOWN, scope="key", retry_after_ms=500)


def test_memory_is_bounded() -> None:
    bars = Bars(max_entries=3)

    for number in range(10):
        bars.hear(told(Gate.COOLDOWN, 5000, record=f"r{number}"), now_s=0.0)
        bars.hear(told(None, record=f"s{number}"), now_s=0.0)

    assert len(bars) <= 3


def test_what_is_not_believed_any_more_bars_nobody(bars: Bars) -> None:
    bars.hear(told(Gate.COOLDOWN, 5000), now_s=0.0)

    bars.clear()

    assert barring(bars, 0.0) is None
