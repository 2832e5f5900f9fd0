"""What all workers know in common: the state of every target, a few seconds old.

One worker builds it, all rank by the same version. It is a value: nothing in it changes, and it
says how old it is. Entries stand under the name of the Redis key they were read from, so that what
a worker of another configuration does not know is simply not looked up. Fields are only added: an
older worker reads what a newer one wrote.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.units import RouteId


class HealthView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is recorded of a target's health, or of a key's over all its models.

    Attributes:
        rest_until_ms: when its rest ends, ms since the epoch; 0 for none.
        rest_reason: of that rest.
        breaker: `closed`, `open` or `half_open`.
        breaker_until_ms: when the open breaker lets a trial through, or the running trial ends.
        fails: failures in a row.
    """

    rest_until_ms: int = 0
    rest_reason: str = ""
    breaker: str = "closed"
    breaker_until_ms: int = 0
    fails: int = 0


class Barred(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A gate that is closed, and until when (ms since the epoch)."""

    gate: Gate
    until_ms: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version.

    Attributes:
        version: grows strictly; 0 before the first.
        at_ms: the server's clock when the first of it was read, ms since the epoch.
        builder: the worker that built it.
        workers: workers alive then.
        windows: use by window.
        health: by record; only those that exist.
        statistics: by record; only those that exist. As of `at_ms`.
        months: tokens used since the month (UTC) began, by record of statistics; only some.
        models: by record, those of models that are not well over all their keys.
        providers: by record, those of providers that are not well as a whole.
        speed_ranks: by route, those that were written down.
    """

    version: int = 0
    at_ms: int = 0
    builder: str = ""
    workers: int = 0
    windows: Mapping[str, WindowUse] = {}
    health: Mapping[str, HealthView] = {}
    statistics: Mapping[str, Statistics] = {}
    months: Mapping[str, int] = {}
    models: Mapping[str, ModelStanding] = {}
    providers: Mapping[str, ProviderStanding] = {}
    speed_ranks: Mapping[RouteId, int] = {}


NO_SNAPSHOT: Final = Snapshot()


def bar_of(view: HealthView, now_ms: int) -> Barred | None:
    """Tell what bars a target or key for longest; None when it may be asked for.

    A running trial bars the others, too, but may end at any moment: Redis has to be asked.

    Args:
        view: of its health.
        now_ms: the server's clock, ms since the epoch.
    """
    is_open = view.breaker == BreakerState.OPEN
    if is_open and view.breaker_until_ms > max(now_ms, view.rest_until_ms):
        return Barred(gate=Gate.BREAKER_OPEN, until_ms=view.breaker_until_ms)
    if view.rest_until_ms > now_ms:
        return Barred(gate=Gate.COOLDOWN, until_ms=view.rest_until_ms)
    return None


def owes_trial(view: HealthView) -> bool:
    """Whether a target or key that is not barred has to prove itself before it is well again."""
    return view.breaker != BreakerState.CLOSED or view.rest_until_ms > 0
