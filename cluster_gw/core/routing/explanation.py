"""Why a request went where it went: a ranking and what was left out, as everybody is shown it.

One document feeds the bodies of clients that ask for detail, `/api/explain`, the records of
requests and the command line. It is told from the ranking itself; nothing is worked out anew.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from cluster_gw.core.outcome.trace import Skipped
from cluster_gw.core.routing.catalog import Route
from cluster_gw.core.routing.ranking import Adjustment, Factor, Multiplier, Ranked, Ranking
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE, Signals
from cluster_gw.core.routing.speed_ranks import speed_rank_of
from cluster_gw.units import RouteId


class SnapshotUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Which snapshot was ranked by; version 0 and no age where there was none yet."""

    version: int
    age_ms: int | None


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a route.

    Attributes:
        id: as configured; its ordinal in the request where a client is told.
        score: what it was put in order by; None where keys come in turn, or their turn never came.
    """

    id: str | int
    score: float | None = None


class ExplainedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a ranking; see `ranking.Ranked`.

    Attributes:
        rank: from 1.
        half_open: it may be called, but has to prove itself again.
        speed_rank: the operator's, else as measured, 1 (fastest) to 10: what a chain is sorted by.
        keys: in the order in which they are tried.
    """

    rank: int
    route: str
    provider: str
    model: str
    match_tier: int
    score: float | None
    base: float | None
    factors: tuple[Factor, ...]
    multipliers: tuple[Multiplier, ...]
    adjustments: tuple[Adjustment, ...]
    reasons: tuple[str, ...]
    half_open: bool
    speed_rank: int | None = None
    keys: tuple[ExplainedKey, ...]


class ExplainedSkip(msgspec.Struct, frozen=True, kw_only=True):
    """One route, or one key of it, that was not called.

    Attributes:
        key: None when the route as a whole was left out.
        retry_at_ms: when it may be usable again, ms since the epoch; None when nobody knows, or
            waiting does not help.
        scope: what the code is about: `route`, `model`, `key`, `account` or `provider`.
    """

    route: str
    key: str | None
    code: str
    detail: str
    retry_at_ms: int | None
    scope: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole document.

    Attributes:
        config_version: of the configuration it was ranked under.
        epoch: changes with the strategy of the combo; part of the names of pins.
        ranking: best first.
        left_out: places that are not told; absent when none.
        skips_left_out: the same of what was skipped.
    """

    combo: str
    family: str
    strategy: str
    config_version: int
    epoch: str
    snapshot: SnapshotUsed
    ranking: tuple[ExplainedRoute, ...]
    skipped: tuple[ExplainedSkip, ...]
    left_out: int = 0
    skips_left_out: int = 0


KeysOf = Callable[[Route], Sequence[ExplainedKey]]


def explain_ranking(
    ranking: Ranking,
    signals: Signals,
    keys_of: KeysOf,
    most: int | None = None,
    also: Collection[RouteId] = (),
) -> tuple[ExplainedRoute, ...]:
    """Tell of each place of a ranking.

    Args:
        ranking: of a request.
        signals: what it was made by.
        keys_of: gives the keys of a route, in order.
        most: places to tell of; all by default.
        also: routes that are told of wherever they are.
    """
    return tuple(
        [
            _explain_place(rank, ranked, signals, keys_of)
            for rank, ranked in ranking.told(most, also)
        ]
    )


def explain_skips(skipped: Iterable[Skipped], now_ms: int) -> tuple[ExplainedSkip, ...]:
    """Tell of what was not called.

    Args:
        skipped: of a request.
        now_ms: when its waits were told, ms since the epoch.
    """
    return tuple(
        [
            ExplainedSkip(
                route=one.route,
                key=one.key,
                code=one.code.value,
                detail=one.detail,
                retry_at_ms=None if one.retry_after_ms is None else now_ms + one.retry_after_ms,
                scope=one.scope,
            )
            for one in skipped
        ]
    )


def _explain_place(rank: int, ranked: Ranked, signals: Signals, keys_of: KeysOf) -> ExplainedRoute:
    route = ranked.route
    return ExplainedRoute(
        rank=rank,
        route=route.id,
        provider=route.provider,
        model=route.model,
        match_tier=ranked.candidate.match_tier,
        score=ranked.score,
        base=ranked.base,
        factors=ranked.factors,
        multipliers=ranked.multipliers,
        adjustments=ranked.adjustments,
        reasons=ranked.reasons,
        half_open=signals.routes.get(route.id, UNKNOWN_ROUTE).half_open,
        speed_rank=speed_rank_of(route, signals.speed_ranks),
        keys=tuple(keys_of(route)),
    )
