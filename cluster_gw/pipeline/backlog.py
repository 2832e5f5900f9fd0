"""The targets a request may still try, in order: the rest of its one ranking.

What a failure says about others is applied here: a sick provider goes behind all others and is
tried only when nothing else is left, a wrong model or a dead key is struck out. Which key of a
route goes first is decided when the route's turn comes: most routes of a ranking never have one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from cluster_gw.core.outcome.classify import SkipScope
from cluster_gw.core.routing.catalog import Key
from cluster_gw.core.routing.key_choice import best_first, roomiest_first, scores_of
from cluster_gw.core.routing.posterior import Floats
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.targets import Target
from cluster_gw.units import KeyId, RouteId


class Drawn(NamedTuple):
    """In which order the keys of a route were put.

    Attributes:
        keys: in turn.
        places: of them, in order.
        scores: of them, in turn; None when there were none to go by.
    """

    keys: list[Key]
    places: list[int]
    scores: Floats | None

    def told(self) -> list[tuple[KeyId, float | None]]:
        """Each key in order, with its score."""
        scores = self.scores
        return [
            (self.keys[place].id, None if scores is None else float(scores[place]))
            for place in self.places
        ]


class KeyTurns:
    """Whose turn it is among the keys of each route, for all requests of a worker.

    Each route has turns of its own: with one count for all, a load that alternates between two
    routes would never come to the second key of either. Workers begin at different keys, so that
    many of them do not prefer the first one.

    Args:
        start: the first turn, at least 0.
    """

    __slots__ = ("_start", "_taken")

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._taken: dict[RouteId, int] = {}

    def take(self, route: RouteId) -> int:
        """Give the turn of a request; the next one gets the next."""
        turn = self._taken.get(route, self._start)
        self._taken[route] = turn + 1
        return turn

    def look(self, route: RouteId) -> int:
        """Tell the turn that `take` would give now."""
        return self._taken.get(route, self._start)


class KeyOrder:
    """Tells in which order the keys of a route are tried in one request.

    Args:
        inputs: what the ranking was made by.
        turn: gives the request's turn among the keys of a route.
        roomiest_first: what is left of a key's limits counts before what was learned of it.

    Attributes:
        drawn: by route whose turn has come: its keys in order, and their scores in turn.
    """

    __slots__ = ("_inputs", "_roomiest_first", "_turn", "drawn")

    def __init__(
        self,
        inputs: StrategyInputs,
        turn: Callable[[RouteId], int],
        *,
        roomiest_first: bool = False,
    ) -> None:
        self._inputs = inputs
        self._turn = turn
        self._roomiest_first = roomiest_first
        self.drawn: dict[RouteId, Drawn] | None = None  # made at the first use, which is seldom

    def order(self, targets: Sequence[Target]) -> list[Target]:
        """Order the targets of one route, which come as they are declared."""
        signals, route = self._inputs.signals, targets[0].route
        start = self._turn(route.id) % len(targets)
        targets = (*targets[start:], *targets[:start])
        keys = [target.key for target in targets]
        learned = signals.routes.get(route.id, UNKNOWN_ROUTE).keys
        scores = scores_of(keys, learned, self._inputs.chance)
        places = best_first(scores, len(keys))
        if self._roomiest_first:
            known = signals.targets.get(route.id, {})
            remaining = {key: one.remaining for key, one in known.items()}
            places = roomiest_first(keys, places, remaining)
        if self.drawn is None:
            self.drawn = {}
        self.drawn[route.id] = Drawn(keys, places, scores)
        return [targets[place] for place in places]


NOTHING: Final[frozenset[Any]] = frozenset()
IN_TURN: Final = KeyOrder(StrategyInputs(), lambda _route: 0)


class Backlog(msgspec.Struct, eq=False):
    """Ordered targets of one request.

    Attributes:
        targets: by the ranking; those of one route stand together, its keys in turn. It is used up.
        keys: decides between the keys of a route.
        ordered: routes whose keys are in order.
        deferred: what failed as a whole, and stands behind all others.
    """

    targets: list[Target]
    keys: KeyOrder = IN_TURN
    ordered: frozenset[RouteId] = NOTHING
    deferred: frozenset[str] = NOTHING

    def __len__(self) -> int:
        return len(self.targets)

    def take(self) -> Target | None:
        """Give the next target and strike it out; None when none is left."""
        targets = self.targets
        if not targets:
            return None
        place = self._next() if self.deferred else 0
        route = targets[place].route
        is_one_of_many = place + 1 < len(targets) and targets[place + 1].route is route
        if is_one_of_many and route.id not in self.ordered:
            self._order(place)
        return targets.pop(place)

    def _next(self) -> int:
        """Give the place of the first target whose provider is not behind the others."""
        for place, target in enumerate(self.targets):
            if target.limits.host not in self.deferred:
                return place
        return 0

    def siblings(self, target: Target) -> list[Target]:
        """The other keys of a target's route that may still be tried."""
        return [other for other in self.targets if other.route is target.route]

    def put_back(self, targets: Iterable[Target]) -> None:
        """Let targets be tried again, in the given order, before all others."""
        self.targets[:0] = targets

    def skip(self, failed: Target, scope: SkipScope) -> None:
        """Apply what the failure of one target says about the rest."""
        match scope:
            case SkipScope.KEY:
                self._keep(lambda t: t.key.id != failed.key.id)
            case SkipScope.MODEL:
                self._keep(lambda t: t.route.id != failed.route.id)
            case SkipScope.PROVIDER:
                self.deferred |= {failed.limits.host}
            case SkipScope.NONE:
                pass

    def _order(self, place: int) -> None:
        """Order the keys of the route at a place, once."""
        targets, route = self.targets, self.targets[place].route
        end = place
        while end < len(targets) and targets[end].route is route:
            end += 1
        targets[place:end] = self.keys.order(targets[place:end])
        self.ordered |= {route.id}

    def _keep(self, wanted: Callable[[Target], bool]) -> None:
        self.targets = [target for target in self.targets if wanted(target)]
