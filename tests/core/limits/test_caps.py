from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.caps import (
    HEAVIEST,
    UNUSED_CAPS,
    WEIGHT_SCALE,
    Caps,
    CapsUse,
    caps_use_at,
    implied_weight,
    overlay_caps,
    scale_weight,
)

COUNTS = st.none() | st.integers(0, 10**12)
CAPS = st.builds(Caps, rpm=COUNTS, rpd=COUNTS, tpd=COUNTS, monthly_tokens=COUNTS)


def test_cap_of_a_minute_alone_needs_no_record_of_days() -> None:
    assert not Caps(rpm=40).needs_record()
    assert not Caps().needs_record()


def test_cap_of_a_day_or_a_month_needs_one() -> None:
    assert Caps(rpd=1).needs_record()
    assert Caps(tpd=1).needs_record()
    assert Caps(monthly_tokens=1).needs_record()


@given(base=CAPS)
def test_who_sets_nothing_leaves_what_was_there(base: Caps) -> None:
    assert overlay_caps(base, Caps()) == base


@given(base=CAPS, own=CAPS)
def test_no_cap_is_ever_zero_once_somebody_set_it(base: Caps, own: Caps) -> None:
    laid = overlay_caps(base, own)

    for name in ("rpm", "rpd", "tpd", "monthly_tokens"):
        said, found = getattr(own, name), getattr(laid, name)
        assert found == (getattr(base, name) if said is None else said or None)


def test_model_whose_day_is_a_third_of_the_cap_weighs_three() -> None:
    assert implied_weight(150_000, 50_000) == 3.0


def test_model_weighs_one_where_nothing_is_known() -> None:
    assert implied_weight(None, 50_000) == implied_weight(150_000, None) == 1.0
    assert implied_weight(150_000, 0) == 1.0


@given(cap=st.integers(1, 10**12), own=st.integers(1, 10**12))
def test_a_model_can_use_its_own_day_but_not_more_than_the_cap(cap: int, own: int) -> None:
    weight = implied_weight(cap, own)

    assert 0 < weight <= HEAVIEST
    assert own * weight <= cap * (1 + 1e-9)


@given(weight=st.floats(0, HEAVIEST))
def test_weights_are_kept_to_a_thousandth(weight: float) -> None:
    assert abs(scale_weight(weight) - weight * WEIGHT_SCALE) <= 0.5


def test_use_ends_with_its_day_and_its_month() -> None:
    numbers = (20260131, 1000, 5, 2500, 202601, 3000, 70, 0)

    before, next_day, next_month = (caps_use_at(numbers, now_ms) for now_ms in (999, 1000, 3000))

    assert before == CapsUse(
        requests_day=5, tokens_day=2.5, tokens_month=70, day_ends_ms=1000, month_ends_ms=3000
    )
    assert next_day == CapsUse(tokens_month=70, month_ends_ms=3000)
    assert next_month == UNUSED_CAPS
