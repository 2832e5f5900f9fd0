"""What a snapshot says of the routes of this configuration, ready to be ranked by.

Built once for each snapshot and configuration, not per request. Routes and keys that the snapshot
does not know are simply not in it: nothing is known of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from cluster_gw.core.limits.usage import UNUSED, WindowUse
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.axes import FIRST_BYTE_SHARE, SPEED_PRIOR, speed_score
from cluster_gw.core.routing.catalog import Candidate, Resolved, Route
from cluster_gw.core.routing.headroom import (
    ALL_LEFT,
    HeadroomPolicy,
    Left,
    best_remaining,
    headroom_factor,
    headroom_factor_of,
    least,
    month_remaining,
)
from cluster_gw.core.routing.key_choice import KeyColumns, columns_of_keys
from cluster_gw.core.routing.ranking import Move
from cluster_gw.core.routing.slate import Slate
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics, add
from cluster_gw.units import MS_PER_S, KeyId, RouteId

PENALTY_SHARE: Final = 0.6  # a model with all points keeps 0.4 of its score


class Bar(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A gate that is closed, and until when (monotonic seconds of this worker)."""

    gate: Gate
    until_s: float


class TargetSignals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One key of a route.

    Attributes:
        statistics: how it did lately.
        use: of its windows, that of the model first.
        left: shares of its scarcest limits that are left.
        month_tokens: what the model used on it since the month began.
        bar: what bars it; None when it may be asked for.
        is_routed: its key is not known to be rejected by the provider.
        half_open: it may be asked for, but has to prove itself again.
    """

    statistics: Statistics = NO_STATISTICS
    use: tuple[WindowUse, ...] = (UNUSED,)
    left: Left = ALL_LEFT
    month_tokens: int = 0
    bar: Bar | None = None
    is_routed: bool = True
    half_open: bool = False

    @property
    def remaining(self) -> float | None:
        """Share of its scarcest limit that is left; None without limits."""
        return self.left.scarcer()


class RouteSignals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A route over all its keys.

    Attributes:
        statistics: of all of them together.
        speed: of that, in 0..1.
        remaining: share of the scarcer of its month and its windows that is left.
        headroom: the factor for it, in 0..1.
        penalty_points: of its model.
        rate_limit: the factor for them, 0.4 to 1.
        keys: what they are compared by; None where turns decide.
        half_open: every key that may be asked for has to prove itself again.
    """

    statistics: Statistics = NO_STATISTICS
    speed: float = SPEED_PRIOR
    remaining: float = 1.0
    headroom: float = 1.0
    penalty_points: float = 0.0
    rate_limit: float = 1.0
    keys: KeyColumns | None = None
    half_open: bool = False


UNKNOWN_ROUTE: Final = RouteSignals()


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """All of a snapshot that this worker ranks by.

    Attributes:
        version: of the snapshot; 0 before the first.
        targets: by route and key.
        routes: by route.
        speed_ranks: by route, as they stand for all workers.
        barred: routes none of whose keys may be asked for, and until when that is so.
        is_degraded: few providers are usable, so nothing is spent on trying.
        zero_ms: the server's clock, ms since the epoch, when this worker's monotonic one was 0.
        at_s: this worker's monotonic clock when the building of the snapshot began.
        slates: what was worked out of these signals for lists of candidates; None keeps nothing.
    """

    version: int = 0
    targets: Mapping[RouteId, Mapping[KeyId, TargetSignals]] = {}
    routes: Mapping[RouteId, RouteSignals] = {}
    speed_ranks: Mapping[RouteId, int] = {}
    barred: Mapping[RouteId, Bar] = {}
    is_degraded: bool = False
    zero_ms: float = 0.0
    at_s: float = 0.0
    slates: dict[tuple[str, int], Slate] | None = None

    def server_ms(self, now_s: float) -> float:
        """The server's clock at an instant of this worker's monotonic clock."""
        return self.zero_ms + now_s * MS_PER_S

    def age_ms(self, now_s: float) -> int | None:
        """How old the snapshot is at an instant of that clock; None without one."""
        return max(0, round((now_s - self.at_s) * MS_PER_S)) if self.version else None

    def is_barred(self, route: Route, now_s: float) -> bool:
        """Whether no key of a route may be asked for."""
        bar = self.barred.get(route.id)
        return bar is not None and now_s < bar.until_s

    def may_serve(self, route: Route, now_s: float) -> bool:
        """Whether a try would not be wasted: a key may be asked for and something is left."""
        return (
            not self.is_barred(route, now_s)
            and self.routes.get(route.id, UNKNOWN_ROUTE).remaining > 0
        )


