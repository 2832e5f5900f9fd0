"""What a snapshot says of the routes of this configuration, ready to be ranked by.

Built once for each snapshot and configuration, not per request. Routes and keys that the snapshot
does not know are simply not in it: nothing is known of them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from cluster_gw.core.limits.usage import UNUSED, WindowUse
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.ranking import Ranked
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.units import KeyId, RouteId


class Bar(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A gate that is closed, and until when (monotonic seconds of this worker)."""

    gate: Gate
    until_s: float


class TargetSignals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One key of a route.

    Attributes:
        statistics: how it did lately.
        use: of its windows, that of the model first.
        bar: what bars it; None when it may be asked for.
    """

    statistics: Statistics = NO_STATISTICS
    use: tuple[WindowUse, ...] = (UNUSED,)
    bar: Bar | None = None


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """All of a snapshot that this worker ranks by.

    Attributes:
        version: of the snapshot; 0 before the first.
        targets: by route and key.
        barred: routes none of whose keys may be asked for, and until when that is so.
    """

    version: int = 0
    targets: Mapping[RouteId, Mapping[KeyId, TargetSignals]] = {}
    barred: Mapping[RouteId, Bar] = {}


NO_SIGNALS: Final = Signals()


def bar_of_route(keys: Sequence[TargetSignals]) -> Bar | None:
    """Tell what bars a route: of its keys' bars the one that ends first; None if a key is free."""
    bars = [key.bar for key in keys if key.bar is not None]
    if not bars or len(bars) < len(keys):
        return None
    return min(bars, key=lambda bar: bar.until_s)


def stand_back(ranked: tuple[Ranked, ...], signals: Signals, now_s: float) -> tuple[Ranked, ...]:
    """Put routes that nobody may ask for now behind the others of their tier, saying so.

    Args:
        ranked: best first.
        signals: of this worker.
        now_s: the clock of the signals' times.
    """
    behind = [_told(one, signals, now_s) for one in ranked]
    if all(after is one for after, one in zip(behind, ranked, strict=True)):
        return ranked
    # A stable sort: among those that stand back, and those that do not, the order stays.
    pairs = sorted(
        zip(behind, ranked, strict=True),
        key=lambda pair: (pair[0].candidate.match_tier, pair[0] is not pair[1]),
    )
    return tuple([after for after, _ in pairs])


def _told(one: Ranked, signals: Signals, now_s: float) -> Ranked:
    """Give a place with the reason why it stands back; itself when it does not."""
    bar = signals.barred.get(one.route.id)
    if bar is None or now_s >= bar.until_s:
        return one
    reason = (
        f"{bar.gate} for {max(bar.until_s - now_s, 0.0):.0f} s more, snapshot {signals.version}"
    )
    return msgspec.structs.replace(one, reasons=(*one.reasons, reason))
