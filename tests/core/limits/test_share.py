"""Shares of single purses, and what a fleet of workers can spend of one limit in all."""

from collections import deque
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster_gw.core.limits.share import (
    DEAD_AFTER_S,
    FRESH_S,
    SLOTS_END_S,
    MinutePurse,
    PeriodPurse,
    Purse,
    SlotPurse,
    Span,
    Terms,
    divisor_of,
    kept_free,
    known_left,
    purse_for,
)

WINDOW_S = 60
RING_S = 62


def terms(left: int | None, limit: int = 100, workers: int = 5, lost_at_s: float = 0.0) -> Terms:
    return Terms(limit=limit, left=left, divisor=divisor_of(workers), lost_at_s=lost_at_s)


@pytest.mark.parametrize(
    ("left", "workers", "share"),
    [(100, 5, 10), (100, 1, 50), (99, 5, 9), (9, 5, 0), (0, 1, 0), (100, 0, 50), (1000, 5, 10)],
)
def test_share_is_half_of_what_was_left_by_worker(left: int, workers: int, share: int) -> None:
    assert terms(left, workers=workers).of_left == share


@given(
    limit=st.integers(0, 10**6),
    workers=st.integers(1, 200),
    lefts=st.lists(st.integers(0, 10**6), max_size=200),
)
@example(limit=5, workers=3, lefts=[5, 5, 5])
def test_what_is_kept_free_is_enough_for_all_shares_and_never_more_than_half(
    limit: int, workers: int, lefts: list[int]
) -> None:
    shares = [terms(left, limit, workers).of_left for left in lefts[:workers]]

    assert sum(shares) <= kept_free(limit, workers) <= kept_free(limit, 0) == limit // 2


def test_nothing_is_known_of_what_was_heard_long_before_the_loss() -> None:
    assert known_left(100, 30, 5.0, 5.0 + FRESH_S) == 70
    assert known_left(100, 30, 5.0, 5.1 + FRESH_S) is None
    assert known_left(100, 130, 5.0, 5.0) == 0


def test_minute_is_spent_of_what_was_left_first_and_of_the_limit_later() -> None:
    purse, knows = MinutePurse(), terms(50)
    assert purse.room(knows, 1.0) == 5
    purse.take(5, 1.0)

    assert purse.room(knows, 61.9) == 0
    assert purse.room(knows, 62.0) == 5
    assert purse.room(knows, 63.0) == 10


def test_minute_without_knowledge_begins_after_one() -> None:
    assert MinutePurse().room(terms(None), 61.9) == 0
    assert MinutePurse().room(terms(None), 62.0) == 10


def test_day_is_not_refilled_and_starts_anew_when_redis_has_counted_it() -> None:
    purse = PeriodPurse()
    purse.take(10, 3.0)
    assert purse.room(terms(100), 1e6) == 0

    purse.forget()

    assert purse.room(terms(90), 1e6) == 9


def test_tokens_are_corrected_in_the_second_they_were_taken() -> None:
    purse = MinutePurse()
    purse.take(8, 5.0)
    purse.take(1, 9.0)

    purse.correct(-6, 5.0)

    assert purse.room(terms(100), 10.0) == 7
    assert purse.wait_s(10.0) == pytest.approx(57.0)
    assert purse.room(terms(100), 5.0 + RING_S) == 9


def test_correction_of_what_has_left_the_minute_changes_nothing() -> None:
    purse = MinutePurse()
    purse.take(8, 5.0)
    assert purse.room(terms(100), 80.0) == 10

    purse.correct(-6, 5.0)

    assert purse.room(terms(100), 80.0) == 10


def test_slot_comes_back_at_the_end_and_from_leases_of_redis() -> None:
    purse, full = SlotPurse(), terms(0, limit=4)
    assert purse.room(full, 1.0) == 0

    purse.free()
    purse.take(1, 2.0)
    assert purse.room(full, 2.0) == 0
    purse.correct(-1, 2.0)

    assert purse.room(full, 3.0) == 1


def test_slots_that_others_may_have_given_away_are_not_used_beyond_the_share() -> None:
    purse, full = SlotPurse(), terms(0, limit=20)
    for _ in range(5):
        purse.free()

    assert purse.room(full, DEAD_AFTER_S - 0.1) == 5
    assert purse.room(full, DEAD_AFTER_S) == 2
    assert purse.room(terms(20, limit=20), DEAD_AFTER_S) == 2


def test_slots_are_a_share_of_the_limit_once_no_older_lease_can_be_alive() -> None:
    purse = SlotPurse()

    assert purse.room(terms(0, limit=40), SLOTS_END_S - 1) == 0
    assert purse.room(terms(0, limit=40), SLOTS_END_S) == 4


@pytest.mark.parametrize("span", Span)
def test_empty_purse_has_room_for_the_share_and_no_more(span: Span) -> None:
    purse = purse_for(span)
    for _ in range(10):
        assert purse.room(terms(100), 1.0) >= 1
        purse.take(1, 1.0)

    assert purse.room(terms(100), 1.0) == 0