NO_SIGNALS: Final = Signals()


S = TypeVar("S", bound=Slate)


def slate_for(
    kind: type[S],
    candidates: tuple[Candidate, ...],
    resolved: Resolved,
    signals: Signals,
    build: Callable[[tuple[Candidate, ...], Signals], S],
) -> S:
    """Give the columns of some candidates, kept from an earlier request where that is possible.

    Args:
        kind: of columns; each family has its own.
        candidates: those of a request.
        resolved: what it asked for.
        signals: what it is ranked by.
        build: works the columns out.
    """
    slates, name = signals.slates, (kind.__name__, id(candidates))
    kept = None if slates is None else slates.get(name)
    if isinstance(kept, kind) and kept.candidates is candidates:
        return kept
    made = build(candidates, signals)
    # Lists that only one request has would fill the memory: their ids never come again.
    if slates is not None and resolved.keeps(candidates):
        slates[name] = made
    return made


def route_signals(
    route: Route,
    by_key: Mapping[KeyId, TargetSignals],
    policy: HeadroomPolicy,
    *,
    penalty_points: float,
    most_points: float,
    first_byte_share: float = FIRST_BYTE_SHARE,
) -> RouteSignals:
    """Work out a route from its keys.

    Args:
        route: of this configuration.
        by_key: what is known of each of its keys.
        policy: of the operator.
        penalty_points: of its model now.
        most_points: that a model can have, above 0.
        first_byte_share: of speed, 0 to 1.
    """
    of_keys = tuple(by_key.values())
    used = [key.statistics for key in of_keys if key.statistics is not NO_STATISTICS]
    statistics = used[0] if used else NO_STATISTICS
    for more in used[1:]:
        statistics = add(statistics, more)
    routed = [key for key in of_keys if key.is_routed]
    free = [key for key in routed if key.bar is None] or of_keys
    month_tokens = sum(key.month_tokens for key in routed)
    of_month = month_remaining(month_tokens, route.monthly_tokens, len(routed))
    headroom = max((headroom_factor_of(key.left, policy) for key in free), default=1.0)
    if of_month is not None:
        headroom = min(headroom, headroom_factor(of_month, policy))
    return RouteSignals(
        statistics=statistics,
        speed=speed_score(statistics, first_byte_share),
        remaining=least(of_month, best_remaining(key.remaining for key in free)),
        headroom=headroom,
        penalty_points=penalty_points,
        rate_limit=rate_limit_factor(penalty_points, most_points),
        keys=None
        if len(used) < 2  # noqa: PLR2004 - nothing to compare
        else columns_of_keys(route, _statistics(by_key), first_byte_share),
        half_open=bool(free) and all(key.half_open for key in free),
    )


def rate_limit_factor(points: float, most_points: float) -> float:
    """By what the points of a penalty, of at most so many, multiply a score."""
    return 1.0 - points / most_points * PENALTY_SHARE


def _statistics(by_key: Mapping[KeyId, TargetSignals]) -> Mapping[KeyId, Statistics]:
    return {key: one.statistics for key, one in by_key.items()}


def bar_of_route(keys: Sequence[TargetSignals]) -> Bar | None:
    """Tell what bars a route: of its keys' bars the one that ends first; None if a key is free."""
    bars = [key.bar for key in keys if key.bar is not None]
    if not bars or len(bars) < len(keys):
        return None
    return min(bars, key=lambda bar: bar.until_s)


def stand_back(
    candidates: tuple[Candidate, ...], signals: Signals, now_s: float
) -> tuple[tuple[Candidate, ...], tuple[Move, ...]]:
    """Put routes that nobody may ask for now behind the others of their tier, saying so.

    Args:
        candidates: best first.
        signals: of this worker.
        now_s: the clock of the signals' times.

    Returns:
        The candidates in order, and what was moved.
    """
    moves = tuple(
        [
            Move(route=candidate.route.id, reason=_why_barred(bar, signals, now_s))
            for candidate in candidates
            if (bar := signals.barred.get(candidate.route.id)) is not None and now_s < bar.until_s
        ]
    )
    if not moves:
        return candidates, ()
    behind = {move.route for move in moves}
    # A stable sort: among those that stand back, and those that do not, the order stays.
    ordered = sorted(candidates, key=lambda c: (c.match_tier, c.route.id in behind))
    return tuple(ordered), moves


def _why_barred(bar: Bar, signals: Signals, now_s: float) -> str:
    left_s = max(bar.until_s - now_s, 0.0)
    return f"{bar.gate} for {left_s:.0f} s more, snapshot {signals.version}"
