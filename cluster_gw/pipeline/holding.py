"""A client's own limits around one request: held beside its first reservation, settled once.

Rooms 6 and 10. A client without limits holds nothing and costs nothing.
"""

from typing import Final

from cluster_gw.core.limits.allowance import BUDGETS, MICRO_PER_USD, Allowance, ClientGate
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.price import FREE, cost_micro_usd
from cluster_gw.core.outcome.charge import Charge
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.exhaustion import FLOOR_MS, UNAVAILABLE_WAIT_MS
from cluster_gw.errors import CapacityFault, ClusterFault, ErrorBody, RecordUnreadableError
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.pipeline.exchange import Exchange, Hold
from cluster_gw.store.admission import TargetLimits
from cluster_gw.store.clients import Asked, Claim, ClientRefusal, Holds
from cluster_gw.telemetry.catalog import CLIENT_REFUSALS
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import MS_PER_S, LeaseId, RouteId

HOLD_MARGIN_S: Final = 30.0
RATE_LIMITED: Final = "client_rate_limited"
BUDGET_EXCEEDED: Final = "client_budget_exceeded"
TOO_LARGE: Final = "client_request_too_large"
CLIENT_CODES: Final = frozenset({RATE_LIMITED, BUDGET_EXCEEDED, TOO_LARGE})


class Holding:
    """Takes, bills and settles the holds of any request of this worker."""

    def __init__(self, holds: Holds, estimator: Estimator, registry: Registry) -> None:
        self._holds = holds
        self._estimator = estimator
        self._registry = registry

    def ask(self, exchange: Exchange, now_s: float) -> Asked | None:
        """Send the request's claim; None when there is nothing to hold, or it is held already.

        Raises:
            CapacityFault: the client was refused a moment ago and the refusal still stands.
        """
        hold = exchange.hold
        if hold is None:
            if exchange.allowance is None:
                return None
            demand = self._estimator.largest(exchange, exchange.allowance)
            claim = claim_of(exchange, exchange.allowance, demand)
            refusal = self._holds.barring(claim)
            if refusal is not None:
                raise self._refused(exchange, refusal)
            hold = exchange.hold = Hold(claim=claim)
        elif hold.is_granted:
            return None
        asked = self._holds.ask(hold.claim, ttl_ms=ttl_ms_of(exchange, now_s))
        hold.is_sent = hold.is_sent or asked.is_sent
        return asked

    async def conclude(self, exchange: Exchange, asked: Asked) -> None:
        """Wait for the answer to a claim.

        Raises:
            CapacityFault: the client is refused; nothing is held.
            ClusterFault: what Redis holds of the client cannot be read; nothing is held.
            StoreLostError: whether it is held is unknown; `settle` releases it.
        """
        try:
            answer = await asked.answer()
        except RecordUnreadableError:
            exchange.hold = None  # nothing was taken
            raise record_unreadable() from None
        exchange.is_degraded |= asked.is_local
        if isinstance(answer, ClientRefusal):
            if not asked.is_local:  # else Redis may hold what it was asked for before it went away
                exchange.hold = None
            raise self._refused(exchange, answer)
        exchange.standing = answer
        if exchange.hold is not None:
            exchange.hold.is_granted = True

    def bill(self, exchange: Exchange, target: TargetLimits, charge: Charge) -> None:
        """Add what an attempt is charged to what the request has used."""
        if exchange.hold is None:
            return
        used = exchange.used
        used.requests += charge.counts_request
        used.tokens += charge.tokens
        route = exchange.runtime.catalog.routes.get(RouteId(f"{target.provider}/{target.model}"))
        used.micro_usd += cost_micro_usd(
            FREE if route is None else route.price,
            input_tokens=charge.tokens - charge.output_tokens,
            output_tokens=charge.output_tokens,
        )

    def settle(self, exchange: Exchange) -> None:
        """Replace what is held by what the request has used; a second time does nothing."""
        hold, exchange.hold = exchange.hold, None
        if hold is not None and (hold.is_sent or hold.claim.is_local):
            self._holds.settle(hold.claim, exchange.used)

    def finish(self, exchange: Exchange) -> bool:
        """Settle before the last byte goes out, so that a slot is free when the client asks again.

        Returns:
            Whether to give the loop one turn first, where concurrency is limited: the settlement is
            then on its way to Redis before the answer is on its way to the client, whichever worker
            it asks next.
        """
        hold = exchange.hold
        if hold is None:
            return False
        self.settle(exchange)
        return hold.claim.allowance.concurrency is not None

    def _refused(self, exchange: Exchange, refusal: ClientRefusal) -> CapacityFault:
        exchange.standing = refusal.standing
        self._registry.add(CLIENT_REFUSALS, refusal.gate.value)
        return CapacityFault(refusal_body(refusal))


