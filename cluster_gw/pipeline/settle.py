"""Settlement of every attempt, whatever its end: exactly one per lease (room 10).

Settlements are queued and ride on the next write to Redis, off the response path; the queue repeats
them until they are applied, which the lease id makes safe.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import FailureClass, Fault, FaultKind
from cluster_gw.core.outcome.charge import (
    NO_SOURCE,
    NOTHING_SENT,
    Charge,
    charge_answer,
    charge_failure,
)
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.core.routing.statistics import SUCCESS as SUCCEEDED
from cluster_gw.core.routing.statistics import Sample
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.counting import Counting
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.health import ANSWERED, SAYS_NOTHING, Booking
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Lease, Outcome, Settlement
from cluster_gw.store.lease import Consumed
from cluster_gw.telemetry.catalog import SETTLE_DRIFT_TOKENS, TOKENS

CLIENT_GONE = Fault(kind=FaultKind.CLIENT_GONE)
SUCCESS: Final = "success"


class Accounts:
    """Turns the end of an attempt into its one settlement."""

    def __init__(self, counting: Counting) -> None:
        self._admissions, self._holding, self._conditions = counting[:3]
        self._estimator, self._registry = counting[3:]

    async def finish(self, exchange: Exchange) -> None:
        """Settle what the client holds, just before the last byte of its answer goes out."""
        if self._holding.finish(exchange):
            await asyncio.sleep(0)

    def end(self, exchange: Exchange) -> None:
        """Settle what the client still holds; nothing when `finish` came before."""
        self._holding.settle(exchange)

    def release(self, lease: Lease) -> None:
        """Give back an admission that was not used."""
        self._settle(None, lease, NOTHING_SENT, "released")

    def completed(
        self, exchange: Exchange, lease: Lease, completion: Completion, *, latency_ms: int
    ) -> None:
        """Charge a buffered answer that took `latency_ms` from the start of its attempt."""
        charge = charge_answer(completion.usage, completion.characters, exchange.demand)
        self._succeed(exchange, lease, charge, latency_ms, None)

    def streamed(
        self,
        exchange: Exchange,
        lease: Lease,
        tally: Tally,
        *,
        latency_ms: int,
        first_byte_ms: int,
    ) -> None:
        """Charge a whole stream; its times are from the start of its attempt."""
        charge = charge_answer(tally.usage, tally.characters, exchange.demand)
        self._succeed(exchange, lease, charge, latency_ms, first_byte_ms)

    def failed(
        self,
        exchange: Exchange,
        lease: Lease,
        broken: Broken,
        verdict: Verdict,
        booking: Booking,
    ) -> Charge:
        """Charge an attempt that gave no answer, or a stream that broke after commit."""
        demand = exchange.demand
        if broken.completion is not None:
            charge = charge_answer(broken.completion.usage, broken.completion.characters, demand)
        else:
            watched = broken.tally if exchange.request.stream else None
            charge = charge_failure(
                broken.fault,
                watched.usage if watched else None,
                watched.characters if watched else None,
                demand,
            )
        self._holding.bill(exchange, lease.target, charge)
        health, sample = booking.outcome, booking.sample
        word = verdict.failure_class.value
        self._settle(exchange, lease, charge, word, health, sample, booking.on_booked)
        return charge

    def abandoned(self, exchange: Exchange, lease: Lease, attempt: Attempt | None) -> None:
        """Charge an attempt whose client left: neutral for health, honest for tokens."""
        if attempt is None or not attempt.dispatched:
            self._settle(None, lease, NOTHING_SENT, FailureClass.CANCELLED.value)
            return
        characters = attempt.tally.characters if exchange.request.stream else None
        charge = charge_failure(CLIENT_GONE, attempt.tally.usage, characters, exchange.demand)
        exchange.tokens, exchange.tokens_source = charge.tokens, charge.source
        self._holding.bill(exchange, lease.target, charge)
        self._settle(exchange, lease, charge, FailureClass.CANCELLED.value)

    def saved(
        self, exchange: Exchange, target: Target, usage: Usage | None, characters: int
    ) -> None:
        """Note an answer that was given without a call: what it would have been charged.

        Args:
            exchange: the request.
            target: of the route that gave the answer first.
            usage: as it was reported then.
            characters: of the answer.
        """
        charge, route = charge_answer(usage, characters, exchange.demand), target.route
        self._admissions.usage.save(
            exchange.client,
            f"{route.provider}/{route.subject}",
            prompt_tokens=charge.tokens - charge.output_tokens,
            completion_tokens=charge.output_tokens,
        )

    def _succeed(
        self,
        exchange: Exchange,
        lease: Lease,
        charge: Charge,
        latency_ms: int,
        first_byte_ms: int | None,
    ) -> None:
        exchange.tokens, exchange.tokens_source = charge.tokens, charge.source
        self._holding.bill(exchange, lease.target, charge)
        sample = Sample(
            result=SUCCEEDED,
            output_tokens=charge.output_tokens,
            latency_ms=latency_ms,
            first_byte_ms=first_byte_ms,
        )
        tools = exchange.context.needs.tools
        self._conditions.succeeded(lease, exchange.runtime.policy, with_tools=tools)
        self._settle(exchange, lease, charge, SUCCESS, ANSWERED, sample)
        self._estimator.teach(exchange, charge)

    def _settle(
        self,
        exchange: Exchange | None,
        lease: Lease,
        charge: Charge,
        outcome: str,
        health: Outcome = SAYS_NOTHING,
        sample: Sample | None = None,
        on_booked: Callable[[], None] | None = None,
    ) -> None:
        """Settle a lease; `exchange` is whose use it is, None where nothing was used or failed."""
        provider = lease.target.provider
        if charge.source is not NO_SOURCE:
            self._registry.add(TOKENS, provider, charge.source, value=charge.tokens)
            drift = abs(lease.estimate_tokens - charge.tokens)
            self._registry.add(SETTLE_DRIFT_TOKENS, provider, value=drift)
        self._admissions.settle(
            lease,
            Settlement(
                counts_request=charge.counts_request,
                tokens=charge.tokens,
                outcome=outcome,
                health=health,
                sample=sample,
                consumed=None if exchange is None else consumed_of(exchange, charge, outcome),
            ),
            on_booked,
        )
        self._conditions.ended(lease)


def consumed_of(exchange: Exchange, charge: Charge, outcome: str) -> Consumed:
    """What a call counts for in the usage: of a failed one the family of its error, too."""
    return Consumed(
        exchange.client,
        charge.output_tokens,
        charge.cached_tokens,
        charge.reasoning_tokens,
        "" if outcome == SUCCESS else outcome,
    )
