"""The result of routing: every eligible route in order with its reasons, and every absent one.

A score is the sum of contributions, times every multiplier, plus every adjustment, rounded to 1e-9;
order is match_tier, score, declared position. A strategy that only orders has `score: None` and no
factors.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import prod
from typing import Final

import msgspec

from cluster_gw.core.routing.catalog import Candidate, Exclusion, Route
from cluster_gw.units import ComboId, RouteId

SCORE_STEPS: Final = 1e9


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """One weighted signal of a candidate; `contribution` is what it adds to the base."""

    name: str
    weight: float
    value: float
    contribution: float
    source: str
    samples: float = 0.0


class Multiplier(msgspec.Struct, frozen=True, kw_only=True):
    """A guardrail in 0..1 (or a boost above 1) on the whole base."""

    name: str
    value: float
    detail: str = ""


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """A term added after the multipliers."""

    name: str
    delta: float


class Ranked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A candidate with its place and everything that led to it."""

    candidate: Candidate
    score: float | None = None
    base: float | None = None
    factors: tuple[Factor, ...] = ()
    multipliers: tuple[Multiplier, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def route(self) -> Route:
        """The ranked route."""
        return self.candidate.route


class Order(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Candidates in order; most requests need no more.

    What led to a place is told on demand from the very numbers it was made with: nothing is drawn
    or worked out a second time.

    Attributes:
        candidates: best first.
    """

    candidates: tuple[Candidate, ...]

    def score_at(self, place: int) -> float | None:  # noqa: ARG002 - those that score need it
        """The score of the candidate at a place, from 0; None where nothing is scored."""
        return None

    def reasons_at(self, place: int) -> tuple[str, ...]:
        """Why the candidate is at a place."""
        return (f"declared position {self.candidates[place].position + 1}",)

    def ranked_at(self, place: int) -> Ranked:
        """Everything about the candidate at a place."""
        return Ranked(candidate=self.candidates[place], reasons=self.reasons_at(place))

    def tell(self) -> tuple[Ranked, ...]:
        """Everything about all of them."""
        return tuple([self.ranked_at(place) for place in range(len(self.candidates))])


class Listed(Order, frozen=True, kw_only=True, gc=False):
    """An order without scores.

    Attributes:
        why: gives the reasons of a candidate at a place.
    """

    why: Callable[[int, Candidate], tuple[str, ...]]

    def reasons_at(self, place: int) -> tuple[str, ...]:
        """Why the candidate is at a place."""
        return self.why(place, self.candidates[place])


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A route that was moved from where its strategy had put it, and why."""

    route: RouteId
    reason: str


class Ranking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All candidates in order and all exclusions of one request.

    Attributes:
        order: what the strategy said.
        candidates: best first, after all moves.
        moves: what was moved, in order.
        snapshot: version of the snapshot it was made by; 0 without one.
    """

    combo: ComboId
    family: str
    strategy: str
    order: Order
    candidates: tuple[Candidate, ...]
    excluded: tuple[Exclusion, ...]
    moves: tuple[Move, ...] = ()
    snapshot: int = 0

    @property
    def ranked(self) -> tuple[Ranked, ...]:
        """Every candidate with everything that led to its place, best first."""
        return tuple([ranked for _, ranked in self.told()])

    def told(
        self, most: int | None = None, also: Collection[RouteId] = ()
    ) -> tuple[tuple[int, Ranked], ...]:
        """The same with their ranks, from 1.

        Args:
            most: how many of the first; all by default.
            also: routes that are told of wherever they are.
        """
        places = {one.route.id: place for place, one in enumerate(self.order.candidates)}
        told: list[tuple[int, Ranked]] = []
        for rank, candidate in enumerate(self.candidates, 1):
            name = candidate.route.id
            if most is not None and rank > most and name not in also:
                continue
            ranked = self.order.ranked_at(places[name])
            moved = [move.reason for move in self.moves if move.route == name]
            if moved:
                ranked = msgspec.structs.replace(ranked, reasons=(*ranked.reasons, *moved))
            told.append((rank, ranked))
        return tuple(told)

    def score_of(self, route: Route) -> float | None:
        """The score of a ranked route; None where nothing is scored."""
        for place, candidate in enumerate(self.order.candidates):
            if candidate.route is route:
                return self.order.score_at(place)
        return None


def in_order(
    candidates: Iterable[Candidate], key: Callable[[Candidate], float]
) -> tuple[Candidate, ...]:
    """The one order of every strategy: match tier, then a key of its own, then declared position.

    `scoring.sort_rows` is the same over arrays, with the score as the key.

    Args:
        candidates: in any order.
        key: the smallest first.
    """
    return tuple(sorted(candidates, key=lambda c: (c.match_tier, key(c), c.position)))


def in_tiers(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Split candidates by match tier, best first, for those that order whole tiers at once."""
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.match_tier, []).append(candidate)
    return [found[tier] for tier in sorted(found)]


def to_front(candidates: tuple[Candidate, ...], first: Candidate) -> tuple[Candidate, ...]:
    """Put one candidate before the others; their order stays."""
    return (first, *[candidate for candidate in candidates if candidate is not first])


def round_score(score: float) -> float:
    """Round a score as it is when sorting: mathematical ties are ties."""
    return round(score * SCORE_STEPS) / SCORE_STEPS


def total_score(ranked: Ranked) -> float:
    """Recompute a score from its parts, with the same steps as those it was made by."""
    base = 0.0
    for factor in ranked.factors:  # not `sum`, which keeps more digits from Python 3.12 on
        base += factor.contribution
    total = base * prod(m.value for m in ranked.multipliers)
    for adjustment in ranked.adjustments:
        total += adjustment.delta
    return round_score(total)
