"""The oracle of the shipped rules says what must be barred, what may be, and what may not."""

import pytest

from tests.faults.cases import fault
from tests.faults.standing import Call, Sign, Standing, sign_of

NOW_S = 100.0


def standing(*calls: tuple[str, Sign], at_s: float = NOW_S) -> Standing:
    found = Standing()
    for model, sign in calls:
        found.note("a", Call(model, at_s, sign))
    return found


def test_three_sure_failures_in_a_row_cut_a_model_off_and_a_success_between_them_does_not() -> None:
    failed = ("m", Sign.SURE)

    assert standing(failed, failed, failed).must_be_barred("a", "m", NOW_S)
    assert not standing(failed, failed, ("m", Sign.SUCCESS), failed).must_be_barred("a", "m", NOW_S)
    assert standing(failed, failed).codes_for("a", "m") == set()


def test_three_models_cut_a_provider_off_for_all_others_and_a_success_of_any_forgives() -> None:
    failed = [(name, Sign.SURE) for name in "xyz"]

    assert standing(*failed).must_be_barred("a", "m", NOW_S)
    assert standing(*failed).codes_for("a", "m") == {"provider_open"}
    assert not standing(*failed[:2], ("m", Sign.SUCCESS), failed[2]).codes_for("a", "m")
    assert not standing(*failed).codes_for("b", "m")


def test_what_may_count_may_bar_and_never_must() -> None:
    maybe = standing(*[("m", Sign.MAYBE)] * 3)

    assert maybe.codes_for("a", "m") == {"breaker_open"}
    assert not maybe.must_be_barred("a", "m", NOW_S)


def test_after_what_nobody_knows_anything_may_bar_and_nothing_must() -> None:
    unknown = standing(("m", Sign.SURE), ("m", Sign.SURE), ("m", Sign.SURE), ("m", Sign.UNKNOWN))

    assert unknown.codes_for("a", "m") == {
        *("cooldown", "breaker_open", "key_invalid", "model_retired")
    }
    assert not unknown.must_be_barred("a", "m", NOW_S)


@pytest.mark.parametrize(("later_s", "must"), [(0.0, True), (10.0, False)])
def test_rest_is_certain_only_while_the_shortest_one_lasts(later_s: float, must: bool) -> None:
    rested = standing(("m", Sign.REST))

    assert rested.must_be_barred("a", "m", NOW_S + later_s) is must
    assert rested.codes_for("a", "m") == {"cooldown"}
    assert rested.codes_for("a", "x") == set()


@pytest.mark.parametrize(
    ("faults", "sign"),
    [
        (fault("status", code=503), Sign.SURE),
        (fault("close_without_reply", mode="rst"), Sign.SURE),
        (fault("status", code=429), Sign.REST),
        (fault("status", code=401), Sign.REFUSED),
        (fault("status", code=422), Sign.NEUTRAL),
        (fault("malformed_json", at_frame=1), Sign.MAYBE),
    ],
)
def test_fault_says_what_it_says(faults: tuple[dict[str, object], ...], sign: Sign) -> None:
    assert sign_of(faults) is sign
