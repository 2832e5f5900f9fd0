"""Pins: a run or a session stays where it was, and says why when it does not."""

from typing import Any, Final

import pytest

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.catalog import Exclusion, ExclusionCode, epoch_of
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import Tuning
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.signals import Bar
from cluster_gw.core.routing.stickiness import may_be_pinned, pin_key, stay
from cluster_gw.core.routing.sticky_policy import RUN, SESSION, StickyPolicy
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import ClientId, RouteId
from tests.core.routing.pool import NOON_S, Known, Pool
from tests.pipeline.catalogs import make_request

HARD: Final = StickyPolicy(enabled=True, scope=RUN, is_hard=True, min_headroom=0.1)
PREFER: Final = StickyPolicy(enabled=True, scope=SESSION, is_hard=False, min_headroom=0.1)
LAST: Final = RouteId("p/m2")


def ranking(
    known: list[Known], policy: StickyPolicy = HARD, *, tuning: Tuning | None = None, seed: int = 1
) -> Ranking:
    pool = Pool(known, "smart", "classic", sticky=policy, tuning=tuning)
    inputs = pool.inputs(seed_chance(seed), pinned=LAST)
    return make_ranking(pool.context(), inputs)


def leader(made: Ranking) -> str:
    return made.candidates[0].route.id


def test_pinned_route_goes_first_and_says_so() -> None:
    made = ranking([Known(), Known(), Known(points=9.0)])

    assert leader(made) == LAST
    assert "sticky" in made.ranked[0].reasons


def test_nothing_is_explored_over_a_pin() -> None:
    explore = Tuning(exploration=1.0)

    leaders = {leader(ranking([Known()] * 3, tuning=explore, seed=n)) for n in range(30)}

    assert leaders == {LAST}


@pytest.mark.parametrize(
    ("known", "policy", "why"),
    [
        (Known(bar=Bar(gate=Gate.COOLDOWN, until_s=NOON_S + 60)), HARD, "cooldown"),
        (Known(bar=Bar(gate=Gate.BREAKER_OPEN, until_s=NOON_S + 60)), HARD, "breaker_open"),
        (Known(headroom=0.09), HARD, "headroom 0.090"),
        (Known(points=2.0), PREFER, "penalty 2"),
    ],
)
def test_pin_yields_and_says_why(known: Known, policy: StickyPolicy, why: str) -> None:
    made = ranking([Known(), Known(), known], policy)

    assert leader(made) != LAST
    assert f"pin on {LAST} yields: {why}" in made.ranked[0].reasons


@pytest.mark.parametrize(
    ("known", "policy"),
    [
        (Known(bar=Bar(gate=Gate.COOLDOWN, until_s=NOON_S - 1)), HARD),
        (Known(headroom=0.1), HARD),
        (Known(points=2.0), HARD),
        (Known(half_open=True), PREFER),
    ],
)
def test_pin_holds_as_long_as_it_can(known: Known, policy: StickyPolicy) -> None:
    assert leader(ranking([Known(), Known(), known], policy)) == LAST


def test_pin_on_a_route_that_cannot_serve_names_what_it_lacks() -> None:
    pool = Pool([Known()] * 3, "smart", "classic", sticky=HARD)
    *able, unable = pool.candidates
    excluded = [Exclusion(route=unable.route, code=ExclusionCode.NO_TOOLS, detail="")]

    stayed = stay(tuple(able), excluded, LAST, HARD, pool.signals, NOON_S)
    gone = stay(tuple(able), (), RouteId("p/other"), HARD, pool.signals, NOON_S)

    assert [one.move and one.move.reason for one in (stayed, gone)] == [
        f"pin on {LAST} yields: no_tools",
        "pin on p/other yields: gone",
    ]
    assert not stayed.holds
    assert not gone.holds


def test_pin_moves_its_route_within_its_tier_only() -> None:
    pool = Pool([Known(), Known(tier=1), Known(tier=1)], "smart", "classic", sticky=HARD)

    stayed = stay(pool.candidates, (), LAST, HARD, pool.signals, NOON_S)

    assert [one.position for one in stayed.candidates] == [0, 2, 1]
    assert not stayed.holds


def context(
    policy: StickyPolicy,
    known: int = 2,
    *,
    run_label: str | None = None,
    session_label: str | None = None,
    **words: Any,
) -> RouteContext:
    pool = Pool([Known()] * known, "smart", "classic", sticky=policy)
    return build_context(
        make_request(**words),
        pool.resolved,
        ClientId("c"),
        run_label=run_label,
        session_label=session_label,
    )


def test_run_is_its_label_or_else_the_beginning_of_the_prompt() -> None:
    by_label = pin_key(context(HARD, run_label="r1", first_user_text="a"))
    same_label = pin_key(context(HARD, run_label="r1", first_user_text="b"))
    by_text = pin_key(context(HARD, system_text="s", first_user_text="a"))

    assert by_label == same_label
    assert by_text == pin_key(context(HARD, system_text="s", first_user_text="a"))
    assert len({by_label, by_text, pin_key(context(HARD, first_user_text="a"))}) == 3


def test_session_is_its_label_or_else_the_first_user_text() -> None:
    by_text = pin_key(context(PREFER, system_text="s", first_user_text="a"))

    assert by_text == pin_key(context(PREFER, system_text="other", first_user_text="a"))
    assert by_text != pin_key(context(PREFER, session_label="x", first_user_text="a"))


def test_two_clients_never_share_a_pin() -> None:
    mine = context(HARD, run_label="r1")
    theirs = build_context(mine.request, mine.resolved, ClientId("d"), run_label="r1")

    assert pin_key(mine) != pin_key(theirs)


@pytest.mark.parametrize(
    "without",
    [
        context(StickyPolicy(enabled=False), run_label="r1"),
        context(HARD, known=1, run_label="r1"),
        context(HARD),
        context(PREFER),
    ],
    ids=["off", "no choice", "no run", "no session"],
)
def test_nothing_is_pinned_without_a_choice_or_something_to_tell_it_by(
    without: RouteContext,
) -> None:
    assert pin_key(without) is None


def test_first_request_of_a_session_is_new() -> None:
    assert not may_be_pinned(context(PREFER, first_user_text="a"))
    assert may_be_pinned(context(PREFER, first_user_text="a", has_history=True))
    assert may_be_pinned(context(HARD, first_user_text="a"))


def test_another_strategy_remembers_nothing_of_the_last() -> None:
    names = [("classic", "smart"), ("classic", "fast"), ("bandit", "reliable")]
    epochs = [Pool([Known()] * 2, name, family).resolved.epoch for family, name in names]

    assert len(set(epochs)) == 3
    assert epochs[0] == Pool([Known()] * 2, "smart", "classic").resolved.epoch


def test_other_members_or_another_order_of_them_remember_nothing_either() -> None:
    one, two, three = Pool([Known()] * 3).resolved.routes
    chains = [(one, two), (two, one), (one, two, three), (one,)]

    epochs = [epoch_of("bandit", "balanced", chain) for chain in chains]

    assert len(set(epochs)) == 4
    assert epoch_of("bandit", "balanced", (one, two), 1) not in epochs
