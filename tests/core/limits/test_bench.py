import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.bench import Bench, BenchPolicy, book, is_benched, succeed

T0 = 1_795_000_000_000
POLICY = BenchPolicy()


def fail(
    bench: Bench, lease: str, now_ms: int, *, lease_ms: int = 1, key: str | None = None
) -> tuple[Bench, bool]:
    """One failure, of a key of its own unless one is named."""
    return book(bench, lease, key or lease, POLICY, reserved_at_ms=now_ms - lease_ms, now_ms=now_ms)


def benched(now_ms: int = T0) -> Bench:
    bench = Bench()
    for number in range(3):
        bench, _ = fail(bench, f"lease-{number}", now_ms)
    return bench


def test_third_failure_within_the_time_benches_and_says_so_once() -> None:
    bench, crossings = Bench(), []
    for number, at_ms in enumerate([T0, T0 + 400_000, T0 + 899_999]):
        bench, crossed = fail(bench, f"lease-{number}", at_ms)
        crossings.append(crossed)

    assert crossings == [False, False, True]
    assert bench == Bench(until_ms=T0 + 899_999 + 600_000, set_at_ms=T0 + 899_999)


def test_failures_of_one_key_alone_bench_nothing() -> None:
    bench = Bench()
    for number in range(10):
        bench, crossed = fail(bench, f"lease-{number}", T0, key="dead")
        assert not crossed

    assert [failure.lease for failure in bench.failures] == ["lease-7", "lease-8", "lease-9"]
    assert fail(bench, "other", T0, key="other")[1]


def test_single_failure_benches_where_one_is_enough() -> None:
    policy = BenchPolicy(failures=1)

    assert book(Bench(), "a", "k", policy, reserved_at_ms=T0 - 1, now_ms=T0)[1]


def test_failures_that_are_too_old_do_not_count() -> None:
    bench, _ = fail(Bench(), "a", T0)
    bench, _ = fail(bench, "b", T0 + 1)
    bench, crossed = fail(bench, "c", T0 + 900_001)

    assert not crossed
    assert [failure.lease for failure in bench.failures] == ["c"]


def test_same_failure_booked_twice_counts_once() -> None:
    bench, _ = fail(Bench(), "a", T0)
    bench, _ = fail(bench, "a", T0 + 1)
    bench, crossed = fail(bench, "b", T0 + 2)

    assert not crossed


def test_failures_that_began_before_the_bench_do_not_count() -> None:
    bench = benched()
    for number in range(10):
        bench, crossed = fail(bench, f"late-{number}", T0 + 5000, lease_ms=5000)
        assert not crossed

    assert bench.failures == ()


def test_success_clears_failures_and_leaves_the_bench() -> None:
    bench, _ = fail(benched(), "later", T0 + 700_000)
    bench = succeed(bench, reserved_at_ms=T0 + 700_001, now_ms=T0 + 700_002)

    assert bench.failures == ()
    assert bench.until_ms == T0 + 600_000


def test_success_from_before_the_bench_clears_nothing() -> None:
    bench, _ = fail(benched(), "later", T0 + 700_000)

    assert succeed(bench, reserved_at_ms=T0, now_ms=T0 + 700_002) == bench


@pytest.mark.parametrize(("after_ms", "rests"), [(0, True), (599_999, True), (600_000, False)])
def test_bench_ends_by_itself(after_ms: int, *, rests: bool) -> None:
    assert is_benched(benched(), T0 + after_ms) is rests


def test_bench_of_a_clock_that_ran_ahead_is_over() -> None:
    ahead = benched(T0 + 10 * 31_536_000_000)
    counted, _ = fail(ahead, "later", T0)

    assert not is_benched(ahead, T0)
    assert len(counted.failures) == 1


@given(
    gaps_ms=st.lists(st.integers(0, 300_000), min_size=1, max_size=25),
    for_s=st.sampled_from([60.0, 600.0, 3600.0]),
)
def test_no_later_bench_is_shorter(gaps_ms: list[int], for_s: float) -> None:
    bench, now_ms = Bench(), T0
    for number, gap_ms in enumerate(gaps_ms):
        now_ms += gap_ms
        policy = BenchPolicy(for_s=for_s if number % 2 else 60.0)
        after, crossed = book(
            bench, str(number), str(number), policy, reserved_at_ms=now_ms, now_ms=now_ms
        )

        assert not is_benched(bench, now_ms) or after.until_ms >= bench.until_ms
        assert not crossed or (is_benched(after, now_ms) and after.failures == ())
        bench = after