def record_unreadable() -> ClusterFault:
    """The answer when what Redis holds of the client cannot be read: no target would help."""
    known = ERROR_CODES["record_unreadable"]
    return ClusterFault(
        ErrorBody(
            status=known.status,
            type=known.type,
            code="record_unreadable",
            message="The shared state of this API key cannot be read; the operator must mend it.",
            retryable=True,
            retry_after_ms=UNAVAILABLE_WAIT_MS,
        )
    )


def claim_of(exchange: Exchange, allowance: Allowance, demand: Demand) -> Claim:
    """What a request asks for: its demand, at the price of the dearest route it may take."""
    prices = {candidate.route.price for candidate in exchange.ranking.candidates}

    def dearest(output_tokens: int) -> int:
        costs = (
            cost_micro_usd(p, input_tokens=demand.input_tokens, output_tokens=output_tokens)
            for p in prices
        )
        return max(costs, default=0)

    return Claim(
        id=LeaseId(exchange.id),
        client=exchange.client,
        allowance=allowance,
        tokens=demand.total_tokens,
        prompt_tokens=demand.input_tokens,
        micro_usd=dearest(demand.output_tokens),
        prompt_micro_usd=dearest(0),
    )


def ttl_ms_of(exchange: Exchange, now_s: float) -> int:
    """Longest life of a request: all its attempts, the last one's open and relay bounded each."""
    totals_s = [c.route.timeouts.total_s for c in exchange.ranking.candidates]
    budget_s = exchange.runtime.policy.attempts.time_budget_ms / MS_PER_S
    longest_s = min(exchange.deadline_s - now_s, budget_s + 2 * max(totals_s, default=0.0))
    return round((max(longest_s, 0.0) + HOLD_MARGIN_S) * MS_PER_S)


def refusal_body(refusal: ClientRefusal) -> ErrorBody:
    """The error of a client at its own limit; `cause` names the limit."""
    gate = refusal.gate
    code = BUDGET_EXCEEDED if gate in BUDGETS else RATE_LIMITED
    if gate is ClientGate.TOO_LARGE:
        code = TOO_LARGE
    known = ERROR_CODES[code]
    return ErrorBody(
        status=known.status,
        type=known.type,
        code=code,
        message=refusal_message(gate, refusal.standing.allowance),
        retryable=code == RATE_LIMITED,
        retry_after_ms=None if code == TOO_LARGE else max(FLOOR_MS, refusal.retry_after_ms),
        cause=gate.value,
    )


def refusal_message(gate: ClientGate, allowance: Allowance) -> str:
    """The sentence for people."""
    match gate:
        case ClientGate.RPM:
            return f"This API key is at its limit of {allowance.rpm} requests per minute."
        case ClientGate.TPM:
            return f"This API key is at its limit of {allowance.tpm} tokens per minute."
        case ClientGate.CONCURRENCY:
            return f"This API key is at its limit of {allowance.concurrency} requests at a time."
        case ClientGate.MONTHLY_TOKENS:
            return f"This API key has used its {allowance.monthly_tokens} tokens of the month."
        case ClientGate.MONTHLY_USD:
            usd = (allowance.monthly_micro_usd or 0) / MICRO_PER_USD
            return f"This API key has used its {usd:.6g} USD of the month."
        case ClientGate.TOO_LARGE:
            return (
                f"The request alone is above the {allowance.tpm} tokens per minute "
                "this API key may use."
            )
