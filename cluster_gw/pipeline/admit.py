"""Asking Redis for a target: one round trip, none when the answer is still known (room 6)."""

import asyncio
import math
from collections.abc import Awaitable
from typing import Final

import msgspec

from cluster_gw.core.limits.windows import NEVER_BY_WAITING, Gate
from cluster_gw.errors import ClusterFault, ErrorBody, StoreLostError
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.counting import Counting
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.session_records import with_room
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import UNDISPATCHED, Lease, Refusal
from cluster_gw.store.alone import AwayError, HeldBackError
from cluster_gw.store.clients import Asked
from cluster_gw.store.outages import SCOPE_PROVIDER
from cluster_gw.store.plan import SCOPE_CLIENT
from cluster_gw.telemetry.catalog import REFUSALS, SHARE_REFUSALS
from cluster_gw.units import MS_PER_S, LeaseId

REDIS_GRACE_S: Final = 2.0  # a restarted server is back within 0.1 s, a failover takes longer
REDIS_RETRY_S: Final = 0.05
REDIS_RETRY_AFTER_MS: Final = 1000
LEASE_MARGIN_S: Final = 30.0
NO_TRIAL: Final = Refusal(
    gate=Gate.TRIAL_TAKEN, scope=SCOPE_PROVIDER, retry_after_ms=REDIS_RETRY_AFTER_MS
)  # without Redis nobody knows who else would try


