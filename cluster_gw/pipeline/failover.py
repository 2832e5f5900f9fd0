"""The one loop: admit, attempt, answer, or step to the next target of the same ranking.

It serves every surface, buffered and streamed alike; a buffered answer is a stream that commits at
its end. The only step back of the walk (8 to 6) happens here.
"""

import asyncio
from typing import Final

import msgspec

from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.outcome.classify import FailureCode, Verdict, classify
from cluster_gw.core.outcome.exhaustion import exhausted, stream_interrupted
from cluster_gw.core.outcome.retry import AttemptPlanner, StopReason
from cluster_gw.core.outcome.trace import AttemptOutcome, AttemptRecord, SkipCode, Skipped
from cluster_gw.errors import UpstreamFault
from cluster_gw.pipeline.admit import Admitter
from cluster_gw.pipeline.attempt import Attempt, AttemptPlan, Broken, OpenStream
from cluster_gw.pipeline.backlog import Backlog
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.headers import answer_headers, detail_extensions
from cluster_gw.pipeline.record import Recorder
from cluster_gw.pipeline.relay import Relay
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.settle import Accounts
from cluster_gw.pipeline.targets import Target, list_targets
from cluster_gw.pipeline.waiting import Refused, Turn, WaitingRoom
from cluster_gw.pipeline.watchdog import Watchdog
from cluster_gw.store.admission import Lease, Refusal
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import DispatchLate, UpstreamClient
from cluster_gw.wire.redact import redact

