"""Asking Redis for a target: one round trip, none when the answer is still known (room 6)."""

import asyncio
from typing import Final

from cluster_gw.errors import ClusterFault, ErrorBody, StoreLostError
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.settle import Accounts
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Admissions, Lease, Refusal
from cluster_gw.store.refusals import Refusals
from cluster_gw.telemetry.catalog import REFUSALS
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import MS_PER_S, LeaseId

REDIS_GRACE_S: Final = 2.0  # a restarted server is back within 0.1 s, a failover takes longer
REDIS_RETRY_S: Final = 0.05
REDIS_RETRY_AFTER_MS: Final = 1000
LEASE_MARGIN_S: Final = 30.0


class Admitter:
    """Takes capacity for targets of any request of this worker."""

    def __init__(
        self,
        admissions: Admissions,
        refusals: Refusals,
        accounts: Accounts,
        registry: Registry,
        clock: Clock,
    ) -> None:
        self._admissions = admissions
        self._refusals = refusals
        self._accounts = accounts
        self._registry = registry
        self._clock = clock

    async def admit(self, exchange: Exchange, target: Target, ask: int) -> Lease | Refusal:
        """Reserve capacity of a target for this request.

        Args:
            exchange: the request.
            target: what to reserve.
            ask: number of this question within the request; makes the lease id.

        Raises:
            ClusterFault: Redis did not answer within the grace or the client's deadline.
        """
        demand = exchange.context.demand
        known = self._refusals.find(target.limits, demand, self._clock.monotonic_s())
        if known is not None:
            return known
        started_s = self._clock.monotonic_s()
        try:
            answer = await self._reserve(exchange, target, LeaseId(f"{exchange.id}.{ask}"))
        finally:
            exchange.spent.redis_s += self._clock.monotonic_s() - started_s
        if isinstance(answer, Refusal):
            self._registry.add(REFUSALS, target.route.provider, answer.gate.value)
            self._refusals.remember(target.limits, demand, answer, self._clock.monotonic_s())
        return answer

    async def _reserve(
        self, exchange: Exchange, target: Target, lease_id: LeaseId
    ) -> Lease | Refusal:
        started_s = self._clock.monotonic_s()
        give_up_s = min(exchange.deadline_s, started_s + REDIS_GRACE_S)
        ttl_ms = self._ttl_ms(exchange, target, started_s)
        demand = exchange.context.demand
        while True:
            try:
                return await self._admissions.reserve(
                    target.limits, lease_id, demand, ttl_ms=ttl_ms
                )
            except StoreLostError:
                if self._clock.monotonic_s() + REDIS_RETRY_S >= give_up_s:
                    self._release_unknown(exchange, target, lease_id, started_s)
                    raise redis_lost() from None
            except asyncio.CancelledError:
                self._release_unknown(exchange, target, lease_id, started_s)
                raise
            # The lease id makes the repeat safe: if the lost call was applied, it answers again.
            await asyncio.sleep(REDIS_RETRY_S)

    def _release_unknown(
        self, exchange: Exchange, target: Target, lease_id: LeaseId, started_s: float
    ) -> None:
        """Release what may or may not have been reserved; a release of nothing changes nothing."""
        demand = exchange.context.demand
        self._accounts.release(
            Lease(
                id=lease_id,
                target=target.limits,
                estimate_tokens=demand.total_tokens,
                prompt_tokens=demand.input_tokens,
                admitted_at_s=started_s,
            )
        )

    def _ttl_ms(self, exchange: Exchange, target: Target, now_s: float) -> int:
        longest_s = min(exchange.deadline_s - now_s, 2 * target.route.timeouts.total_s)
        return round((max(longest_s, 0.0) + LEASE_MARGIN_S) * MS_PER_S)


def redis_lost() -> ClusterFault:
    """The answer when limits cannot be known: nothing is admitted on a guess."""
    return ClusterFault(
        ErrorBody(
            status=503,
            type="service_unavailable",
            code="redis_lost",
            message="The shared state does not answer; try again shortly.",
            retryable=True,
            retry_after_ms=REDIS_RETRY_AFTER_MS,
        )
    )
