"""A short, bounded wait for capacity (`routing.queue`, off by default)."""

import asyncio
from collections.abc import Sequence

from cluster_gw.core.limits.windows import Gate
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.store.admission import Refusal
from cluster_gw.units import MS_PER_S


class WaitingRoom:
    """Counts who waits in this worker.

    Attributes:
        depth: requests waiting now.
    """

    def __init__(self, clock: Clock) -> None:
        self.depth = 0
        self._clock = clock

    async def wait(self, exchange: Exchange, refusals: Sequence[Refusal]) -> bool:
        """Sleep until the first refusal may be over.

        Returns:
            False at once when waiting is off, the room is full, or none opens within the wait the
            client has left.
        """
        policy = exchange.runtime.policy.queue
        asked_ms = exchange.hints.max_wait_ms
        most_ms = policy.max_wait_ms if asked_ms is None else asked_ms
        until_s = min(exchange.started_s + most_ms / MS_PER_S, exchange.deadline_s)
        waits_ms = [r.retry_after_ms for r in refusals if r.gate is not Gate.TOO_LARGE]
        if most_ms <= 0 or not waits_ms or self.depth >= policy.max_depth:
            return False
        now_s = self._clock.monotonic_s()
        if now_s + min(waits_ms) / MS_PER_S > until_s:
            return False
        self.depth += 1
        try:
            await asyncio.sleep(min(waits_ms) / MS_PER_S)
        finally:
            self.depth -= 1
            exchange.spent.waiting_s += self._clock.monotonic_s() - now_s
        return True
