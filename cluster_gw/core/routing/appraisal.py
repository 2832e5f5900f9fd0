"""What the classic family knows of candidates, side by side; made once per snapshot and combo.

Where nothing is known a factor is 0.5: neither a praise nor a blame. Latency is relative to those
that are ranked together, and the declared place is that among them.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from cluster_gw.core.routing.affinity import Seeds, seeds
from cluster_gw.core.routing.catalog import Candidate, Resolved
from cluster_gw.core.routing.posterior import Floats, column
from cluster_gw.core.routing.presets import (
    CACHE_AFFINITY,
    HEALTH,
    LATENCY,
    PRIORITY,
    QUALITY,
    RELIABILITY,
)
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE, Signals, slate_for
from cluster_gw.core.routing.slate import (
    FactorColumn,
    MultiplierColumn,
    Slate,
    product_of,
    tiers_of,
    ties_of,
)
from cluster_gw.core.routing.statistics import Statistics

NEUTRAL: Final = 0.5
HALF_OPEN: Final = 0.5
LEAST_WEIGHT: Final = 1e-3  # what is older than a week is gone; less is no attempt


class Appraisal(Slate, frozen=True, kw_only=True, gc=False):
    """The columns of the classic family, each in 0..1.

    Attributes:
        health: 1, or 0.5 for a route that has to prove itself again.
        reliability: share of attempts that went well.
        latency: 1 for the fastest of these, 0 for the slowest.
        quality: as the operator measured it.
        priority: 1 for the first declared, 0 for the last.
        routes: what stands for the routes in rendezvous hashing.
    """

    health: Floats
    reliability: Floats
    latency: Floats
    quality: Floats
    priority: Floats
    routes: Seeds


def appraisal_of(
    candidates: tuple[Candidate, ...], resolved: Resolved, signals: Signals
) -> Appraisal:
    """Give the columns of some candidates, kept from an earlier request where that is possible."""
    return slate_for(Appraisal, candidates, resolved, signals, build_appraisal)


def build_appraisal(candidates: tuple[Candidate, ...], signals: Signals) -> Appraisal:
    """Work the columns out."""
    routes = [candidate.route for candidate in candidates]
    known = [signals.routes.get(route.id, UNKNOWN_ROUTE) for route in routes]
    statistics = [one.statistics for one in known]
    weight = column(route.weight for route in routes)
    multipliers = (
        MultiplierColumn(name="override", values=weight, detail=lambda _: "weight of the model"),
    )
    hints = [route.quality_hint or 0.0 for route in routes]
    return Appraisal(
        candidates=candidates,
        factors=factors_of(statistics, hints),
        multipliers=multipliers,
        product=product_of(multipliers, len(routes)),
        ties=ties_of(candidates, (weight == 0).astype(np.float64)),
        tiers=tiers_of(candidates),
        health=column(HALF_OPEN if one.half_open else 1.0 for one in known),
        reliability=column(map(reliability_of, statistics)),
        latency=relative_latency(statistics),
        quality=column(min(hint, 1.0) if hint > 0 else NEUTRAL for hint in hints),
        priority=places_of(candidates),
        routes=seeds([route.id for route in routes]),
    )


def factors_of(
    statistics: Sequence[Statistics], hints: Sequence[float]
) -> tuple[FactorColumn, ...]:
    """Tell of each factor what its values rest on, in the family's order."""
    attempts = column(one.successes + one.failures for one in statistics)
    timed = column(one.speed_samples for one in statistics)
    return (
        FactorColumn(name=HEALTH, source=lambda _: "measured"),
        FactorColumn(
            name=RELIABILITY,
            source=lambda row: "measured" if attempts[row] else "prior",
            samples=attempts,
        ),
        FactorColumn(
            name=LATENCY, source=lambda row: "measured" if timed[row] else "prior", samples=timed
        ),
        FactorColumn(name=QUALITY, source=lambda row: "configured" if hints[row] > 0 else "prior"),
        FactorColumn(name=CACHE_AFFINITY, source=lambda _: "configured"),
        FactorColumn(name=PRIORITY, source=lambda _: "configured"),
    )


def reliability_of(statistics: Statistics) -> float:
    """The share of attempts that went well; neutral without any."""
    attempts = statistics.successes + statistics.failures
    return statistics.successes / attempts if attempts > 0 else NEUTRAL


def relative_latency(statistics: Sequence[Statistics]) -> Floats:
    """Scale mean latencies so that the fastest is 1 and the slowest 0; neutral without one.

    Only answers and time-outs count: what fails at once is not fast.
    """
    means = column(
        one.latency_ms / one.speed_samples if one.speed_samples > LEAST_WEIGHT else 0.0
        for one in statistics
    )
    is_timed = means > 0
    values = np.full(means.size, NEUTRAL)
    if is_timed.any():
        low, high = means[is_timed].min(), means[is_timed].max()
        span = high - low
        values[is_timed] = 1.0 - (means[is_timed] - low) / span if span > 0 else 1.0
    return values


def places_of(candidates: Sequence[Candidate]) -> Floats:
    """Declared places among those that are ranked, from 1 down to 0; 1 for one alone."""
    size = len(candidates)
    if size < 2:  # noqa: PLR2004 - nobody to compare with
        return np.ones(size)
    order = np.argsort(column(candidate.position for candidate in candidates), kind="stable")
    places = np.empty(size)
    places[order] = 1.0 - np.arange(size) / (size - 1)
    return places
