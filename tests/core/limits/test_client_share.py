from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.client_share import share_of
from cluster_gw.core.limits.windows import Limits

COUNTS = st.integers(0, 10**12)


def test_each_limit_of_requests_and_tokens_is_divided_and_slots_are_not() -> None:
    whole = Limits(rpm=30, rpd=1001, tpm=12_000, tpd=99_999, concurrency=4)

    assert share_of(whole, 0.5) == Limits(rpm=15, rpd=500, tpm=6000, tpd=49_999)


def test_what_is_not_limited_stays_so() -> None:
    assert share_of(Limits(concurrency=4), 0.5).is_unlimited()


@pytest.mark.parametrize(("limit", "part"), [(0, 0), (1, 1), (2, 1), (9, 1), (10, 1), (11, 1)])
def test_a_request_is_left_wherever_the_key_has_one(limit: int, part: int) -> None:
    assert share_of(Limits(rpm=limit, rpd=limit), 0.1) == Limits(rpm=part, rpd=part)


def test_tokens_have_no_such_floor() -> None:
    assert share_of(Limits(tpm=9, tpd=10), 0.1) == Limits(tpm=0, tpd=1)


@given(percent=st.integers(1, 99), limit=COUNTS)
def test_a_ratio_is_the_number_that_was_written(percent: int, limit: int) -> None:
    assert share_of(Limits(tpm=limit), percent / 100).tpm == limit * percent // 100


@given(ratio=st.floats(0, 1, exclude_min=True), limit=st.integers(2, 10**12))
def test_share_is_never_above_its_ratio_but_for_the_one_request(ratio: float, limit: int) -> None:
    part = share_of(Limits(rpm=limit, tpm=limit), ratio)

    assert part.tpm is not None
    assert part.tpm <= limit * Fraction(str(ratio)) < part.tpm + 1
    assert part.rpm == max(1, part.tpm)


@given(limits=st.builds(Limits, rpm=COUNTS, rpd=COUNTS, tpm=COUNTS, tpd=COUNTS))
def test_all_of_it_is_the_limit_itself(limits: Limits) -> None:
    assert share_of(limits, 1.0) == limits
