"""The targets a request may still try, in order: the rest of its one ranking.

What a failure says about others is applied here: a sick provider goes behind all others and is
tried only when nothing else is left, a wrong model or a dead key is struck out.
"""

from collections.abc import Callable, Iterable

from cluster_gw.core.outcome.classify import SkipScope
from cluster_gw.pipeline.targets import Target


class Backlog:
    """Ordered targets of one request."""

    __slots__ = ("_deferred", "_targets")

    def __init__(self, targets: Iterable[Target]) -> None:
        self._targets = list(targets)
        self._deferred: set[str] = set()

    def __len__(self) -> int:
        return len(self._targets)

    def take(self) -> Target | None:
        """Give the next target and strike it out; None when none is left."""
        for place, target in enumerate(self._targets):
            if target.route.provider not in self._deferred:
                return self._targets.pop(place)
        return self._targets.pop(0) if self._targets else None

    def siblings(self, target: Target) -> list[Target]:
        """The other keys of a target's route that may still be tried."""
        return [other for other in self._targets if other.route is target.route]

    def put_back(self, targets: Iterable[Target]) -> None:
        """Let targets be tried again, in the given order, before all others."""
        self._targets[:0] = targets

    def skip(self, failed: Target, scope: SkipScope) -> None:
        """Apply what the failure of one target says about the rest."""
        match scope:
            case SkipScope.KEY:
                self._keep(lambda t: t.key.id != failed.key.id)
            case SkipScope.MODEL:
                self._keep(lambda t: t.route.id != failed.route.id)
            case SkipScope.PROVIDER:
                self._deferred.add(failed.route.provider)
            case SkipScope.NONE:
                pass

    def _keep(self, wanted: Callable[[Target], bool]) -> None:
        self._targets = [target for target in self._targets if wanted(target)]
