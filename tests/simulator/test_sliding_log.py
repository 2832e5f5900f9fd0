from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.simulator.sliding_log import PeakHistory, SlidingLog

steps = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=60)


@given(steps)
def test_total_is_the_sum_of_amounts_younger_than_the_window(steps: list[tuple[int, int]]) -> None:
    log, told, now_s = SlidingLog(60), [], 0
    for gap_s, amount in steps:
        now_s += gap_s
        log.add(now_s, amount)
        told.append((now_s, amount))

        assert log.total(now_s) == sum(a for at, a in told if at > now_s - 60)


@given(steps)
def test_peak_is_the_largest_total_any_window_had(steps: list[tuple[int, int]]) -> None:
    log, history, told, now_s = SlidingLog(60), PeakHistory(60), [], 0
    for gap_s, amount in steps:
        now_s += gap_s
        history.follow(log.add(now_s, amount))
        told.append((now_s, amount))

    sums = [sum(a for at, a in told if end - 60 < at <= end) for end, _ in told]
    assert log.peak == history.peak() == max(sums, default=0)


@given(steps.filter(bool), st.integers(1, 20))
def test_total_is_below_the_limit_after_the_told_wait(
    steps: list[tuple[int, int]], limit: int
) -> None:
    log, now_s = SlidingLog(60), 0.0
    for gap_s, amount in steps:
        now_s += gap_s
        log.add(now_s, amount)

    wait_s = log.wait_s(now_s, limit)

    if wait_s:
        assert log.total(now_s) >= limit
    assert log.total(now_s + wait_s) < limit


def test_entry_of_exactly_the_window_s_age_is_out() -> None:
    log = SlidingLog(60)
    log.add(0.0, 1)

    assert log.total(59.999) == 1
    assert log.total(60.0) == 0


def test_entry_grows_at_the_instant_of_its_arrival() -> None:
    log, history = SlidingLog(60), PeakHistory(60)
    entry = log.add(0.0, 1)
    history.follow(entry)
    history.follow(log.add(30.0, 2))

    log.grow(entry, 10)

    assert log.total(59.0) == 13
    assert log.total(60.0) == 2
    assert history.peak() == 13


def test_growth_after_the_window_is_not_in_the_total() -> None:
    log = SlidingLog(60)
    entry = log.add(0.0, 1)
    assert log.total(61.0) == 0

    log.grow(entry, 10)

    assert log.total(61.0) == 0


def test_a_closed_limit_of_zero_waits_a_whole_window() -> None:
    assert SlidingLog(60).wait_s(0.0, 0) == 60


def test_history_forgets_old_entries_but_not_their_peak() -> None:
    history, log = PeakHistory(60), SlidingLog(60)
    for at_s in range(1000):
        history.follow(log.add(float(at_s), 1 if at_s else 500))

    assert history.peak() == 559
    assert len(history._entries) < 300