MAX_REDISPATCHES: Final = 3
LATE: Final = Fault(
    kind=FaultKind.CONNECT, sent=Sent.NOT_SENT, message="no connection within 1 s of admission"
)


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop acts through; one per worker."""

    admitter: Admitter
    accounts: Accounts
    upstream: UpstreamClient
    waiting: WaitingRoom
    recorder: Recorder
    clock: Clock


class Failover:
    """Serves one exchange.

    Args:
        shell: what to act through.
        exchange: the request; records and skips are added to it.
        reply: the client's end.
    """

    def __init__(self, shell: Shell, exchange: Exchange, reply: Reply) -> None:
        policy = exchange.runtime.policy
        self._shell = shell
        self._exchange = exchange
        self._reply = reply
        self._clock = shell.clock
        self._planner = AttemptPlanner(policy.attempts, started_ms=self._ms(exchange.started_s))
        targets = list_targets(exchange.ranking, exchange.runtime.targets, exchange.rotation)
        self._backlog = Backlog(targets)
        self._turn = Turn(shell.waiting, exchange, targets)
        self._refused: list[Refused] = []
        self._scores = {r.route.id: r.score or 0.0 for r in exchange.ranking.ranked}
        self._index = 0
        self._open_lease: Lease | None = None
        self._stream_code: str | None = None

    async def serve(self) -> str | None:
        """Answer the client.

        Returns:
            None for an answer, the code of the in-band error for a stream that broke.

        Raises:
            UpstreamFault: no target gave an answer and nothing has been sent.
            ClusterFault: Redis did not answer and nothing has been sent.
            CapacityFault: the client is at a limit of its own and nothing has been sent.
        """
        self._note_exclusions()
        try:
            stop = await self._try_all()
        finally:
            self._turn.leave()
        if stop is None:
            return self._stream_code
        self._note_refusals()
        raise UpstreamFault(
            exhausted(
                self._exchange.records,
                self._exchange.skipped,
                combo=self._exchange.ranking.combo,
                stop=stop,
                now_ms=self._clock.wall_ms(),
            )
        )

    async def _try_all(self) -> StopReason | None:
        """Try targets until one answers (None) or no other may be tried (why)."""
        self._refused.extend(await self._turn.queue())
        if self._refused:
            return self._stop_reason() or StopReason.NO_CANDIDATE
        while True:
            stop = self._stop_reason()
            if stop is not None:
                return stop
            target = self._backlog.take()
            if target is not None:
                verdict = await self._try(target)
                if self._reply.status:
                    return None
                if verdict is not None and verdict.fatal:
                    return StopReason.FATAL
            elif not await self._wait_for_capacity():
                return StopReason.NO_CANDIDATE

    def _stop_reason(self) -> StopReason | None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._exchange.deadline_s:
            return StopReason.DEADLINE
        if not self._backlog and self._index:
            return None  # "no more candidates" must not be reported as "out of time"
        return self._planner.stop_reason(self._index, self._ms(now_s))

    async def _try(self, target: Target) -> Verdict | None:
        """Try one target; None when it was not admitted or when it gave the answer."""
        for _ in range(MAX_REDISPATCHES):
            admitted = await self._shell.admitter.admit(self._exchange, target)
            if isinstance(admitted, Refusal):
                self._refused.append((target, admitted))
                return None
            self._turn.leave()
            answer = await self._attempt(target, admitted.lease, admitted.asked_at_s)
            if not isinstance(answer, DispatchLate):
                return answer
        return self._fail(target, None, Broken(fault=LATE), self._clock.monotonic_s())

    async def _attempt(
        self, target: Target, lease: Lease, asked_at_s: float
    ) -> Verdict | DispatchLate | None:
        exchange, shell = self._exchange, self._shell
        dog = Watchdog(asyncio.get_running_loop())
        attempt = Attempt(
            exchange,
            target,
            self._plan(asked_at_s),
            upstream=shell.upstream,
            clock=self._clock,
            dog=dog,
        )
        started_s = self._clock.monotonic_s()
        self._open_lease = lease
        try:
            opened = await attempt.open()
            exchange.spent.upstream_s += self._clock.monotonic_s() - started_s
            match opened:
                case DispatchLate():
                    shell.accounts.release(lease)
                    self._settled(target)
                    return opened
                case Broken():
                    return self._fail(target, lease, opened, started_s)
                case Completion():
                    await self._answer(target, lease, opened, started_s)
                case OpenStream():
                    await self._relay(target, lease, opened, attempt, dog, started_s)
        except BaseException:
            # Cancelled (client gone, shutdown) or a bug: either way the lease is settled once.
            if self._open_lease is not None:
                shell.accounts.abandoned(exchange, lease, attempt)
                self._settled(target)
            raise
        return None

    def _plan(self, asked_at_s: float) -> AttemptPlan:
        now_ms = self._ms(asked_at_s)
        hedge_ms = self._planner.hedge_remaining_ms(self._index, now_ms)
        return AttemptPlan(
            asked_at_s=asked_at_s,
            is_last=not self._planner.would_start_another(self._index, len(self._backlog), now_ms),
            hedge_at_s=None if hedge_ms is None else asked_at_s + hedge_ms / MS_PER_S,
        )

    async def _answer(
        self, target: Target, lease: Lease, completion: Completion, started_s: float
    ) -> None:
        exchange = self._exchange
        self._shell.accounts.completed(exchange, lease, completion)
        self._settled(target)
        exchange.served_by = target
        exchange.spent.first_byte_s = self._clock.monotonic_s() - exchange.started_s
        record = self._record(target, AttemptOutcome.SUCCESS, started_s, completion=completion)
        headers = answer_headers(exchange, target, self._clock.monotonic_s(), is_stream=False)
        extensions = detail_extensions(exchange, record, self._clock.wall_ms())
        body = exchange.surface.encode_completion(completion, extensions)
        await self._shell.accounts.finish(exchange)
        await self._reply.whole(200, headers, body)

    async def _relay(
        self,
        target: Target,
        lease: Lease,
        stream: OpenStream,
        attempt: Attempt,
        dog: Watchdog,
        started_s: float,
    ) -> None:
        exchange, accounts = self._exchange, self._shell.accounts
        exchange.served_by = target
        exchange.spent.first_byte_s = self._clock.monotonic_s() - exchange.started_s
        record = self._record(target, AttemptOutcome.SUCCESS, started_s, append=False)
        headers = answer_headers(exchange, target, self._clock.monotonic_s(), is_stream=True)
        relay = Relay(
            exchange,
            target,
            stream,
            attempt.tally,
            dog=dog,
            clock=self._clock,
            extensions=detail_extensions(exchange, record, self._clock.wall_ms()),
        )
        try:
            fault = await relay.run(self._reply, headers)
        except BaseException:
            relay.abort()
            raise
        if fault is None:
            accounts.streamed(exchange, lease, attempt.tally)
            self._settled(target)
            exchange.records.append(msgspec.structs.replace(record, usage=attempt.tally.usage))
            relay.close()
            await accounts.finish(exchange)
            taken = await relay.finish(self._reply, exchange.surface.encode_done())
            exchange.client_gone = exchange.client_gone or not taken
            return
        relay.abort()
        if fault.kind is FaultKind.CLIENT_GONE:
            accounts.abandoned(exchange, lease, attempt)
            self._settled(target)
            exchange.client_gone = True
            self._reply.is_done = True
            return
        broken = Broken(fault=fault, tally=attempt.tally)
        self._fail(target, lease, broken, started_s, committed=True)
        error = stream_interrupted(self._exchange.records, combo=exchange.ranking.combo)
        self._stream_code = error.code
        event = exchange.surface.encode_stream_error(error, exchange.id)
        await accounts.finish(exchange)
        taken = await relay.finish(self._reply, event)
        exchange.client_gone = exchange.client_gone or not taken

    def _fail(
        self,
        target: Target,
        lease: Lease | None,
        broken: Broken,
        started_s: float,
        *,
        committed: bool = False,
    ) -> Verdict:
        """Book a failed attempt: settle, record, and strike out what it says about others."""
        verdict = classify(broken.fault)
        if lease is not None:
            charge = self._shell.accounts.failed(self._exchange, lease, broken, verdict)
            self._settled(target)
            self._exchange.tokens, self._exchange.tokens_source = charge.tokens, charge.source
        rejected = broken.fault.kind in {FaultKind.GATE, FaultKind.PEEK}
        outcome = AttemptOutcome.REJECTED if rejected else AttemptOutcome.ERROR
        record = self._record(target, outcome, started_s, broken=broken, verdict=verdict)
        self._shell.recorder.attempt_failed(self._exchange, target, record)
        if not committed:
            self._index += 1
            self._planner.record(blames_upstream=verdict.blames_breaker)
            scope = verdict.skip
            # A wrong key is wrong for every model; any other key fault concerns this target only.
            if verdict.code is FailureCode.AUTH or scope.value != "key":
                self._backlog.skip(target, scope)
        return verdict

    def _settled(self, target: Target) -> None:
        """The lease of this target is settled; somebody may wait for what it held."""
        self._open_lease = None
        self._shell.waiting.ring(target)

    def _record(
        self,
        target: Target,
        outcome: AttemptOutcome,
        started_s: float,
        *,
        completion: Completion | None = None,
        broken: Broken | None = None,
        verdict: Verdict | None = None,
        append: bool = True,
    ) -> AttemptRecord:
        exchange = self._exchange
        fault = broken.fault if broken else None
        if completion is None and broken is not None:
            completion = broken.completion
        record = AttemptRecord(
            ordinal=len(exchange.records) + 1,
            route=target.route.id,
            provider=target.route.provider,
            model=target.route.model,
            key_ordinal=exchange.key_ordinal(target),
            outcome=outcome,
            code=verdict.code if verdict else None,
            failure_class=verdict.failure_class if verdict else None,
            reason=verdict.reason if verdict else None,
            status=fault.status if fault else None,
            started_ms=self._ms(started_s) - self._ms(exchange.started_s),
            duration_ms=self._ms(self._clock.monotonic_s()) - self._ms(started_s),
            score=self._scores.get(target.route.id, 0.0),
            message=redact(fault.message, *exchange.runtime.secrets) if fault else "",
            retryable=verdict.retryable if verdict else False,
            retry_after_ms=fault.retry_after_ms if fault else None,
            usage=completion.usage if completion else None,
            sent=verdict.sent if verdict else Sent.SENT,
        )
        if append:
            exchange.records.append(record)
        return record

    async def _wait_for_capacity(self) -> bool:
        """Wait until a refused target may be free; whether there is one to try again."""
        may_try = bool(self._refused) and await self._turn.wait(self._refused)
        if may_try:
            self._backlog.put_back(target for target, _ in self._refused)
            self._refused.clear()
        return may_try

    def _note_exclusions(self) -> None:
        self._exchange.skipped.extend(
            Skipped(
                route=exclusion.route.id,
                provider=exclusion.route.provider,
                model=exclusion.route.model,
                code=SkipCode(exclusion.code.value),
                detail=exclusion.detail,
            )
            for exclusion in self._exchange.ranking.excluded
        )

    def _note_refusals(self) -> None:
        self._exchange.skipped.extend(
            Skipped(
                route=target.route.id,
                provider=target.route.provider,
                model=target.route.model,
                code=SkipCode(refusal.gate.value),
                key_ordinal=self._exchange.key_ordinal(target),
                detail=f"{refusal.gate.value} of the {refusal.scope} is used up",
                retry_after_ms=refusal.retry_after_ms,
            )
            for target, refusal in self._refused
        )

    def _ms(self, at_s: float) -> int:
        return round(at_s * MS_PER_S)
