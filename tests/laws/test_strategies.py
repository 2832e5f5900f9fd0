"""Laws of every strategy in the table; a new one joins by being in it."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import PRESETS, Tuning
from cluster_gw.core.routing.prior import capped_prior
from cluster_gw.core.routing.ranking import total_score
from cluster_gw.core.routing.signals import Bar
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.core.routing.sticky_policy import StickyPolicy
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import RouteId
from tests.core.routing.pool import NOON_S, Known, Pool, places

Name = tuple[str, str]

NAMES = pytest.mark.parametrize("name", sorted(STRATEGIES), ids="-".join)
SCORED = pytest.mark.parametrize("name", sorted(set(STRATEGIES) & set(PRESETS)), ids="-".join)
LAW = settings(max_examples=50)  # of each strategy; routes are many numbers, dear to make up
COUNTS = st.floats(0, 1000)
BARS = (
    None,
    Bar(gate=Gate.COOLDOWN, until_s=NOON_S + 9),
    Bar(gate=Gate.BREAKER_OPEN, until_s=NOON_S - 1),
)
STATISTICS = st.builds(
    Statistics,
    successes=COUNTS,
    failures=COUNTS,
    timeouts=COUNTS,
    output_tokens=st.floats(0, 1e6),
    latency_ms=st.floats(0, 1e7),
    first_byte_ms=st.floats(0, 1e7),
    first_bytes=COUNTS,
)
KNOWN = st.builds(
    Known,
    tier=st.integers(0, 1),
    weight=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    intelligence=st.floats(-1000, 4000),
    statistics=STATISTICS,
    headroom=st.floats(0, 1),
    points=st.floats(0, 10),
    prior=st.builds(capped_prior, COUNTS, COUNTS),
    tools=st.booleans(),
    bar=st.sampled_from(BARS),
    half_open=st.booleans(),
    quality=st.none() | st.floats(0, 1),
)
POOLS = st.lists(KNOWN, max_size=6)
PROMPTS = st.sampled_from(["", "x", "hi", "stable"])


ASKED = given(
    known=POOLS,
    cursor=st.integers(0, 10**9),
    seed=st.integers(0, 10**9),
    fnv=st.booleans(),
    prompt=PROMPTS,
)


def pool_of(name: Name, known: list[Known], *, fnv: bool = False) -> Pool:
    if not fnv:
        return Pool(known, name[1], name[0])
    return Pool(known, name[1], name[0], tuning=Tuning(is_fnv=True))


@NAMES
@LAW
@ASKED
def test_a_ranking_is_a_permutation_of_the_candidates_by_tier(
    name: Name, known: list[Known], cursor: int, seed: int, fnv: bool, prompt: str
) -> None:
    pool = pool_of(name, known, fnv=fnv)

    order = pool.rank(seed_chance(seed), cursor=cursor, prompt=prompt)

    assert sorted(places(order)) == list(range(len(known)))
    assert [c.match_tier for c in order.candidates] == sorted(one.tier for one in known)


@NAMES
@LAW
@ASKED
def test_the_same_inputs_and_seed_give_the_same_ranking(
    name: Name, known: list[Known], cursor: int, seed: int, fnv: bool, prompt: str
) -> None:
    one, other = (
        pool_of(name, known, fnv=fnv).told(seed_chance(seed), cursor=cursor, prompt=prompt)
        for _ in range(2)
    )

    assert one == other


@NAMES
@LAW
@given(known=POOLS, seed=st.integers(0, 10**9), fnv=st.booleans(), prompt=PROMPTS)
def test_every_place_has_a_reason_and_a_score_that_can_be_recomputed(
    name: Name, known: list[Known], seed: int, fnv: bool, prompt: str
) -> None:
    order = pool_of(name, known, fnv=fnv).rank(seed_chance(seed), prompt=prompt)

    for place, ranked in enumerate(order.tell()):
        assert ranked.reasons
        assert ranked.candidate is order.candidates[place]
        assert ranked.score == order.score_at(place)
        assert ranked.score is None or ranked.score == total_score(ranked)


@NAMES
@LAW
@given(known=POOLS, seed=st.integers(0, 10**9))
def test_an_excluded_route_never_appears(name: Name, known: list[Known], seed: int) -> None:
    pool = pool_of(name, known)

    ranking = make_ranking(pool.context(tools=True), pool.inputs(seed_chance(seed)))

    assert all(candidate.route.tools for candidate in ranking.candidates)
    assert len(ranking.candidates) + len(ranking.excluded) == len(known)
    assert [one.candidate for one in ranking.ranked] == list(ranking.candidates)


@NAMES
@LAW
@given(
    known=POOLS,
    seed=st.integers(0, 10**9),
    explored=st.floats(0, 1),
    pinned=st.integers(0, 6),
    hundreds=st.integers(0, 5),
)
def test_nothing_that_moves_a_route_moves_it_out_of_its_tier(
    name: Name,
    known: list[Known],
    seed: int,
    explored: float,
    pinned: int,
    hundreds: int,
) -> None:
    some = [
        msgspec.structs.replace(one, window=1500 if place % 2 else None)
        for place, one in enumerate(known)
    ]
    tuning = Tuning(explore_unmeasured=explored, exploration=explored)
    pool = Pool(some, name[1], name[0], tuning=tuning, sticky=StickyPolicy(enabled=True))
    inputs = pool.inputs(seed_chance(seed), pinned=RouteId(f"p/m{pinned}"))

    ranking = make_ranking(pool.context(characters=hundreds * 400), inputs)

    tiers = [candidate.match_tier for candidate in ranking.candidates]
    assert tiers == sorted(tiers)


@NAMES
@LAW
@given(
    pinned=KNOWN,
    others=st.lists(KNOWN, max_size=4),
    seed=st.integers(0, 10**9),
    is_hard=st.booleans(),
)
def test_a_pin_that_holds_leads_its_tier_and_nothing_else_is_tried_there(
    name: Name, pinned: Known, others: list[Known], seed: int, is_hard: bool
) -> None:
    pinned = msgspec.structs.replace(pinned, tools=True, bar=None, points=0.0)
    rival = Known(tier=pinned.tier)  # nobody has asked it yet: what a try would go to
    sticky = StickyPolicy(enabled=True, is_hard=is_hard, min_headroom=0.0)
    tuning = Tuning(explore_unmeasured=1.0, exploration=1.0)
    pool = Pool([*others, rival, pinned], name[1], name[0], tuning=tuning, sticky=sticky)
    inputs = pool.inputs(seed_chance(seed), pinned=pool.candidates[-1].route.id)

    ranking = make_ranking(pool.context(tools=True), inputs)

    mates = [one for one in ranking.candidates if one.match_tier == pinned.tier]
    tried = {move.route for move in ranking.moves if move.reason.startswith("explore")}
    assert mates[0] is pool.candidates[-1]
    assert not tried & {one.route.id for one in mates}


@SCORED
@LAW
@given(known=POOLS, seed=st.integers(0, 10**9))
def test_scores_are_numbers_made_of_ratios_and_weights_that_sum_to_one(
    name: Name, known: list[Known], seed: int
) -> None:
    for ranked in pool_of(name, known).told(seed_chance(seed)):
        numbers = [ranked.score, ranked.base, *(m.value for m in ranked.multipliers)]
        assert all(number is not None and math.isfinite(number) for number in numbers)
        assert all(0 <= factor.value <= 1 for factor in ranked.factors)
        assert sum(factor.weight for factor in ranked.factors) == pytest.approx(1.0)
        assert ranked.base == pytest.approx(sum(f.value * f.weight for f in ranked.factors))


@SCORED
@LAW
@given(known=POOLS, seed=st.integers(0, 10**9))
def test_scored_places_are_by_tier_then_score(name: Name, known: list[Known], seed: int) -> None:
    told = pool_of(name, known).told(seed_chance(seed))

    keys = [(ranked.candidate.match_tier, -(ranked.score or 0.0)) for ranked in told]
    assert keys == sorted(keys)


@NAMES
@LAW
@given(known=st.lists(KNOWN, min_size=1, max_size=6), more=st.floats(0, 1000), data=st.data())
def test_more_successes_never_move_a_route_back(
    name: Name, known: list[Known], more: float, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(known) - 1))
    had = known[number].statistics
    has = msgspec.structs.replace(had, successes=had.successes + more)
    better = [*known]
    better[number] = msgspec.structs.replace(known[number], statistics=has)

    before, after = (places(pool_of(name, one).rank()).index(number) for one in (known, better))

    assert after <= before


@SCORED
@LAW
@given(known=POOLS, seed=st.integers(0, 10**9))
def test_a_zeroed_route_is_never_first_while_another_of_its_tier_is_there(
    name: Name, known: list[Known], seed: int
) -> None:
    order = pool_of(name, known).rank(seed_chance(seed))

    best = [c for c in order.candidates if c.match_tier == order.candidates[0].match_tier]
    if any(candidate.route.weight > 0 for candidate in best):
        assert best[0].route.weight > 0


@given(size=st.integers(1, 8), start=st.integers(0, 10**6))
def test_round_robin_gives_every_member_the_first_place_once_per_cycle(
    size: int, start: int
) -> None:
    pool = pool_of(("classic", "round-robin"), [Known()] * size)

    firsts = [places(pool.rank(cursor=start + n))[0] for n in range(size)]

    assert sorted(firsts) == list(range(size))


def test_priority_keeps_the_declared_order() -> None:
    pool = pool_of(("classic", "priority"), [Known(points=9.0), Known(), Known()])

    assert places(pool.rank(cursor=17)) == [0, 1, 2]
