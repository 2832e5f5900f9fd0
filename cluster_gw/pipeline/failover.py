"""The one loop: admit, attempt, answer, or step to the next target of the same ranking.

It serves every surface, buffered and streamed alike; a buffered answer is a stream that commits at
its end. The only step back of the walk (8 to 6) happens here.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.outcome.classify import FailureCode, Verdict, classify
from cluster_gw.core.outcome.exhaustion import exhausted, stream_interrupted
from cluster_gw.core.outcome.retry import AttemptPlanner, StopReason
from cluster_gw.core.outcome.trace import AttemptRecord
from cluster_gw.errors import UpstreamFault
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.backlog import Backlog, KeyOrder
from cluster_gw.pipeline.continuing import remember, targets_of
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.headers import detail_extensions
from cluster_gw.pipeline.health import Booking, consequence_of, outcome_of
from cluster_gw.pipeline.opened import AttemptPlan, Broken, OpenStream
from cluster_gw.pipeline.relay import Relay
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.sample import failure_sample
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.trail import (
    record_failure,
    record_success,
    skip_excluded,
    skip_refused,
)
from cluster_gw.pipeline.translation import answer_body, stream_encoder
from cluster_gw.pipeline.vendor_headers import headers_of
from cluster_gw.pipeline.waiting import Turn
from cluster_gw.store.admission import Lease, Refusal
from cluster_gw.surfaces.base import StreamEncoder
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import DispatchLate

MAX_REDISPATCHES: Final = 3
LATE: Final = Fault(
    kind=FaultKind.CONNECT, sent=Sent.NOT_SENT, message="no connection within 1 s of admission"
)


EncoderOf = Callable[..., StreamEncoder]


class Failover:
    """Serves one exchange.

    Args:
        shell: what to act through.
        exchange: the request; records and skips are added to it.
        reply: the client's end.

    Attributes:
        attempt_of: makes an attempt.
        encoder_of: makes what writes a stream for the client.
    """

    attempt_of: type[Attempt] = Attempt
    encoder_of: EncoderOf = staticmethod(stream_encoder)

    def __init__(self, shell: Shell, exchange: Exchange, reply: Reply) -> None:
        policy = exchange.runtime.policy
        self._shell = shell
        self._exchange = exchange
        self._reply = reply
        self._clock = shell.clock
        self._planner = AttemptPlanner(policy.attempts, started_ms=self._ms(exchange.started_s))
        targets = targets_of(exchange)
        exchange.keys = KeyOrder(
            exchange.inputs, exchange.turns.take, roomiest_first=policy.roomiest_key_first
        )
        self._backlog = Backlog([*targets], exchange.keys)
        self._turn = Turn(shell.waiting, exchange, targets)
        self._refused = exchange.refused
        self._tried: list[Target] = []
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
        if self._exchange.ranking.excluded:
            self._exchange.skipped.extend(skip_excluded(self._exchange.ranking.excluded))
        try:
            stop = await self._try_all()
        finally:
            self._turn.leave()
        if stop is None:
            return self._stream_code
        self._exchange.skipped.extend(skip_refused(self._exchange, self._refused))
        self._refused.clear()  # told of already
        raise UpstreamFault(
            exhausted(
                self._records_with_bars(),
                self._exchange.skipped,
                combo=self._exchange.ranking.combo,
                stop=stop,
                now_ms=self._clock.wall_ms(),
            )
        )

    def _records_with_bars(self) -> list[AttemptRecord]:
        """The attempts, each with what bars its target by now: a breaker, a bench, a limit."""
        bars = (self._shell.admitter.barred_ms(self._exchange, target) for target in self._tried)
        return [
            msgspec.structs.replace(record, rest_ms=max(barred_ms, record.rest_ms or 0))
            if barred_ms
            else record
            for record, barred_ms in zip(self._exchange.records, bars, strict=True)
        ]

    async def _try_all(self) -> StopReason | None:
        """Try targets until one answers (None) or no other may be tried (why)."""
        if self._shell.waiting.lines:
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
        if not self._index and self._exchange.deadline_s == math.inf:
            return None
        now_s = self._clock.monotonic_s()
        if now_s >= self._exchange.deadline_s:
            return StopReason.DEADLINE
        # No policy forbids the first attempt; later, "no more candidates" must not be reported as
        # "out of time".
        if not self._index or not self._backlog:
            return None
        return self._planner.stop_reason(self._index, self._ms(now_s))

    async def _try(self, target: Target) -> Verdict | None:
        """Try one target; None when it was not admitted or when it gave the answer."""
        for _ in range(MAX_REDISPATCHES):
            admitted = await self._shell.admitter.admit(self._exchange, target)
            if admitted is None:
                return None
            if type(admitted) is Refusal:
                self._refused.append((target, admitted))
                return None
            self._turn.leave()
            answer = await self._attempt(target, admitted.lease, admitted.asked_at_s)
            if type(answer) is not DispatchLate:
                return answer
        return self._fail(target, None, Broken(fault=LATE), self._clock.monotonic_s())

    async def _attempt(
        self, target: Target, lease: Lease, asked_at_s: float
    ) -> Verdict | DispatchLate | None:
        """Make the call and act on what came back; None when it was the answer."""
        attempt = self.attempt_of(
            self._exchange,
            target,
            lease,
            self._plan(asked_at_s),
            upstream=self._shell.upstream,
            alarms=self._shell.alarms,
            clock=self._clock,
        )
        self._open_lease = lease
        try:
            if target.recalls is not None or self._exchange.session is not None:
                await self._shell.sessions.prepare(self._exchange, attempt)
            opened = await attempt.open()
            clock_s = self._clock.monotonic_s
            took_s = clock_s() - attempt.started_s
            self._exchange.spent.upstream_s += took_s
            if attempt.answered_s:
                self._shell.quotas.note(target, lease, attempt)
            if isinstance(opened, Completion):
                await self._answer(attempt, opened, round(took_s * MS_PER_S))
            elif isinstance(opened, OpenStream):
                await self._relay(attempt, opened)
            elif isinstance(opened, Broken):
                return self._fail(target, lease, opened, attempt.started_s)
            else:
                self._shell.accounts.release(lease)
                self._settled(target)
                return opened
        except BaseException:
            # Cancelled (client gone, shutdown) or a bug: either way the lease is settled once.
            if self._open_lease is not None:
                self._shell.accounts.abandoned(self._exchange, lease, attempt)
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

    async def _answer(self, attempt: Attempt, completion: Completion, latency_ms: int) -> None:
        exchange, accounts = self._exchange, self._shell.accounts
        accounts.completed(exchange, attempt.lease, completion, latency_ms=latency_ms)
        self._settled(attempt.target)
        remember(self._shell.memory, exchange, attempt.target, completion.kept_as)
        if attempt.heard is not None:
            self._shell.sessions.keep(exchange, attempt, completion)
        if exchange.tap is not None:
            exchange.tap.finish = completion.finish_reason
        record = self._served_by(attempt, completion.usage)
        exchange.records.append(record)
        headers = headers_of(exchange, attempt.target, self._clock, is_stream=False)
        extensions = self._extensions(record) if exchange.hints.detail else None
        target, answer = attempt.target, attempt.answer
        created_s = 0 if answer is None else self._now_s()
        body = answer_body(exchange, target, completion, answer, extensions, created_s)
        if exchange.hold is not None:
            await accounts.finish(exchange)
        if not self._reply.whole_now(200, headers, body):
            await self._reply.whole(200, headers, body)

    async def _relay(self, attempt: Attempt, stream: OpenStream) -> None:
        exchange = self._exchange
        record = self._served_by(attempt, None)
        headers = headers_of(exchange, attempt.target, self._clock, is_stream=True)
        extensions = self._extensions(record) if exchange.hints.detail else None
        encoder = self.encoder_of(exchange, attempt.target, self._now_s(), anew=stream.anew)
        relay = Relay(exchange, attempt, stream, encoder, clock=self._clock, extensions=extensions)
        try:
            fault = await relay.run(self._reply, headers)
        except BaseException:
            relay.abort()
            raise
        if fault is None:
            await self._end_well(attempt, relay, record)
        else:
            relay.abort()
            await self._end_broken(attempt, relay, fault)

    def _now_s(self) -> int:
        return self._clock.wall_ms() // MS_PER_S

    def _extensions(self, record: AttemptRecord) -> dict[str, Any]:
        """Members of our own for the answer of a client that asked for them."""
        return detail_extensions(self._exchange, record, self._clock.wall_ms())

    async def _end_well(self, attempt: Attempt, relay: Relay, record: AttemptRecord) -> None:
        exchange, accounts = self._exchange, self._shell.accounts
        accounts.streamed(
            exchange,
            attempt.lease,
            attempt.tally,
            latency_ms=self._ms(self._clock.monotonic_s() - attempt.started_s),
            first_byte_ms=record.duration_ms,
        )
        self._settled(attempt.target)
        remember(self._shell.memory, exchange, attempt.target, attempt.tally.kept_as)
        if attempt.heard is not None:
            self._shell.sessions.keep(exchange, attempt, None)
        if exchange.tap is not None:
            exchange.tap.finish = attempt.tally.finish_reason
        exchange.records.append(msgspec.structs.replace(record, usage=attempt.tally.usage))
        relay.close()
        await self._finish(relay, relay.encoder.done())

    async def _end_broken(self, attempt: Attempt, relay: Relay, fault: Fault) -> None:
        exchange = self._exchange
        if fault.kind is FaultKind.CLIENT_GONE:
            self._shell.accounts.abandoned(exchange, attempt.lease, attempt)
            self._settled(attempt.target)
            exchange.client_gone = True
            self._reply.is_done = True
            return
        broken = Broken(fault=fault, tally=attempt.tally)
        self._fail(attempt.target, attempt.lease, broken, attempt.started_s, committed=True)
        error = stream_interrupted(exchange.records, combo=exchange.ranking.combo)
        self._stream_code = error.code
        await self._finish(relay, relay.encoder.error(error, exchange.id))

    async def _finish(self, relay: Relay, last: bytes) -> None:
        """Send the last bytes of a stream to a client that may have stopped reading."""
        await self._shell.accounts.finish(self._exchange)
        if not await relay.finish(self._reply, last):
            self._exchange.client_gone = True

    def _served_by(self, attempt: Attempt, usage: Usage | None) -> AttemptRecord:
        """Note that this attempt gives the answer, from now on."""
        exchange, clock_s = self._exchange, self._clock.monotonic_s
        now_s = clock_s()
        exchange.served_by = attempt.target
        exchange.spent.first_byte_s = now_s - exchange.started_s
        return record_success(exchange, attempt.target, attempt.started_s, now_s, usage)

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
        is_blamed, rest_ms = verdict.blames_breaker, None
        if lease is not None:
            took_s = self._clock.monotonic_s() - started_s
            booking = self._book(target, lease, broken, verdict, took_s)
            is_blamed = is_blamed and not booking.outcome.is_exempt
            rest_ms = booking.rest_ms(self._clock.wall_ms())
            charge = self._shell.accounts.failed(self._exchange, lease, broken, verdict, booking)
            self._settled(target)
            self._exchange.tokens, self._exchange.tokens_source = charge.tokens, charge.source
        now_s = self._clock.monotonic_s()
        record = record_failure(
            self._exchange, target, started_s, now_s, broken, verdict, rest_ms=rest_ms
        )
        self._exchange.records.append(record)
        self._tried.append(target)
        self._shell.recorder.attempt_failed(self._exchange, target, record)
        if not committed:
            self._index += 1
            self._planner.record(blames_upstream=is_blamed)
            scope = verdict.skip
            # A wrong key is wrong for every model; any other key fault concerns this target only.
            if verdict.code is FailureCode.AUTH or scope.value != "key":
                self._backlog.skip(target, scope)
        return verdict

    def _book(
        self, target: Target, lease: Lease, broken: Broken, verdict: Verdict, took_s: float
    ) -> Booking:
        """Tell what a failure means for its target, and book what it means for its model.

        A failure that is forgiven unless it is the third in a row waits for what settlement says.
        """
        exchange, shell, policy = self._exchange, self._shell, self._exchange.runtime.policy
        is_silent = exchange.request.stream and broken.tally is None
        means = consequence_of(broken, verdict, policy, hung_s=took_s if is_silent else 0.0)
        consequence = shell.conditions.of_now(target, means)
        outcome = outcome_of(target, broken, consequence, policy, self._clock.wall_ms())
        if outcome.cooldown is not None and outcome.cooldown.checks_key:
            shell.conditions.check_key(target)
        tools = exchange.context.needs.tools
        shell.conditions.proven(target, broken.fault, verdict, exchange.id, with_tools=tools)
        siblings = self._backlog.siblings(target)
        could_serve = any(shell.admitter.could_serve(exchange, one) for one in siblings)

        def book() -> None:
            shell.conditions.failed(
                lease, verdict, consequence, policy, sibling_could_serve=could_serve
            )

        if consequence.is_exempt:
            return Booking(outcome=outcome, on_booked=book)
        book()
        return Booking(outcome=outcome, sample=failure_sample(outcome, verdict, took_s))

    def _settled(self, target: Target) -> None:
        """The lease of this target is settled; somebody may wait for what it held."""
        self._open_lease = None
        self._shell.waiting.ring(target)

    async def _wait_for_capacity(self) -> bool:
        """Wait until a refused target may be free; whether there is one to try again."""
        may_try = bool(self._refused) and await self._turn.wait(self._refused)
        if may_try:
            self._backlog.put_back(target for target, _ in self._refused)
            self._refused.clear()
        return may_try

    def _ms(self, at_s: float) -> int:
        return round(at_s * MS_PER_S)
