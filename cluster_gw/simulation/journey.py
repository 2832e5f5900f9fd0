"""One request from its ranking to its end: what `pipeline/failover.py` does, in virtual time.

The order of steps is that of the loop there, and every decision is the same function; what is left
out has no place in a simulation: bytes, sockets, waiting for capacity.
"""

import math
from typing import Final, Protocol

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.charge import charge_answer, charge_failure
from cluster_gw.core.outcome.classify import FailureCode, Verdict, classify
from cluster_gw.core.outcome.retry import AttemptPlanner, StopReason
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.statistics import Result, Sample
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.backlog import Backlog, KeyOrder
from cluster_gw.pipeline.health import ANSWERED, SAYS_NOTHING, consequence_of, outcome_of
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.sample import failure_sample
from cluster_gw.pipeline.targets import Target, list_targets
from cluster_gw.simulation.replica import Replica
from cluster_gw.simulation.state import FleetState, Taken
from cluster_gw.simulation.world import Asked, Behaviour, Reply
from cluster_gw.store.lease import Refusal, Settlement
from cluster_gw.store.plan import Plans
from cluster_gw.units import MS_PER_S

EPOCH_MS: Final = 1_767_225_600_000  # a midnight in UTC
LEASE_MARGIN_S: Final = 30.0
BEFORE_HEAD: Final = frozenset(
    {FaultKind.HEADERS_TIMEOUT, FaultKind.DISCONNECTED, FaultKind.DEADLINE, FaultKind.HEDGE}
)
LATE: Final = Fault(kind=FaultKind.DEADLINE)
HEDGED: Final = Fault(kind=FaultKind.HEDGE)


def server_ms(now_s: float) -> int:
    """The server's clock, ms since the epoch, at an instant of a run."""
    return EPOCH_MS + int(now_s * MS_PER_S)


class Surroundings(Protocol):
    """What a journey needs of its fleet."""

    runtime: Runtime
    plans: Plans
    state: FleetState
    deadline_s: float
    is_gated: bool

    def behaviour(self, target: Target) -> tuple[int, Behaviour]:
        """The provider of a target and its place in the scenario of this run."""

    def later(self, at_s: float, journey: "Journey") -> None:
        """Have `resume` called at an instant."""

    def note_attempt(self, journey: "Journey", target: Target, code: str | None) -> None:
        """An attempt ended, with a code unless it was answered."""

    def note_end(self, journey: "Journey", served: Target | None, now_s: float) -> None:
        """The request is over."""


