"""Exchanges what workers learn about estimates; the request path never waits for it."""

from collections.abc import Callable, Mapping
from typing import Final

from cluster_gw.core.limits.estimate import EstimatePolicy, Learned
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.store.estimates import ROUTES_AT_ONCE, Estimates
from cluster_gw.units import ClientId, RouteId

LEARN_S: Final = 2.0


class Learner:
    """Tells lessons and takes over what all have learned.

    Args:
        estimator: of this worker.
        estimates: what all workers share.
        policy: gives the bounds in force.
    """

    def __init__(
        self, estimator: Estimator, estimates: Estimates, policy: Callable[[], EstimatePolicy]
    ) -> None:
        self._estimator = estimator
        self._estimates = estimates
        self._policy = policy

    async def look(self) -> None:
        """Exchange what is due; while Redis is away the lessons are lost and counted."""
        for client, lessons in self._estimator.take_due().items():
            routes = list(lessons)
            for first in range(0, len(routes), ROUTES_AT_ONCE):
                some = {route: lessons[route] for route in routes[first : first + ROUTES_AT_ONCE]}
                await self._exchange(client, some)

    async def _exchange(self, client: ClientId, lessons: Mapping[RouteId, Learned]) -> None:
        try:
            known = await self._estimates.learn(client, lessons)
        except StoreLostError:
            self._estimator.lost += sum(lesson.requests > 0 for lesson in lessons.values())
            return
        self._estimator.take_over(client, known, self._policy())