class Counter:
    """The exact sum of the last minute: what Redis counts, and what a provider would see."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()

    def add(self, now_s: float) -> None:
        self.times.append(now_s)

    def sum(self, now_s: float) -> int:
        return sum(1 for at_s in self.times if at_s > now_s - WINDOW_S)


class Worker:
    """One worker with a clock of its own."""

    def __init__(self, offset_s: float, workers: int, limit: int) -> None:
        self.offset_s, self.workers, self.limit = offset_s, workers, limit
        self.purse: Purse = MinutePurse()
        self.used, self.heard_at_s = 0, -1e9
        self.lost_at_s: float | None = None

    def hear(self, used: int, now_s: float) -> None:
        self.used, self.heard_at_s = used, now_s + self.offset_s

    def cut(self, now_s: float) -> None:
        self.lost_at_s = now_s + self.offset_s

    def spend(self, now_s: float) -> bool:
        assert self.lost_at_s is not None
        left = known_left(self.limit, self.used, self.heard_at_s, self.lost_at_s)
        knows = Terms(self.limit, left, divisor_of(self.workers), self.lost_at_s)
        if self.purse.room(knows, now_s + self.offset_s) < 1:
            return False
        self.purse.take(1, now_s + self.offset_s)
        return True


class Fleet:
    """Workers of one limit on one true time line; each is on Redis or by itself."""

    def __init__(self, limit: int, offsets_s: Sequence[float]) -> None:
        self.limit, self.now_s = limit, 1000.0
        self.workers = [Worker(offset, len(offsets_s), limit) for offset in offsets_s]
        self.redis, self.local, self.seen = Counter(), Counter(), Counter()

    def ask(self, chosen: int) -> None:
        """One request, of Redis or of the own share."""
        worker = self.workers[chosen % len(self.workers)]
        if worker.lost_at_s is not None:
            if worker.spend(self.now_s):
                self.local.add(self.now_s)
                self.seen.add(self.now_s)
        elif self.redis.sum(self.now_s) < self.limit:
            self.redis.add(self.now_s)
            self.seen.add(self.now_s)
            worker.hear(self.redis.sum(self.now_s), self.now_s)

    def ask_in_turn(self, steps: Iterable[tuple[float, int]]) -> None:
        """Some requests: how long after the one before, and of whom."""
        for passed_s, chosen in steps:
            self.now_s += passed_s
            self.ask(chosen)

    def cut(self, chosen: int, *, is_current: bool) -> None:
        """A worker loses Redis; whether it has just looked."""
        worker = self.workers[chosen % len(self.workers)]
        if worker.lost_at_s is None:
            if is_current:
                worker.hear(self.redis.sum(self.now_s), self.now_s)
            worker.cut(self.now_s)


FLEETS = st.tuples(st.integers(0, 120), st.lists(st.floats(-600, 600), min_size=1, max_size=6))
ASKS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 1.0, 7.0, 31.0]), st.integers(0, 5)), max_size=120
)
CUTS = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 5)), max_size=6)
MANY = [(0.0, n) for n in range(6)] * 20


@given(fleet=FLEETS, before=ASKS, after=ASKS)
@example(fleet=(60, [0.0, 600.0, -600.0]), before=MANY, after=MANY + [(31.0, 0)] * 3 + MANY)
def test_fleet_without_redis_stays_within_the_limit(
    fleet: tuple[int, list[float]],
    before: list[tuple[float, int]],
    after: list[tuple[float, int]],
) -> None:
    limit, offsets_s = fleet
    all_ = Fleet(limit, offsets_s)
    all_.ask_in_turn(before)
    for chosen in range(len(offsets_s)):
        all_.cut(chosen, is_current=True)

    for passed_s, chosen in after:
        all_.now_s += passed_s
        all_.ask(chosen)
        assert all_.seen.sum(all_.now_s) <= limit
        assert all_.local.sum(all_.now_s) <= limit / 2


@given(fleet=FLEETS, steps=ASKS, cuts=CUTS)
@example(fleet=(60, [0.0, 600.0, -600.0]), steps=MANY + [(31.0, 0)] * 3 + MANY, cuts=[(0, 2)])
def test_partition_adds_at_most_the_shares_of_those_cut_off(
    fleet: tuple[int, list[float]], steps: list[tuple[float, int]], cuts: list[tuple[int, int]]
) -> None:
    limit, offsets_s = fleet
    all_ = Fleet(limit, offsets_s)
    for place, (passed_s, chosen) in enumerate(steps):
        all_.now_s += passed_s
        for cut in [worker for at, worker in cuts if at == place]:
            all_.cut(cut, is_current=True)
        all_.ask(chosen)
        gone = sum(worker.lost_at_s is not None for worker in all_.workers)
        share = limit // divisor_of(len(offsets_s))
        assert all_.local.sum(all_.now_s) <= gone * share
        assert all_.seen.sum(all_.now_s) <= limit + gone * share


@given(fleet=FLEETS, before=ASKS, after=ASKS)
def test_what_others_took_since_one_looked_is_the_most_that_is_added(
    fleet: tuple[int, list[float]],
    before: list[tuple[float, int]],
    after: list[tuple[float, int]],
) -> None:
    limit, offsets_s = fleet
    all_ = Fleet(limit, offsets_s)
    all_.ask_in_turn(before)
    oldest_s = min(worker.heard_at_s - worker.offset_s for worker in all_.workers)
    since = sum(at_s >= oldest_s for at_s in all_.redis.times)
    for chosen in range(len(offsets_s)):
        all_.cut(chosen, is_current=False)

    for passed_s, chosen in after:
        all_.now_s += passed_s
        all_.ask(chosen)
        assert all_.seen.sum(all_.now_s) <= limit + min(since, limit // 2)
