import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.model_status import (
    TRIED_AGAIN_MS,
    WITHIN_MS,
    ModelRecord,
    ModelStatus,
    book_proof,
    book_success,
)

NOW_MS = 1_796_000_000_000
SUSPECTED, RETIRED = ModelStatus.SUSPECTED, ModelStatus.RETIRED
PROOFS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2 * WITHIN_MS)), max_size=10)


def proven(*proofs: tuple[str, str, int]) -> ModelRecord | None:
    """What is known after these proofs: kind, request, at which ms."""
    record = None
    for proof, request, at_ms in proofs:
        record = book_proof(record, proof, request, "removed", NOW_MS + at_ms)
    return record


@pytest.mark.parametrize(
    ("proofs", "status"),
    [
        ([("definitive", "a", 0)], RETIRED),
        ([("probable", "a", 0)], SUSPECTED),
        ([("probable", "a", 0), ("probable", "a", 5)], SUSPECTED),
        ([("probable", "a", 0), ("probable", "b", 5)], RETIRED),
        ([("probable", "a", 0), ("probable", "b", WITHIN_MS)], RETIRED),
        ([("probable", "a", 0), ("probable", "b", WITHIN_MS + 1)], SUSPECTED),
        ([("probable", "a", 0), ("definitive", "a", 5)], RETIRED),
        ([("probable", "a", 0), ("probable", "b", 5), ("probable", "c", 10**9)], RETIRED),
    ],
)
def test_two_requests_within_an_hour_or_one_clear_word_retire_a_model(
    proofs: list[tuple[str, str, int]], status: ModelStatus
) -> None:
    record = proven(*proofs)

    assert record is not None
    assert record.status is status


@given(proofs=PROOFS)
def test_one_request_alone_never_retires_by_probable_proofs(proofs: list[tuple[str, int]]) -> None:
    record, now_ms = None, NOW_MS
    for _, step_ms in proofs:
        now_ms += step_ms
        record = book_proof(record, "probable", "a", "removed", now_ms)

    assert record is None or record.status is SUSPECTED


@given(proofs=PROOFS)
def test_retired_model_stays_so_until_it_answers(proofs: list[tuple[str, int]]) -> None:
    record, now_ms = proven(("definitive", "z", 0)), NOW_MS
    for request, step_ms in proofs:
        now_ms += step_ms
        record = book_proof(record, "probable", request, "removed", now_ms)

    assert record is not None
    assert record.status is RETIRED
    assert book_success(record, now_ms) is None


def test_answer_to_an_older_request_proves_nothing() -> None:
    record = proven(("definitive", "a", 0))

    assert book_success(record, NOW_MS - 1) is record
    assert book_success(record, NOW_MS) is None
    assert book_success(None, NOW_MS) is None


def test_retired_model_is_tried_again_a_day_after_the_last_proof() -> None:
    record = proven(("definitive", "a", 0))

    assert record is not None
    assert record.bars(NOW_MS)
    assert record.bars(NOW_MS + TRIED_AGAIN_MS - 1)
    assert not record.bars(NOW_MS + TRIED_AGAIN_MS)
    assert not record.bars(NOW_MS - 1)  # the clock stepped back: better try than bar for ever


def test_suspected_model_is_used_on() -> None:
    record = proven(("probable", "a", 0))

    assert record is not None
    assert not record.bars(NOW_MS)
