import pytest

from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.admission import Refusal
from cluster_gw.store.refusals import Refusals


def refusal(gate: Gate = Gate.RPM, retry_after_ms: int = 5_000) -> Refusal:
    return Refusal(gate=gate, scope="model", retry_after_ms=retry_after_ms)


@pytest.fixture
def refusals() -> Refusals:
    return Refusals()


def test_refused_subject_is_barred_until_its_gate_may_open(refusals: Refusals) -> None:
    refusals.remember("w", refusal(retry_after_ms=300), demand_tokens=10, now_s=100.0)

    assert refusals.barring("w", demand_tokens=1, now_s=100.1) == refusal(retry_after_ms=200)
    assert refusals.barring("w", demand_tokens=1, now_s=100.3) is None
    assert len(refusals) == 0


def test_refusal_is_believed_for_a_second_at_most_but_tells_the_whole_wait(
    refusals: Refusals,
) -> None:
    refusals.remember("w", refusal(retry_after_ms=60_000), demand_tokens=10, now_s=100.0)

    assert refusals.barring("w", demand_tokens=1, now_s=100.9) == refusal(retry_after_ms=59_100)
    assert refusals.barring("w", demand_tokens=1, now_s=101.0) is None


def test_other_subjects_are_not_barred(refusals: Refusals) -> None:
    refusals.remember("w", refusal(), demand_tokens=10, now_s=100.0)

    assert refusals.barring("v", demand_tokens=10, now_s=100.0) is None


@pytest.mark.parametrize("gate", [Gate.TPM, Gate.TPD])
def test_token_gate_bars_only_demands_at_least_as_large(refusals: Refusals, gate: Gate) -> None:
    refusals.remember("w", refusal(gate), demand_tokens=500, now_s=100.0)

    assert refusals.barring("w", demand_tokens=499, now_s=100.0) is None
    assert refusals.barring("w", demand_tokens=500, now_s=100.0) == refusal(gate)


def test_too_large_demand_is_barred_for_a_second_though_it_has_no_wait(refusals: Refusals) -> None:
    refusals.remember("w", refusal(Gate.TOO_LARGE, 0), demand_tokens=500, now_s=100.0)

    assert refusals.barring("w", demand_tokens=600, now_s=100.5) == refusal(Gate.TOO_LARGE, 0)
    assert refusals.barring("w", demand_tokens=499, now_s=100.5) is None


def test_smaller_refused_demand_stays_remembered(refusals: Refusals) -> None:
    refusals.remember("w", refusal(Gate.TPM), demand_tokens=100, now_s=100.0)
    refusals.remember("w", refusal(Gate.TPM), demand_tokens=900, now_s=100.1)

    assert refusals.barring("w", demand_tokens=100, now_s=100.2) is not None


def test_request_gate_and_token_gate_are_remembered_side_by_side(refusals: Refusals) -> None:
    refusals.remember("w", refusal(Gate.TPM), demand_tokens=100, now_s=100.0)
    refusals.remember("w", refusal(Gate.RPM, 100), demand_tokens=5, now_s=100.0)

    assert refusals.barring("w", demand_tokens=1, now_s=100.0) == refusal(Gate.RPM, 100)
    assert refusals.barring("w", demand_tokens=1, now_s=100.2) is None
    assert refusals.barring("w", demand_tokens=100, now_s=100.2) is not None


def test_freed_slot_ends_a_refusal_for_concurrency_and_no_other(refusals: Refusals) -> None:
    refusals.remember("w", refusal(Gate.CONCURRENCY), demand_tokens=1, now_s=100.0)
    refusals.remember("v", refusal(Gate.RPM), demand_tokens=1, now_s=100.0)

    refusals.forget_slot("w")
    refusals.forget_slot("v")
    refusals.forget_slot("unknown")

    assert refusals.barring("w", demand_tokens=1, now_s=100.0) is None
    assert refusals.barring("v", demand_tokens=1, now_s=100.0) is not None


def test_memory_is_bounded_and_forgets_the_oldest(refusals: Refusals) -> None:
    bounded = Refusals(max_entries=10)
    for number in range(100):
        bounded.remember(number, refusal(), demand_tokens=1, now_s=100.0)

    assert len(bounded) <= 10
    assert bounded.barring(99, demand_tokens=1, now_s=100.0) is not None
    assert bounded.barring(0, demand_tokens=1, now_s=100.0) is None
