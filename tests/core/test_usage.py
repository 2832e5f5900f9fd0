"""Sums of usage: grouped, filtered, and honest about what nobody knows."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.failure import FailureClass
from cluster_gw.core.usage import (
    FAMILIES,
    OTHER,
    Counts,
    Dimension,
    Place,
    Sums,
    days_of,
    families_in,
    number_of,
    oldest_of,
)

TODAY = date(2026, 12, 1)
PLACES = st.builds(
    Place,
    st.sampled_from([TODAY, date(2026, 11, 30)]),
    st.sampled_from(["app", "app-b"]),
    st.sampled_from(["p/m", "q/n"]),
    st.none() | st.sampled_from(["k", "l"]),
)
USES = st.lists(st.tuples(PLACES, st.integers(0, 99), st.sampled_from(["timeout", "auth"])))


def counts(number: int, family: str) -> Counts:
    return Counts(requests=number, prompt_tokens=2 * number, cache_hits=1, errors={family: number})


@given(uses=USES, by=st.permutations(list(Dimension)).map(lambda order: order[:2]))
def test_groups_add_up_to_the_total(
    uses: list[tuple[Place, int, str]], by: list[Dimension]
) -> None:
    sums = Sums(by)
    for place, number, family in uses:
        sums.add(place, counts(number, family))

    whole = Counts()
    for _, group in sums.groups():
        whole.add(group)
    assert whole == sums.total
    assert sums.total.requests == sum(number for _, number, _ in uses)
    assert {name for name, _ in sums.groups()} == {
        tuple(place.along(dimension) for dimension in by) for place, _, _ in uses
    }


@given(uses=USES)
def test_only_what_is_wanted_is_counted(uses: list[tuple[Place, int, str]]) -> None:
    sums = Sums((Dimension.DAY,), {Dimension.CLIENT: "app", Dimension.KEY: "k"})
    for place, number, family in uses:
        sums.add(place, counts(number, family))

    assert sums.total.cache_hits == sum(
        (place.client, place.key) == ("app", "k") for place, _, _ in uses
    )


def test_an_unknown_price_is_no_cost_at_all_and_a_part_of_it_is_told() -> None:
    assert Counts().cost_usd() == 0
    assert Counts(requests=1, unpriced_requests=1).cost_usd() is None
    assert Counts(requests=2, unpriced_requests=1, nano_usd=1_500_000_000).cost_usd() == 1.5


def test_calls_that_were_broken_off_are_no_errors() -> None:
    assert Counts(errors={"timeout": 2, "auth": 1, "cancelled": 9}).failures() == 3


def test_every_class_of_failures_is_a_family() -> None:
    seen = families_in([Counts(errors={"novel": 1, "auth": 1, "cancelled": 1})])

    assert {*FAMILIES, "cancelled"} == {one.value for one in FailureClass}
    assert seen == [*FAMILIES, "novel"]


def test_names_nobody_can_tell_apart_any_more_are_seen() -> None:
    sums = Sums((Dimension.KEY,))
    sums.add(Place(TODAY, "app", "p/m", "k"), Counts(requests=1))
    assert not sums.has_other

    sums.add(Place(TODAY, OTHER, f"p/{OTHER}", "k"), Counts(requests=1))

    assert sums.has_other


def test_ninety_days_are_kept_with_today() -> None:
    days = days_of(oldest_of(TODAY), TODAY)

    assert (len(days), days[0], days[-1]) == (90, date(2026, 9, 3), TODAY)
    assert number_of(TODAY) == 20261201
