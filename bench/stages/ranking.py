"""Time of ranking one request: candidates, constraints, strategy; no Redis, no upstream.

Half of the routes have statistics, some are at their limits or penalized. Prints the best of some
rounds, in microseconds, for each strategy that scores, and for what is made once per snapshot:

    python -m bench.stages.ranking [--candidates 20 --candidates 1000]
"""

import argparse
import time
from collections.abc import Callable
from typing import Final

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.axes import intelligence_composite
from cluster_gw.core.routing.catalog import Combo, Key, Member, Resolved, Route
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.evidence import build_evidence
from cluster_gw.core.routing.headroom import HeadroomPolicy, Left
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import PRESETS, PeakHours, Tuning, build_scoring
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.core.routing.signals import Bar, RouteSignals, Signals, TargetSignals, route_signals
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import US_PER_S, ClientId, ComboId, KeyId, RouteId

SIZES: Final = (20, 1000)
ROUNDS: Final = 30
ROUND_S: Final = 0.02
TIERS: Final = ("Frontier", "Large", "Medium", "Small")
QUESTION: Final = "Tell me about the sea, and why the wind makes waves. " * 20


def route(number: int) -> Route:
    """A route with one key; every tenth weighs less."""
    provider = f"p{number % 10}"
    return Route(
        id=RouteId(f"{provider}/m{number}"),
        provider=provider,
        model=f"m{number}",
        dialect=Dialect.OPENAI,
        base_url="http://127.0.0.1:1/v1",
        tools=number % 3 > 0,
        context_window=8_000 if number % 4 == 0 else None,
        weight=0.5 if number % 10 == 0 else 1.0,
        intelligence=intelligence_composite(TIERS[number % 4], 1 + number),
        keys=(Key(id=KeyId(f"k{number}"), provider=provider, account=f"k{number}"),),
    )


def resolved(size: int, family: str, strategy: str) -> Resolved:
    """A combo of so many routes."""
    routes = {one.id: one for one in map(route, range(size))}
    scoring = build_scoring(
        family, strategy, {}, Tuning(peak_hours=PeakHours(enabled=True), task_share=0.3)
    )
    combo = Combo(
        id=ComboId("auto"),
        family=family,
        strategy=strategy,
        members=tuple(Member(route=name) for name in routes),
        gate=GatePolicy(),
        scoring=scoring,
    )
    catalog = Catalog(version=1, routes=routes, combos={combo.id: combo}, default_combo=combo.id)
    found = catalog.resolve("auto")
    if found is None:
        raise SystemExit("the combo is in its own catalogue")
    return found


def known(one: Route, number: int) -> RouteSignals:
    """What a snapshot might say of a route."""
    statistics = NO_STATISTICS
    if number % 2:
        statistics = Statistics(90.0 + number % 9, number % 7, 1.0, 9e4, 9e5, 5e4, 90.0)
    target = TargetSignals(statistics=statistics, left=Left(day=(number % 11) / 10))
    return route_signals(
        one,
        {one.keys[0].id: target},
        HeadroomPolicy(),
        penalty_points=3.0 if number % 5 == 0 else 0.0,
        most_points=10.0,
    )


def signals(combo: Resolved, *, some_rest: bool = False) -> Signals:
    """A snapshot of all routes of a combo; one in twenty may rest."""
    routes = {one.id: known(one, n) for n, one in enumerate(combo.routes)}
    rest = Bar(gate=Gate.COOLDOWN, until_s=1e9)
    barred = {one.id: rest for one in combo.routes[::20]} if some_rest else {}
    return Signals(version=1, routes=routes, barred=barred, zero_ms=1.8e12, slates={})


def context(combo: Resolved, *, is_long: bool = False, **facts: bool) -> RouteContext:
    """A request of about a thousand characters, or of forty thousand."""
    request = ChatRequest(
        dialect=Dialect.OPENAI,
        model="auto",
        stream=False,
        input_characters=(len(QUESTION) * (40 if is_long else 1),),
        last_user_text=QUESTION,
        fields={},
        **facts,
    )
    return build_context(request, combo, ClientId("bench"))


def best_us(work: Callable[[], object]) -> float:
    """Microseconds of one call, in the quietest of several rounds."""
    times = 1
    while True:
        began_s = time.perf_counter()
        for _ in range(times):
            work()
        if time.perf_counter() - began_s > ROUND_S / 4:
            break
        times *= 2
    found = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        for _ in range(times):
            work()
        found.append((time.perf_counter() - began_s) / times)
    return min(found) * US_PER_S


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, action="append")
    sizes = parser.parse_args().candidates or SIZES
    print("| what | " + " | ".join(f"{size} candidates, us" for size in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    combos = {size: {preset: resolved(size, *preset) for preset in PRESETS} for size in sizes}
    for preset in PRESETS:
        row = [rank_us(combos[size][preset]) for size in sizes]
        print(f"| {preset[1]} ({preset[0]}) | " + " | ".join(f"{us:.1f}" for us in row) + " |")
    for words, work in (
        ("balanced, with tools", lambda c: rank_us(c, wants_tools=True)),
        ("balanced, too long for a quarter", lambda c: rank_us(c, is_long=True)),
        ("balanced, one in twenty rests", lambda c: rank_us(c, some_rest=True)),
        ("balanced, told in full", lambda c: rank_us(c, is_told=True)),
        ("once per snapshot and combo", columns_us),
    ):
        row = [work(combos[size]["bandit", "balanced"]) for size in sizes]
        print(f"| {words} | " + " | ".join(f"{us:.1f}" for us in row) + " |")


def rank_us(
    combo: Resolved,
    *,
    is_told: bool = False,
    is_long: bool = False,
    some_rest: bool = False,
    **facts: bool,
) -> float:
    """Microseconds of ranking one request, and of telling everything that led to it."""
    asked, chance = context(combo, is_long=is_long, **facts), seed_chance(1)
    said = signals(combo, some_rest=some_rest)

    def rank() -> object:
        inputs = StrategyInputs(signals=said, chance=chance, now_s=1.0)
        ranking = make_ranking(asked, inputs)
        return ranking.ranked if is_told else ranking

    return best_us(rank)


def columns_us(combo: Resolved) -> float:
    """Microseconds of what the requests of one snapshot share."""
    said = signals(combo)
    return best_us(lambda: build_evidence(combo.candidates, said))


if __name__ == "__main__":
    main()