class Journey:
    """One request.

    Args:
        fleet: around it.
        replica: the worker that has it.
        asked: what is asked.
        number: of the request.

    Attributes:
        asked: what is asked.
        replica: the worker that has it.
        number: of the request.
        attempts: calls made so far.
        wasted: those of them without an answer.
        refusals: targets that were not admitted.
        began_s: when the running attempt began.
    """

    __slots__ = (
        "_backlog",
        "_demand",
        "_fleet",
        "_pending",
        "_planner",
        "_used",
        "asked",
        "attempts",
        "began_s",
        "number",
        "refusals",
        "replica",
        "wasted",
    )  # fmt: skip

    def __init__(self, fleet: Surroundings, replica: Replica, asked: Asked, number: int) -> None:
        self._fleet = fleet
        self.replica = replica
        self.asked = asked
        self.number = number
        self.attempts = self.wasted = self.refusals = 0
        self.began_s = asked.at_s
        self._used: dict[str, int] = {}
        self._pending: tuple[Target, Taken, Reply] | None = None

    def start(self, context: RouteContext, ranking: Ranking, inputs: StrategyInputs) -> None:
        """Begin with a ranking."""
        runtime, replica = self._fleet.runtime, self.replica
        policy = runtime.policy
        self._demand = context.demand
        self._planner = AttemptPlanner(policy.attempts, started_ms=self._ms(self.asked.at_s))
        self._backlog = Backlog(
            list_targets(ranking, runtime.targets),
            KeyOrder(inputs, replica.turns.take, roomiest_first=policy.roomiest_key_first),
        )
        self._go_on(self.asked.at_s)

    def resume(self, now_s: float) -> None:
        """The running attempt has ended."""
        if self._pending is None:
            return
        target, taken, reply = self._pending
        self._pending = None
        self._fleet.behaviour(target)[1].ended(target.key.id)
        if reply.fault is None:
            self._answer(target, taken, reply, now_s)
            return
        verdict = self._fail(target, taken, reply, now_s)
        if verdict.fatal:
            self._fleet.note_end(self, None, now_s)
        else:
            self._go_on(now_s)

    def _go_on(self, now_s: float) -> None:
        while self._stop_reason(now_s) is None:
            target = self._backlog.take()
            if target is None:
                break
            if self._try(target, now_s):
                return
        self._fleet.note_end(self, None, now_s)

    def _stop_reason(self, now_s: float) -> StopReason | None:
        if now_s >= self.asked.at_s + self._fleet.deadline_s:
            return StopReason.DEADLINE
        if not self.attempts or not self._backlog:
            return None
        return self._planner.stop_reason(self.attempts, self._ms(now_s))

    def _try(self, target: Target, now_s: float) -> bool:
        """Ask for capacity and call; whether there is a call under way now."""
        fleet, provider = self._fleet, target.route.provider
        plan, now_ms = fleet.plans.of(target.limits), server_ms(now_s)
        token = f"{self.number}.{self.attempts}.{self.refusals}"
        zone, tokens = target.limits.day_reset, self._demand.total_tokens
        if not fleet.is_gated:
            self._call(target, fleet.state.count(plan, zone, token, tokens, now_ms), now_s)
            return True
        if self.replica.barring(target, plan.model, now_s) is not None:
            self.refusals += 1
            return False
        end_s = self.asked.at_s + fleet.deadline_s
        ttl_s = min(end_s - now_s, 2 * target.route.timeouts.total_s) + LEASE_MARGIN_S
        expiry_ms = now_ms + round(ttl_s * MS_PER_S)
        admitted: Taken | Refusal | None = self.replica.enter(provider, token, now_ms, expiry_ms)
        if admitted is None:
            admitted = fleet.state.reserve(plan, zone, token, tokens, now_ms, expiry_ms)
        if isinstance(admitted, Refusal):
            self.replica.leave(provider, token, now_ms)
            self.refusals += 1
            return False
        self._call(target, admitted, now_s)
        return True

    def _call(self, target: Target, taken: Taken, now_s: float) -> None:
        place, behaviour = self._fleet.behaviour(target)
        luck, provider = self.asked.luck[place], target.route.provider
        again = self._used.get(provider, 0)
        self._used[provider] = again + 1
        if again:  # luck of its own for each further call there, as settled as the first
            share = (luck.share + again * GOLDEN) % 1.0
            luck = type(luck)(share, luck.first_byte, luck.rest)
        reply = behaviour.call(self.asked, luck, target.key.id, now_s)
        behaviour.began(target.key.id)
        self.began_s = now_s
        reply = self._bounded(reply, now_s)
        self._pending = target, taken, reply
        self._fleet.later(now_s + reply.took_s, self)

    def _bounded(self, reply: Reply, now_s: float) -> Reply:
        """A call ends at the client's deadline, its first byte when the time budget is spent."""
        hedge_ms = self._planner.hedge_remaining_ms(self.attempts, self._ms(now_s))
        until_byte_s = reply.first_byte_s if reply.fault is None else reply.took_s
        if hedge_ms is not None and until_byte_s > hedge_ms / MS_PER_S:
            reply = Reply(took_s=hedge_ms / MS_PER_S, fault=HEDGED)
        left_s = self.asked.at_s + self._fleet.deadline_s - now_s
        if reply.took_s <= left_s:
            return reply
        has_begun = reply.fault is None and reply.first_byte_s <= left_s
        return Reply(
            took_s=left_s, first_byte_s=reply.first_byte_s if has_begun else 0.0, fault=LATE
        )

    def _answer(self, target: Target, taken: Taken, reply: Reply, now_s: float) -> None:
        asked, now_ms = self.asked, server_ms(now_s)
        total = asked.input_tokens + asked.output_tokens
        usage = Usage(
            prompt_tokens=asked.input_tokens,
            completion_tokens=asked.output_tokens,
            total_tokens=total,
        )
        charge = charge_answer(usage, 0, self._demand)
        sample = Sample(
            result=Result.SUCCESS,
            output_tokens=charge.output_tokens,
            latency_ms=round(reply.took_s * MS_PER_S),
            first_byte_ms=round(reply.first_byte_s * MS_PER_S),
        )
        is_gated = self._fleet.is_gated
        if is_gated:
            self.replica.succeeded(target, taken, now_ms, now_s)
        settlement = Settlement(
            counts_request=True,
            tokens=charge.tokens,
            outcome="success",
            health=ANSWERED if is_gated else SAYS_NOTHING,
            sample=sample,
        )
        self._fleet.state.settle(taken, settlement, now_ms)
        self._fleet.state.last_good = target.route.id
        self.attempts += 1
        self._fleet.note_attempt(self, target, None)
        self._fleet.note_end(self, target, now_s)

    def _fail(self, target: Target, taken: Taken, reply: Reply, now_s: float) -> Verdict:
        fleet, policy, now_ms = self._fleet, self._fleet.runtime.policy, server_ms(now_s)
        fault = reply.fault or LATE
        is_silent = fault.kind in BEFORE_HEAD and not reply.first_byte_s
        tally = None if is_silent else Tally(1)
        broken = Broken(fault=fault, tally=tally)
        verdict = classify(fault)
        hung_s = reply.took_s if is_silent else 0.0
        consequence = consequence_of(broken, verdict, policy, hung_s=hung_s)
        outcome = outcome_of(target, broken, consequence, policy, now_ms)
        could_serve = self._sibling_could_serve(target, now_ms)
        charge = charge_failure(fault, None, None if is_silent else 0, self._demand)
        sample = None
        if not consequence.is_exempt:
            sample = failure_sample(outcome, verdict, reply.took_s)
        settlement = Settlement(
            counts_request=charge.counts_request,
            tokens=charge.tokens,
            outcome=verdict.failure_class.value,
            health=outcome if fleet.is_gated else SAYS_NOTHING,
            sample=sample,
        )
        is_booked = fleet.state.settle(taken, settlement, now_ms)
        if fleet.is_gated and (is_booked or not consequence.is_exempt):
            judged, now = (verdict, consequence), (now_ms, now_s)
            self.replica.failed(target, taken, judged, now, sibling_could_serve=could_serve)
        self.replica.leave(target.route.provider, taken.id, now_ms)
        self.attempts += 1
        self.wasted += 1
        fleet.note_attempt(self, target, verdict.code.value)
        self._planner.record(blames_upstream=verdict.blames_breaker and not outcome.is_exempt)
        if verdict.code is FailureCode.AUTH or verdict.skip.value != "key":
            self._backlog.skip(target, verdict.skip)
        return verdict

    def _sibling_could_serve(self, target: Target, now_ms: int) -> bool:
        plans, state, tokens = self._fleet.plans, self._fleet.state, self._demand.total_tokens
        return any(
            state.refusal(plans.of(one.limits), one.limits.day_reset, "sibling", tokens, now_ms)
            is None
            for one in self._backlog.siblings(target)
        )

    def _ms(self, at_s: float) -> int:
        return round(at_s * MS_PER_S)


GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0  # steps that fill 0..1 evenly
