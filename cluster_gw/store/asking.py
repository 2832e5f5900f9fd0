"""Asking Redis for a lease: together with others of the target, or alone; within one deadline."""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.core.limits.demand import Demand
from cluster_gw.errors import RecordUnreadableError, StoreLostError
from cluster_gw.store.batches import Batches, reservations
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import MissedError, Reply
from cluster_gw.store.packing import ZERO, bulk, four
from cluster_gw.store.plan import Days, Plan
from cluster_gw.store.replies import ScriptMissingError
from cluster_gw.units import LeaseId

LEASE_MAX_MS: Final = 3_600_000  # as in lua/lib/window.lua


class Asking:
    """Runs `reserve`, once more where our day is not the server's or the script is unknown to it.

    Args:
        client: the worker's Redis client.
        days: tell the present day of a zone.
        worker: names the worker in its leases, packed.
        clock_ms: wall clock, ms since the epoch; only tells which calendar day it is.
        monotonic_s: clock for how long a target is asked one by one.
        server_now_ms: the time the script works with; 0 means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        days: Days,
        worker: bytes,
        *,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int],
    ) -> None:
        self._client = client
        self._days = days
        self._worker = worker
        self._clock_ms = clock_ms
        self._server_now_ms = server_now_ms
        self._batches = Batches(
            client,
            reservations(worker),
            days,
            clock_ms=clock_ms,
            monotonic_s=monotonic_s,
            server_now_ms=server_now_ms,
        )

    async def ask(
        self,
        plan: Plan,
        zone: str,
        lease_id: LeaseId,
        demand: Demand,
        ttl_ms: int,
        *,
        bounds: bytes | None,
    ) -> list[Reply]:
        """Ask for a lease.

        Args:
            plan: of the target.
            zone: of its days.
            lease_id: fresh.
            demand: what is reserved.
            ttl_ms: when the lease expires by itself, 1 ms to 1 h (longer is cut).
            bounds: packed, in place of the target's limits; then it is asked alone.

        Raises:
            StoreLostError: whether it was granted is unknown, or nothing was sent (NotSentError).
            ScriptContractError: a bug.
        """
        own = own_of(lease_id, demand, ttl_ms)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._client.deadline_s
        if bounds is not None:
            return await self._ask_until(until_s, plan, zone, own, bounds)
        future: asyncio.Future[list[Reply]] = loop.create_future()
        self._batches.add(plan, zone, own, future)
        try:
            reply = await future
        except (ScriptMissingError, RecordUnreadableError):  # alone it is told which record
            return await self._ask_until(until_s, plan, zone, own, plan.reserve.tail)
        except StoreLostError as fault:
            self._client.count_lost(fault)
            raise
        if reply[0] == 0 and reply[1] == b"day_stale":
            return await self._ask_until(until_s, plan, zone, own, plan.reserve.tail, reply)
        return reply

    async def _ask_until(
        self,
        until_s: float,
        plan: Plan,
        zone: str,
        own: bytes,
        bounds: bytes,
        stale: list[Reply] | None = None,
    ) -> list[Reply]:
        """Run the script alone, however often it takes, within the deadline of the question.

        Args:
            until_s: loop time.
            plan: of the target.
            zone: of its days.
            own: what the script is told of the lease.
            bounds: the limits it is held to.
            stale: the reply that our day is another than the server's, where that is known already.
        """
        try:
            async with asyncio.timeout_at(until_s):
                return await self._ask_alone(plan, zone, own, bounds, stale)
        except TimeoutError:
            fault = MissedError("no reply within the deadline")
            self._client.count_lost(fault)
            raise fault from None

    async def register(
        self, plan: Plan, zone: str, lease_id: LeaseId, demand: Demand, ttl_ms: int
    ) -> list[Reply]:
        """Have a lease counted, whatever the limits of its target say."""
        return await self._ask_alone(plan, zone, own_of(lease_id, demand, ttl_ms), plan.unlimited)

    async def _ask_alone(
        self,
        plan: Plan,
        zone: str,
        own: bytes,
        bounds: bytes,
        stale: list[Reply] | None = None,
    ) -> list[Reply]:
        reply = stale or await self._run(plan, zone, own, bounds, self._clock_ms())
        if reply[0] == 0 and reply[1] == b"day_stale":
            reply = await self._run(plan, zone, own, bounds, int(reply[4]))
        return reply

    async def _run(
        self, plan: Plan, zone: str, own: bytes, bounds: bytes, clock_ms: int
    ) -> list[Reply]:
        now_ms = self._server_now_ms()
        rest = (self._days.packed(clock_ms, zone), bounds, bulk(now_ms) if now_ms else ZERO)
        packed = b"".join((plan.reserve.head, own, self._worker, *rest))
        return await self._client.run_packed(plan.reserve, packed)


def own_of(lease_id: LeaseId, demand: Demand, ttl_ms: int) -> bytes:
    """Pack what `reserve` is told of a lease; a longer life than a lease may have is cut."""
    input_tokens = demand.input_tokens
    return four(
        lease_id,
        str(input_tokens + demand.output_tokens),
        str(input_tokens),
        str(min(LEASE_MAX_MS, ttl_ms)),
    )
