"""What the bandit family knows of candidates, side by side; made once per snapshot and combo."""

from typing import Final

import numpy as np

from cluster_gw.core.routing.catalog import Candidate, Resolved
from cluster_gw.core.routing.posterior import Draws, Floats, column, parameters
from cluster_gw.core.routing.presets import INTELLIGENCE, RELIABILITY, SPEED
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE, RouteSignals, Signals, slate_for
from cluster_gw.core.routing.slate import (
    FactorColumn,
    MultiplierColumn,
    Slate,
    product_of,
    scaled,
    tiers_of,
    ties_of,
)

UNMEASURED_BELOW: Final = 5.0
"""Attempts by weight below which little is known of a route."""


class Evidence(Slate, frozen=True, kw_only=True, gc=False):
    """The columns of the bandit family.

    Attributes:
        known: what the snapshot says of each route.
        draws: of their reliability.
        samples: attempts of our own, by weight.
        speed: in 0..1.
        intelligence: in 0..1, scaled over these candidates.
        tried: rows of which little is known and that may win, of the best tier.
    """

    known: tuple[RouteSignals, ...]
    draws: Draws
    samples: Floats
    speed: Floats
    intelligence: Floats
    tried: tuple[int, ...]


def evidence_of(
    candidates: tuple[Candidate, ...], resolved: Resolved, signals: Signals
) -> Evidence:
    """Give the columns of some candidates, kept from an earlier request where that is possible."""
    return slate_for(Evidence, candidates, resolved, signals, build_evidence)


def build_evidence(candidates: tuple[Candidate, ...], signals: Signals) -> Evidence:
    """Work the columns out."""
    routes = [candidate.route for candidate in candidates]
    known = tuple([signals.routes.get(route.id, UNKNOWN_ROUTE) for route in routes])
    weight = column(route.weight for route in routes)
    multipliers = (
        MultiplierColumn(
            name="headroom",
            values=column(one.headroom for one in known),
            detail=lambda row: f"{known[row].remaining:.3f} left",
        ),
        MultiplierColumn(
            name="rate_limit",
            values=column(one.rate_limit for one in known),
            detail=lambda row: f"{known[row].penalty_points:g} points",
        ),
        MultiplierColumn(name="override", values=weight, detail=lambda _: "weight of the model"),
    )
    samples = column(one.statistics.successes + one.statistics.failures for one in known)
    speed_samples = column(one.statistics.speed_samples for one in known)
    factors = (
        FactorColumn(
            name=RELIABILITY,
            source=lambda row: "measured" if samples[row] else "prior",
            samples=samples,
        ),
        FactorColumn(
            name=SPEED,
            source=lambda row: "measured" if speed_samples[row] else "prior",
            samples=speed_samples,
        ),
        FactorColumn(name=INTELLIGENCE, source=lambda _: "configured"),
    )
    tiers = tiers_of(candidates)
    best = np.ones(len(routes), dtype=bool) if tiers is None else tiers == tiers.min()
    return Evidence(
        candidates=candidates,
        factors=factors,
        multipliers=multipliers,
        product=product_of(multipliers, len(routes)),
        ties=ties_of(candidates, (weight == 0).astype(np.float64)),
        tiers=tiers,
        known=known,
        draws=Draws(
            parameters(
                one.statistics.successes + route.prior.successes
                for one, route in zip(known, routes, strict=True)
            ),
            parameters(
                one.statistics.failures + route.prior.failures
                for one, route in zip(known, routes, strict=True)
            ),
        ),
        samples=samples,
        speed=column(one.speed for one in known),
        intelligence=scaled(column(route.intelligence for route in routes)),
        tried=tuple(np.flatnonzero((samples < UNMEASURED_BELOW) & (weight > 0) & best).tolist()),
    )
