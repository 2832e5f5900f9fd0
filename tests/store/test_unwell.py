"""What a worker remembers of models that are not well, and when it stops."""

from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.unwell import BELIEVED_S, Unwell
from tests.store.clocks import NOW_MS

MODEL = "gw1:m:{p}:m"


def seen(after_ms: int = 0, *, bench_ms: int = 0, failures: int = 0) -> ModelStanding:
    at_ms = NOW_MS + after_ms
    return ModelStanding(
        seen_ms=at_ms, failures=failures, benched_until_ms=at_ms + bench_ms if bench_ms else 0
    )


def test_bench_bars_until_its_end_and_tells_what_is_left() -> None:
    unwell = Unwell()
    unwell.note(MODEL, seen(bench_ms=600_000), 10.0)

    refusal = unwell.barring(MODEL, 70.0)

    assert refusal is not None
    assert (refusal.gate, refusal.scope, refusal.retry_after_ms) == (Gate.BENCH, "model", 540_000)
    assert unwell.barring(MODEL, 610.0) is None
    assert unwell.barring("another", 70.0) is None


def test_bench_of_a_clock_that_ran_ahead_bars_nobody() -> None:
    unwell = Unwell()
    unwell.note(MODEL, seen(bench_ms=40_000_000_000), 0.0)

    assert unwell.barring(MODEL, 0.0) is None
    assert len(unwell) == 0


def test_model_with_failures_is_marked_until_it_is_well() -> None:
    unwell = Unwell()
    unwell.note(MODEL, seen(failures=1), 0.0)
    assert unwell.is_marked(MODEL, 5.0)

    unwell.note(MODEL, seen(1), 6.0)

    assert not unwell.is_marked(MODEL, 6.0)
    assert len(unwell) == 0


def test_mark_that_nobody_renews_is_not_believed_for_ever() -> None:
    unwell = Unwell()
    unwell.note(MODEL, seen(failures=1), 0.0)

    assert not unwell.is_marked(MODEL, BELIEVED_S)
    assert len(unwell) == 0


def test_what_was_seen_earlier_replaces_nothing_later() -> None:
    unwell = Unwell()
    unwell.note(MODEL, seen(2, bench_ms=600_000), 0.0)

    unwell.note_all([MODEL], {}, NOW_MS + 1, 0.1)
    assert unwell.barring(MODEL, 1.0) is not None
    unwell.note_all([MODEL], {}, NOW_MS + 3, 0.2)

    assert unwell.barring(MODEL, 1.0) is None


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    unwell = Unwell(max_entries=2)
    for number in range(3):
        unwell.note(f"m{number}", seen(failures=1), 0.0)

    assert [unwell.is_marked(f"m{number}", 0.0) for number in range(3)] == [False, True, True]