class Admitted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease and when it was asked for: dispatch must follow within a second of that."""

    lease: Lease
    asked_at_s: float


class Admitter:
    """Takes capacity for targets of any request of this worker."""

    def __init__(self, counting: Counting, clock: Clock) -> None:
        self._admissions, self._holding, self._conditions = counting[:3]
        self._estimator, self._registry = counting[3:]
        self._clock = clock

    def admit(self, exchange: Exchange, target: Target) -> Awaitable[Admitted | Refusal | None]:
        """Reserve capacity of a target for this request; beside the first, hold the client's own.

        While a call to Redis is lost the question is repeated, each under a fresh lease id: the
        store releases a lease whose fate is unknown. Once Redis counts as away the store answers by
        itself, or refuses at once (decision 0033).

        Returns:
            None when the client's deadline passed meanwhile.

        Raises:
            ClusterFault: nothing is let in without Redis, or it was away for too long.
            CapacityFault: the client is at a limit of its own; nothing is reserved.
        """
        if exchange.deadline_s == math.inf:
            return self._admit(exchange, target)
        return self._admit_in_time(exchange, target)

    async def _admit_in_time(self, exchange: Exchange, target: Target) -> Admitted | Refusal | None:
        try:
            async with asyncio.timeout(exchange.deadline_s - self._clock.monotonic_s()):
                return await self._admit(exchange, target)
        except TimeoutError:  # what was asked for is released, whether it was granted or not
            return None

    async def _admit(self, exchange: Exchange, target: Target) -> Admitted | Refusal:
        if self._conditions.are_known:
            barred = self._conditions.barring(target)
            if barred is not None:
                self._registry.add(REFUSALS, target.route.provider, barred.gate.value)
                return barred
        ask = self._enter if self._conditions.is_shut(target) else self._ask
        clock_s = self._clock.monotonic_s
        started_s = asked_at_s = clock_s()
        give_up_s = min(exchange.deadline_s, started_s + REDIS_GRACE_S)
        try:
            while True:
                exchange.asks += 1
                try:
                    answer = await ask(exchange, target, asked_at_s)
                    break
                except AwayError:
                    exchange.is_degraded = True
                    raise redis_lost() from None
                except StoreLostError as fault:
                    await self._pause(fault, target, give_up_s)
                asked_at_s = clock_s()
        finally:
            exchange.spent.redis_s += clock_s() - started_s
        if type(answer) is Refusal:
            exchange.is_degraded |= self._admissions.is_alone(target.limits)
            self._registry.add(REFUSALS, target.route.provider, answer.gate.value)
            if answer.scope == SCOPE_CLIENT:
                self._registry.add(SHARE_REFUSALS, answer.gate.value)
            return answer
        if answer.is_local:
            exchange.is_degraded = True
        return Admitted(lease=answer, asked_at_s=asked_at_s)

    async def _pause(self, fault: StoreLostError, target: Target, give_up_s: float) -> None:
        """Wait before the question is repeated, if at all.

        A client's limit may have room once others have told Redis what they did.

        Raises:
            ClusterFault: that is later than this request may wait.
        """
        held_s = fault.wait_s if isinstance(fault, HeldBackError) else 0.0
        wait_s = max(held_s, REDIS_RETRY_S)
        if self._clock.monotonic_s() + wait_s >= give_up_s:
            raise redis_lost() from None
        if held_s or not self._admissions.is_alone(target.limits):
            await asyncio.sleep(wait_s)

    def could_serve(self, exchange: Exchange, target: Target) -> bool:
        """Whether nothing that is known here speaks against a target that was not tried yet."""
        tokens = self._estimator.known(exchange, target).total_tokens
        return not self._admissions.is_refused(exchange.limits_of(target), tokens)

    def barred_ms(self, exchange: Exchange, target: Target) -> int:
        """How long a target that was tried is known to be barred; 0 when it is not, or forever."""
        tokens = self._estimator.known(exchange, target).total_tokens
        known = (
            self._conditions.barring(target) if self._conditions.are_known else None,
            self._admissions.barring(exchange.limits_of(target), tokens),
        )
        return max(
            (bar.retry_after_ms for bar in known if bar and bar.gate not in NEVER_BY_WAITING),
            default=0,
        )

    async def _enter(
        self, exchange: Exchange, target: Target, asked_at_s: float
    ) -> Lease | Refusal:
        """Ask for the trial of a provider that was in trouble, then as ever; seldom."""
        lease_id, answer = _lease_id(exchange), None
        ttl_ms = self._ttl_ms(exchange, target, asked_at_s)
        try:
            refusal = await self._conditions.enter(target, lease_id, ttl_ms)
        except StoreLostError:
            if not self._admissions.is_alone(target.limits):
                raise
            refusal = NO_TRIAL
        if refusal is not None:
            return refusal
        try:
            answer = await self._ask(exchange, target, asked_at_s)
        finally:
            if not isinstance(answer, Lease):
                self._conditions.leave(lease_id)
        return answer

    async def _ask(self, exchange: Exchange, target: Target, asked_at_s: float) -> Lease | Refusal:
        """Ask for client and target in one write: the hold is sent before the reservation is."""
        asked = self._holding.ask(exchange, asked_at_s)
        demand = exchange.reserved = self._estimator.demand(exchange, target)
        if exchange.session is not None and exchange.session.concerns(target):
            demand = exchange.reserved = with_room(demand)
            exchange.pair = None  # nothing is to be learned of a guess that was not made
        try:
            answer = await self._admissions.reserve(
                exchange.limits_of(target),
                _lease_id(exchange),
                demand,
                ttl_ms=self._ttl_ms(exchange, target, asked_at_s),
            )
        except StoreLostError:
            if asked is not None:  # the client may be held all the same, or know better by now
                await self._holding.conclude(exchange, asked)
            raise
        if asked is not None:
            await self._conclude(exchange, asked, answer)
        return answer

    async def _conclude(self, exchange: Exchange, asked: Asked, answer: Lease | Refusal) -> None:
        """Wait for the hold; a lease beside which nothing is held goes back unused."""
        try:
            await self._holding.conclude(exchange, asked)
        except BaseException:
            if isinstance(answer, Lease):
                self._admissions.settle(answer, UNDISPATCHED)
            raise

    def _ttl_ms(self, exchange: Exchange, target: Target, now_s: float) -> int:
        """Longest life of the attempt, its open and its relay each bounded by the total."""
        longest_s = min(exchange.deadline_s - now_s, 2 * target.route.timeouts.total_s)
        return round((max(longest_s, 0.0) + LEASE_MARGIN_S) * MS_PER_S)


def _lease_id(exchange: Exchange) -> LeaseId:
    """Of the admission that is being asked for."""
    return LeaseId(f"{exchange.id}.{exchange.asks}")


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
