"""The result of routing: every eligible route in order with its reasons, and every absent one.

A score is the sum of contributions, times every multiplier, plus every adjustment, rounded to 1e-9;
order is match_tier, score, declared position. A strategy that only orders has `score: None` and no
factors.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import prod
from typing import Final

import msgspec

from cluster_gw.core.routing.catalog import Candidate, Route
from cluster_gw.units import ComboId

SCORE_DIGITS: Final = 9


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


class ExclusionCode(StrEnum):
    """Why a route is absent; a subset, by value, of the skip codes of the trace."""

    DISABLED = "disabled"
    NO_KEY = "no_key"
    NO_TOOLS = "no_tools"
    NO_VISION = "no_vision"
    NO_FORMAT = "no_format"
    CONTEXT_WINDOW = "context_window"
    TOO_LARGE = "too_large"  # the demand alone exceeds a token limit


class Exclusion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An absent route and why; `retry_at_ms` only when time alone can bring it back."""

    route: Route
    code: ExclusionCode
    detail: str
    retry_at_ms: int | None = None


class Ranked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A candidate with its place and everything that led to it."""

    candidate: Candidate
    score: float | None = None
    base: float | None = None
    factors: tuple[Factor, ...] = ()
    multipliers: tuple[Multiplier, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    reasons: tuple[str, ...] = ()
    half_open: bool = False

    @property
    def route(self) -> Route:
        """The ranked route."""
        return self.candidate.route


class Ranking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All candidates in order and all exclusions of one request.

    Attributes:
        snapshot: version of the snapshot it was made by; 0 without one.
    """

    combo: ComboId
    family: str
    strategy: str
    ranked: tuple[Ranked, ...]
    excluded: tuple[Exclusion, ...]
    snapshot: int = 0


def total_score(ranked: Ranked) -> float:
    """Recompute a score from its parts, rounded as it is when sorting."""
    base = sum(factor.contribution for factor in ranked.factors)
    multiplied = base * prod(m.value for m in ranked.multipliers)
    return round(multiplied + sum(a.delta for a in ranked.adjustments), SCORE_DIGITS)


def in_order(ranked: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """Sort scored candidates: best tier first, then score, then declared position."""
    if len(ranked) < 2:  # noqa: PLR2004 - nothing to sort
        return tuple(ranked)
    return tuple(
        sorted(
            ranked,
            key=lambda r: (r.candidate.match_tier, -(r.score or 0.0), r.candidate.position),
        )
    )
