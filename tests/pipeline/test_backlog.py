from collections.abc import Sequence

import msgspec

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.outcome.classify import SkipScope
from cluster_gw.core.routing.catalog import Key
from cluster_gw.core.routing.headroom import HeadroomPolicy, Left
from cluster_gw.core.routing.signals import Signals, TargetSignals, route_signals
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.backlog import IN_TURN, Backlog, KeyOrder, KeyTurns
from cluster_gw.pipeline.targets import Target
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.store.admission import TargetLimits
from tests.pipeline.catalogs import make_key, make_route


def make_target(model: str, provider: str, key: Key) -> Target:
    route = make_route(model, provider=provider, keys=(key,))
    return Target(
        route=route,
        key=key,
        limits=TargetLimits(
            provider=provider,
            account=key.account,
            key=key.id,
            model=model,
            day_reset=route.day_reset,
            model_limits=route.limits,
            key_limits=key.limits,
        ),
        codec=OpenAIChatProvider(frozenset()),
        url="",
        stream_url="",
        dialect=Dialect.OPENAI,
        headers=(),
        secret="do-not-show",
        check_url=None,
        via=b"",
    )


K1, K2 = make_key("k1"), make_key("k2")
A1, A2, B1 = make_target("a", "p", K1), make_target("a", "p", K2), make_target("b", "p", K1)
C3 = make_target("c", "q", make_key("k3", "q"))
FIRST = KeyTurns().look


def rest(backlog: Backlog) -> list[Target]:
    taken = []
    while (target := backlog.take()) is not None:
        taken.append(target)
    return taken


def test_targets_come_in_the_order_of_the_ranking() -> None:
    assert rest(Backlog([A1, A2, B1, C3])) == [A1, A2, B1, C3]


def test_a_sick_provider_is_tried_only_when_nothing_else_is_left() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.PROVIDER)

    assert rest(backlog) == [C3, A2, B1]


def test_a_missing_model_strikes_out_its_other_keys_and_nothing_else() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.MODEL)

    assert rest(backlog) == [B1, C3]


def test_a_dead_key_strikes_out_every_model_of_that_key() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.KEY)

    assert rest(backlog) == [A2, C3]


def test_a_target_never_shows_its_secret() -> None:
    assert "do-not-show" not in repr(A1)


def test_keys_of_a_route_are_ordered_when_its_turn_comes_and_only_once() -> None:
    route = make_route("m", keys=(K1, K2))
    first, second = (msgspec.structs.replace(A1, route=route, key=key) for key in (K1, K2))
    order = SecondFirst(StrategyInputs(), FIRST)
    backlog = Backlog([C3, first, second, B1], order)

    taken = rest(backlog)
    backlog.put_back([first, second])

    assert taken == [C3, second, first, B1]
    assert rest(backlog) == [first, second]
    assert order.asked == 1


class SecondFirst(KeyOrder):
    """The last one in turn goes first."""

    asked = 0

    def order(self, targets: Sequence[Target]) -> list[Target]:
        self.asked += 1
        return list(reversed(targets))


def test_keys_are_ordered_by_what_was_learned_and_by_room_where_that_comes_first() -> None:
    route = make_route("m", keys=(K1, K2))
    targets = [msgspec.structs.replace(A1, route=route, key=key) for key in (K1, K2)]
    known = {
        K1.id: TargetSignals(statistics=Statistics(90.0, 10.0), left=Left(day=0.1)),
        K2.id: TargetSignals(statistics=Statistics(10.0, 90.0), left=Left(day=0.8)),
    }
    signals = Signals(
        targets={route.id: known},
        routes={
            route.id: route_signals(
                route, known, HeadroomPolicy(), penalty_points=0.0, most_points=10.0
            )
        },
    )
    inputs = StrategyInputs(signals=signals)

    learned, roomiest = KeyOrder(inputs, FIRST), KeyOrder(inputs, FIRST, roomiest_first=True)

    assert [one.key.id for one in learned.order(targets[::-1])] == ["k1", "k2"]
    assert [one.key.id for one in roomiest.order(targets)] == ["k2", "k1"]
    assert IN_TURN.order(targets) == targets


def test_each_route_turns_its_keys_by_itself_whatever_is_asked_in_between() -> None:
    keys = tuple(make_key(f"k{number}") for number in range(3))
    routes = [make_route(name, keys=keys) for name in "ab"]
    every = {
        route.id: [msgspec.structs.replace(A1, route=route, key=key) for key in keys]
        for route in routes
    }
    turns = KeyTurns()
    firsts: dict[str, list[str]] = {"a": [], "b": []}
    for _ in range(6):
        for route in routes:
            order = KeyOrder(StrategyInputs(), turns.take)
            firsts[route.model].append(order.order(every[route.id])[0].key.id)

    assert firsts == {"a": ["k0", "k1", "k2"] * 2, "b": ["k0", "k1", "k2"] * 2}
    assert turns.look(routes[0].id) == 6


def test_workers_begin_at_keys_of_their_own() -> None:
    targets = [msgspec.structs.replace(A1, key=key) for key in (K1, K2)]
    workers = [KeyTurns(start) for start in (7, 8)]

    firsts = [
        [KeyOrder(StrategyInputs(), turns.take).order(targets)[0].key.id for _ in range(3)]
        for turns in workers
    ]

    assert firsts == [["k2", "k1", "k2"], ["k1", "k2", "k1"]]
    assert workers[0].look(A1.route.id) == 10


def test_looking_at_an_order_takes_no_turn() -> None:
    turns = KeyTurns()
    targets = [msgspec.structs.replace(A1, key=key) for key in (K1, K2)]

    told = [KeyOrder(StrategyInputs(), turns.look).order(targets)[0].key.id for _ in range(3)]

    assert told == ["k1", "k1", "k1"]
