"""Models that are unwell on all keys: asked about before admission, told of after attempts."""

from collections.abc import Callable, Iterable

from cluster_gw.core.limits.penalty import points_for
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.consequence import Consequence
from cluster_gw.pipeline.runtime import RoutingPolicy, Runtime
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Lease, Refusal
from cluster_gw.store.model_health import ModelEnd, ModelHealth, ModelName


class Conditions:
    """What holds for a model whichever key is used.

    Args:
        models: where it is booked, and what this worker knows.
        check_key: has a key checked soon whose provider has just refused it.
    """

    def __init__(self, models: ModelHealth, check_key: Callable[[Target], None]) -> None:
        self._models = models
        self.check_key = check_key

    def barring(self, target: Target) -> Refusal | None:
        """Tell why no key of the target's model may be called now; mostly nothing is known."""
        if not self._models.unwell:
            return None
        return self._models.barring((target.route.provider, target.route.model))

    def failed(
        self,
        lease: Lease,
        verdict: Verdict,
        consequence: Consequence,
        policy: RoutingPolicy,
        *,
        sibling_could_serve: bool,
    ) -> None:
        """Book a failed attempt for its model, if it says anything about that."""
        points = 0.0
        if consequence.misdeed is not None:
            points = points_for(
                consequence.misdeed, policy.penalty, sibling_could_serve=sibling_could_serve
            )
        if points or consequence.counts_for_bench:
            end = ModelEnd(
                failed=verdict.code.value,
                points=points,
                counts_for_bench=consequence.counts_for_bench,
            )
            self._models.book(lease, end, policy.penalty, policy.bench)

    def succeeded(self, lease: Lease, policy: RoutingPolicy) -> None:
        """Book an answer, where the model is known to have points or failures."""
        if not self._models.unwell:
            return
        if self._models.is_marked((lease.target.provider, lease.target.model)):
            points = points_for(None, policy.penalty, sibling_could_serve=True)
            self._models.book(lease, ModelEnd(points=points), policy.penalty, policy.bench)


def list_models(runtime: Runtime) -> Iterable[ModelName]:
    """Every model of a configuration."""
    return ((route.provider, route.model) for route in runtime.catalog.routes.values())
