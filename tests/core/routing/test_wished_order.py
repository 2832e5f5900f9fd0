"""`provider.sort`: one quality decides within a tier, and what is not known comes last."""

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.request import SortBy, Wishes
from cluster_gw.core.limits.price import Price
from cluster_gw.core.routing.catalog import Candidate, Route
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.signals import RouteSignals, Signals
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.core.routing.wished_order import in_wished_order
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import ClientId, RouteId
from tests.pipeline.catalogs import make_catalog, make_request, make_route


def priced(name: str, given: float, taken: float) -> Route:
    route = make_route(name)
    return msgspec.structs.replace(route, price=Price(input=given, output=taken), is_priced=True)


def asking(*routes: Route, **facts: object) -> RouteContext:
    resolved = make_catalog(*routes).resolve("")
    assert resolved is not None
    return build_context(make_request(**facts), resolved, ClientId("c"))  # type: ignore[arg-type]


def measured(**known: Statistics) -> Signals:
    routes = {
        RouteId(f"p/{name}"): RouteSignals(statistics=statistics)
        for name, statistics in known.items()
    }
    return Signals(routes=routes)


def order(
    context: RouteContext, wish: SortBy, signals: Signals | None = None
) -> tuple[list[str], list[str]]:
    """Models in order, and the reasons."""
    candidates = context.resolved.candidates
    ordered, moves = in_wished_order(candidates, context, signals or Signals(), wish)
    return [one.route.model for one in ordered], [move.reason for move in moves]


def test_the_cheapest_is_so_for_this_very_request() -> None:
    wordy, terse = priced("wordy", 0.0, 4.0), priced("terse", 2.0, 1.0)
    free, unknown = priced("free", 0.0, 0.0), make_route("unknown")
    routes = (unknown, wordy, terse, free)

    long = asking(*routes, input_characters=(40_000,), max_tokens=100)
    short = asking(*routes, input_characters=(400,), max_tokens=1000)

    assert order(long, SortBy.PRICE) == (
        ["free", "wordy", "terse", "unknown"],
        [
            "sorted by price, 0.000000 USD",
            "sorted by price, 0.000400 USD",
            "sorted by price, 0.020100 USD",
            "sorted by price, unknown",
        ],
    )
    assert order(short, SortBy.PRICE)[0] == ["free", "terse", "wordy", "unknown"]


def test_speeds_are_those_that_were_measured() -> None:
    context = asking(make_route("none"), make_route("slow"), make_route("quick"))
    signals = measured(
        slow=Statistics(output_tokens=10, latency_ms=1000, first_byte_ms=80, first_bytes=2),
        quick=Statistics(output_tokens=90, latency_ms=1000, first_byte_ms=500, first_bytes=2),
    )

    assert order(context, SortBy.THROUGHPUT, signals) == (
        ["quick", "slow", "none"],
        [
            "sorted by throughput, 90.0 tokens/s",
            "sorted by throughput, 10.0 tokens/s",
            "sorted by throughput, unknown",
        ],
    )
    assert order(context, SortBy.LATENCY, signals) == (
        ["slow", "quick", "none"],
        [
            "sorted by latency, 40 ms",
            "sorted by latency, 250 ms",
            "sorted by latency, unknown",
        ],
    )


def test_vectors_come_whole_so_their_latency_is_that_of_the_answer() -> None:
    context = asking(make_route("slow"), make_route("quick"), embedding=EmbeddingAsk(count=1))
    signals = measured(
        slow=Statistics(successes=2, latency_ms=900), quick=Statistics(successes=3, latency_ms=300)
    )

    assert order(context, SortBy.LATENCY, signals)[0] == ["quick", "slow"]


@pytest.mark.parametrize("wish", SortBy)
def test_a_better_match_stays_before_and_equal_ones_as_they_are(wish: SortBy) -> None:
    context = asking(make_route("a"), make_route("b"), priced("cheap", 0.0, 0.0))
    first, second, cheap = context.resolved.candidates
    tiers = (first, second, msgspec.structs.replace(cheap, match_tier=1))

    ordered, _ = in_wished_order(tiers, context, Signals(), wish)

    assert ordered == tiers


def test_no_pin_and_no_exploration_beats_what_was_wished_for() -> None:
    routes = (priced("dear", 9.0, 9.0), priced("cheap", 1.0, 1.0))
    wished = asking(*routes, wishes=Wishes(sort=SortBy.PRICE))
    inputs = StrategyInputs(pinned=RouteId("p/dear"))

    ranking = make_ranking(wished, inputs)

    assert models(ranking.candidates) == ["cheap", "dear"]
    assert models(make_ranking(asking(*routes), inputs).candidates) == ["dear", "cheap"]


def models(candidates: tuple[Candidate, ...]) -> list[str]:
    return [one.route.model for one in candidates]
