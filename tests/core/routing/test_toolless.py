"""Models that have refused tools lately come last, and only for requests that have tools."""

import msgspec

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import Tuning
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.sticky_policy import StickyPolicy
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import RouteId
from tests.core.routing.pool import Known, Pool

REFUSED = frozenset({("p", "m0")})
PRIORITY = ("priority", "classic")


def ranking(pool: Pool, *, tools: bool = True, **inputs: object) -> Ranking:
    given = msgspec.structs.replace(
        pool.inputs(seed_chance(1)),
        toolless=REFUSED,
        **inputs,
    )
    return make_ranking(pool.context(tools=tools), given)


def numbers(candidates: tuple[Candidate, ...]) -> list[int]:
    return [candidate.position for candidate in candidates]


def test_model_that_refused_tools_is_last_of_its_tier_and_says_why() -> None:
    found = ranking(Pool([Known(), Known(), Known(tier=1)], *PRIORITY))

    assert numbers(found.candidates) == [1, 0, 2]
    assert "refused tools lately" in found.ranked[1].reasons


def test_requests_without_tools_are_ranked_as_ever() -> None:
    found = ranking(Pool([Known(), Known()], *PRIORITY), tools=False)

    assert (numbers(found.candidates), found.moves) == ([0, 1], ())


def test_pin_on_it_yields() -> None:
    pool = Pool([Known(), Known()], *PRIORITY, sticky=StickyPolicy(enabled=True))

    found = ranking(pool, pinned=RouteId("p/m0"))

    assert numbers(found.candidates) == [1, 0]
    assert "pin on p/m0 yields: refused tools lately" in found.ranked[0].reasons


def test_no_try_is_spent_on_it() -> None:
    tuning = Tuning(explore_unmeasured=1.0, exploration=1.0)
    for name in (("balanced", "bandit"), ("smart", "classic")):
        found = ranking(Pool([Known(), Known()], *name, tuning=tuning))

        tried = [move.route for move in found.moves if move.reason.startswith("explore")]
        assert tried == ["p/m1"]
        assert numbers(found.candidates) == [1, 0]
