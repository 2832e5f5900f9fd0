import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.catalog import Key
from cluster_gw.core.routing.key_choice import (
    KeyColumns,
    best_first,
    columns_of_keys,
    order_keys,
    roomiest_first,
    scores_of,
)
from cluster_gw.core.routing.posterior import Chance, seed_chance
from cluster_gw.core.routing.prior import Prior
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.units import KeyId
from tests.pipeline.catalogs import make_key, make_route


@given(count=st.integers(0, 6), rotation=st.integers(0, 10**9))
def test_rotation_keeps_every_key_and_moves_the_start(count: int, rotation: int) -> None:
    keys = tuple(make_key(f"k{n}") for n in range(count))
    route = make_route("m", keys=keys)

    ordered = order_keys(route, rotation)

    assert sorted(k.id for k in ordered) == sorted(k.id for k in keys)
    if count:
        assert ordered[0] is keys[rotation % count]


def placed(keys: Sequence[Key], columns: KeyColumns | None, chance: Chance | None) -> list[int]:
    return best_first(scores_of(keys, columns, chance), len(keys))


GOOD = Statistics(90.0, 10.0, 0.0, 5400.0, 90_000.0)  # 60 tokens a second
BAD = Statistics(10.0, 90.0)


def of_keys(*known: Statistics) -> tuple[tuple[Key, ...], KeyColumns | None]:
    keys = tuple(make_key(f"k{n}") for n in range(len(known)))
    route = make_route("m", keys=keys)
    return keys, columns_of_keys(route, {k.id: s for k, s in zip(keys, known, strict=True)})


def test_a_key_scores_three_parts_reliability_and_one_part_speed() -> None:
    _, columns = of_keys(GOOD, BAD, NO_STATISTICS)
    assert columns is not None

    speed = 1 - 1 / math.e
    assert columns.scores(None).tolist() == pytest.approx(
        [
            0.75 * 91 / 102 + 0.25 * speed,
            0.75 * 11 / 102 + 0.25 * 0.6,
            0.75 * 0.5 + 0.25 * 0.6,
        ]
    )


def test_what_others_saw_of_the_route_counts_for_each_of_its_keys() -> None:
    keys = (make_key("a"), make_key("b"))
    route = msgspec.structs.replace(make_route("m", keys=keys), prior=Prior(9.0, 1.0))

    columns = columns_of_keys(route, {key.id: GOOD for key in keys})

    assert columns is not None
    assert columns.alpha.tolist() == [100.0, 100.0]
    assert columns.beta.tolist() == [12.0, 12.0]


@pytest.mark.parametrize("known", [(), (GOOD,), (GOOD, NO_STATISTICS), (NO_STATISTICS,) * 3])
def test_turns_decide_until_two_keys_have_been_used(known: tuple[Statistics, ...]) -> None:
    keys, columns = of_keys(*known)

    assert columns is None
    assert placed(keys, columns, seed_chance(1)) == list(range(len(keys)))


def test_the_better_key_goes_first_and_the_unknown_one_now_and_then() -> None:
    keys, columns = of_keys(BAD, GOOD, NO_STATISTICS)
    chance = seed_chance(4)

    firsts = [placed(keys, columns, chance)[0] for _ in range(400)]

    assert firsts.count(0) == 0
    assert 5 < firsts.count(2) < 200


def test_the_order_is_by_score_whatever_the_turn() -> None:
    keys, columns = of_keys(GOOD, BAD, NO_STATISTICS)
    turned = (keys[1], keys[2], keys[0])

    order = placed(turned, columns, None)

    assert [turned[place].id for place in order] == ["k0", "k2", "k1"]


def test_keys_that_the_snapshot_does_not_know_leave_the_turn_as_it_is() -> None:
    _, columns = of_keys(GOOD, BAD)

    assert placed((make_key("new"), make_key("k0")), columns, None) == [0, 1]


def test_the_roomiest_key_goes_first_and_an_unknown_one_counts_as_half() -> None:
    keys = tuple(make_key(f"k{n}") for n in range(4))
    remaining = dict(zip([k.id for k in keys], (0.2, None, 0.9, 0.5), strict=True))

    assert roomiest_first(keys, [0, 1, 2, 3], remaining) == [2, 1, 3, 0]
    assert roomiest_first(keys, [3, 2, 1, 0], remaining) == [2, 3, 1, 0]


def test_keys_of_one_account_have_the_same_room() -> None:
    pool = tuple(msgspec.structs.replace(make_key(name), account="shared") for name in ("a", "b"))
    remaining: dict[KeyId, float | None] = {pool[0].id: 0.1, pool[1].id: 0.9}

    assert roomiest_first(pool, [0, 1], remaining) == [0, 1]
