"""What holds beyond a target, before admission and after attempts: of models, providers, keys."""

from collections.abc import Callable, Iterable

from cluster_gw.canonical.failure import Fault
from cluster_gw.core.limits.penalty import points_for
from cluster_gw.core.outcome.classify import SkipScope, Verdict
from cluster_gw.core.outcome.consequence import NEUTRAL, OF_SECRETS, Consequence, points_of
from cluster_gw.core.outcome.retirement import find_proof
from cluster_gw.core.outcome.tools_refused import refuses_tools
from cluster_gw.pipeline.runtime import RoutingPolicy, Runtime
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Lease, Refusal
from cluster_gw.store.model_health import ModelEnd, ModelHealth, ModelName
from cluster_gw.store.provider_health import ProviderHealth
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.units import LeaseId


class Conditions:
    """What holds for a model or a provider whichever key is used, and for a key whichever model.

    Args:
        models: where what holds for a model is booked, and what this worker knows of it.
        providers: the same for whole providers.
        board: who may not be used at all: keys, and models that were retired.
        check_key: has a key checked soon whose provider has just refused it.
        present: gives a target as it is configured now.
    """

    def __init__(
        self,
        models: ModelHealth,
        providers: ProviderHealth,
        board: StatusBoard,
        check_key: Callable[[Target], None],
        present: Callable[[Target], Target],
    ) -> None:
        self._models = models
        self._providers = providers
        self._board = board
        self.check_key = check_key
        self._present = present

    @property
    def are_known(self) -> bool:
        """Whether anything is known to be wrong; mostly nothing is."""
        models, providers = self._models.unwell, self._providers.outages
        return self._board.bars_any or bool(models.entries) or bool(providers.entries)

    @property
    def toolless(self) -> frozenset[tuple[str, str]]:
        """Provider and model of those that have recently refused tools."""
        return self._board.toolless

    def barring(self, target: Target) -> Refusal | None:
        """Tell why the target's key or its model may not be used now: what lasts longest."""
        provider = target.route.provider
        if self._board.bars_any:
            barred = self._board.barring(provider, target.key.id, target.limits.model)
            if barred is not None:
                return barred
        of_provider = self._providers.barring(target.limits.host)
        of_model = self._models.barring((provider, target.limits.model))
        if of_provider is None or of_model is None:
            return of_provider or of_model
        return max(of_provider, of_model, key=lambda refusal: refusal.retry_after_ms)

    def is_shut(self, target: Target) -> bool:
        """Whether the target's provider lets only a trial through: `enter` must be asked."""
        return self._providers.is_shut(target.limits.host)

    async def enter(self, target: Target, lease_id: LeaseId, ttl_ms: int) -> Refusal | None:
        """Ask for the trial of the target's provider; None when it may be called.

        Raises:
            StoreLostError: Redis is away.
        """
        return await self._providers.enter(target.limits.host, lease_id, ttl_ms)

    def leave(self, lease_id: LeaseId) -> None:
        """Give back the trial of a lease that was not granted, if it had one."""
        if self._providers.trials:
            self._providers.leave(lease_id)

    def of_now(self, target: Target, consequence: Consequence) -> Consequence:
        """What a failure still means: none that a secret caused says anything of its successor."""
        if consequence.cause in OF_SECRETS and self._present(target).secret != target.secret:
            return NEUTRAL
        return consequence

    def failed(
        self,
        lease: Lease,
        verdict: Verdict,
        consequence: Consequence,
        policy: RoutingPolicy,
        *,
        sibling_could_serve: bool,
    ) -> None:
        """Book a failed attempt for its model and its provider, if it says anything about them."""
        is_trial = lease.is_trial or lease.id in self._providers.trials
        if verdict.blames_breaker and verdict.skip is SkipScope.PROVIDER:
            self._providers.failed(lease, policy.breaker.cooldown_ms)
        points = points_of(
            consequence,
            policy.penalty,
            sibling_could_serve=sibling_could_serve,
            is_trial=is_trial,
        )
        if points or consequence.counts_for_bench:
            end = ModelEnd(
                failed=verdict.code.value,
                points=points,
                counts_for_bench=consequence.counts_for_bench,
            )
            self._models.book(lease, end, policy.penalty, policy.bench)

    def proven(
        self, target: Target, fault: Fault, verdict: Verdict, request_id: str, *, with_tools: bool
    ) -> None:
        """Book what a failure proves of its model, if it proves anything."""
        route = target.route
        finding = find_proof(fault, verdict)
        if finding is not None:
            self._board.prove(
                route.provider,
                route.subject,
                proof=finding.proof.value,
                request=request_id,
                reason=finding.reason,
            )
        if with_tools and refuses_tools(fault):
            self._board.mark_tools(route.provider, route.subject)

    def succeeded(self, lease: Lease, policy: RoutingPolicy, *, with_tools: bool = False) -> None:
        """Book an answer, where the model or its provider is known not to be well."""
        if with_tools and self._board.toolless:
            target = lease.target
            self._board.mark_tools(target.provider, target.model, reserved_ms=lease.reserved_at_ms)
        self._providers.succeeded(lease, policy.breaker.cooldown_ms)
        if self._board.models:
            self._board.answered(lease.target.provider, lease.target.model, lease.reserved_at_ms)
        if self._models.is_marked((lease.target.provider, lease.target.model)):
            points = points_for(None, policy.penalty, sibling_could_serve=True)
            self._models.book(lease, ModelEnd(points=points), policy.penalty, policy.bench)

    def ended(self, lease: Lease) -> None:
        """Note the end of a lease that says nothing: a trial goes back."""
        if self._providers.trials:
            self._providers.ended(lease)


def list_models(runtime: Runtime) -> Iterable[ModelName]:
    """Every model of a configuration."""
    return ((route.provider, route.subject) for route in runtime.catalog.routes.values())


def list_hosts(runtime: Runtime) -> frozenset[str]:
    """Everything of a configuration that fails as a whole: providers, and relays apart."""
    return frozenset(route.host for route in runtime.catalog.routes.values())
