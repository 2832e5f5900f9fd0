"""One upstream call up to the point where it is an answer or a fault (rooms 7 and 8).

Nothing reaches the client here. A stream is read until its peek commits; a buffered answer to its
end and through the gate. Whatever is no answer is closed at once, so that nobody pays for tokens
that nobody reads.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.outcome.gate import judge
from cluster_gw.core.outcome.heard import Heard
from cluster_gw.core.outcome.peek import REFUSED, Commit, Peek, Reject
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.core.outcome.tool_calls import join_calls
from cluster_gw.pipeline.alarms import Alarms
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.listening import ListeningDecoder
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.tool_check import find_violation
from cluster_gw.pipeline.translation import (
    Amended,
    foreign_answer,
    headers_with,
    request_body,
)
from cluster_gw.pipeline.vectors import fitted
from cluster_gw.pipeline.watchdog import NEVER_S, Watchdog
from cluster_gw.providers.base import StreamDecoder
from cluster_gw.store.admission import Lease
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import DispatchLate, UpstreamCall, UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse

MAX_ERROR_BYTES: Final = 65_536
ERROR_BODY_S: Final = 5.0  # an error answer has nothing to compute; a slow one is not waited for
MAX_ANSWER_BYTES: Final = 64 * 1_048_576
DISPATCH_WITHIN_S: Final = 1.0  # what the guard bucket of the minute ring covers


class OpenStream(msgspec.Struct, kw_only=True):
    """A committed stream: what was held, and the rest still to come."""

    response: UpstreamResponse
    decoder: StreamDecoder
    held: list[StreamEvent]
    at_end: bool


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that gave no answer.

    Attributes:
        fault: the facts.
        tally: what had been seen of a stream, for the charge; None before a good status.
        completion: a finished answer that the gate rejected.
    """

    fault: Fault
    tally: Tally | None = None
    completion: Completion | None = None


Opened = OpenStream | Completion | Broken | DispatchLate


class AttemptPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the loop decided for this attempt.

    Attributes:
        asked_at_s: loop time just before admission was asked for; dispatch must follow within 1 s.
        is_last: no other attempt would be started if this one failed.
        hedge_at_s: when the request's time budget ends the wait for a first byte, None if never.
    """

    asked_at_s: float
    is_last: bool
    hedge_at_s: float | None


class Attempt:
    """Makes one call under one lease.

    Attributes:
        target: what is called.
        lease: the capacity it was admitted with.
        started_s: clock reading at the start.
        dog: bounds its phases; the relay of a committed stream goes on using it.
        tally: what the stream has said so far.
        answered_s: clock reading when the head of an answer came; 0 when none did.
        answer: the whole of a buffered one, where the client speaks another dialect.
        amended: the request as this target is to see it; None for as it came.
        heard: listens to a stream for what later requests need; None for most.
        dispatched: the request was handed to a connection; until then its admission costs nothing.
    """

    def __init__(
        self,
        exchange: Exchange,
        target: Target,
        lease: Lease,
        plan: AttemptPlan,
        *,
        upstream: UpstreamClient,
        alarms: Alarms,
        clock: Clock,
    ) -> None:
        self.target = target
        self.lease = lease
        self.started_s = clock.monotonic_s()
        self.dog = Watchdog(alarms)
        self.tally = Tally(exchange.request.choices)
        self.answer: Answer | None = None
        self.amended: Amended | None = None
        self.heard: Heard | None = None
        self.dispatched = False
        self._exchange = exchange
        self._plan = plan
        self._upstream = upstream
        self._clock = clock
        self._peek: Peek | None = None
        self.answered_s = 0.0
        self._response: UpstreamResponse | None = None
        timeouts = target.route.timeouts
        self._headers_wait_s = timeouts.first_byte_s
        if not exchange.request.stream:  # its first byte comes when all of it is there
            self._headers_wait_s = max(timeouts.first_byte_s, timeouts.stall_s)

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the answer, in lower case; none when there was no answer."""
        return {} if self._response is None else self._response.headers

    async def open(self) -> Opened:
        """Call the upstream and wait for an answer; see `Opened` for what may come back."""
        self._bound()
        # The next bound there will mostly be: its timer is made only once.
        self.dog.limit(self.started_s + self._headers_wait_s, FaultKind.HEADERS_TIMEOUT)
        opened: Opened | None = None
        try:
            with self.dog:
                opened = await self._call()
        finally:
            if self._response is not None and not isinstance(opened, OpenStream):
                self._response.close()
        if opened is None:
            # Before the head of an answer there was no output that could have been watched.
            watched = None if self._response is None else self.tally
            return Broken(fault=self._timed_out(), tally=watched)
        return opened

    def _bound(self) -> None:
        """Set the caps that hold for the whole attempt."""
        total_at_s = self.started_s + self.target.route.timeouts.total_s
        if self._exchange.deadline_s <= total_at_s:
            self.dog.cap(self._exchange.deadline_s, FaultKind.DEADLINE)
        else:
            self.dog.cap(total_at_s, FaultKind.STALL)
        hedge_at_s = self._plan.hedge_at_s
        if hedge_at_s is not None and hedge_at_s < min(self._exchange.deadline_s, total_at_s):
            self.dog.cap(hedge_at_s, FaultKind.HEDGE)

    async def _call(self) -> Opened:
        target, request, hints = self.target, self._exchange.request, self._exchange.hints
        timeouts = target.route.timeouts
        # Connecting has a bound of its own; the wait for headers starts when the call is sent.
        self.dog.limit(NEVER_S, FaultKind.CONNECT_TIMEOUT)
        body = request_body(self._exchange, target, self.amended)
        if isinstance(body, Fault):
            return Broken(fault=body)
        call = UpstreamCall(
            url=target.stream_url if request.stream else target.url,
            headers=target.headers if not hints.features else headers_with(hints, target),
            body=body,
            connect_timeout_s=timeouts.connect_s,
            dispatch_before_s=self._plan.asked_at_s + DISPATCH_WITHIN_S,
            on_sent=self._note_sent,
        )
        response = await self._upstream.post(call)
        if isinstance(response, DispatchLate):
            return response
        if isinstance(response, Fault):
            return Broken(fault=response)
        self._response = response
        self.answered_s = self._clock.monotonic_s()
        if response.status != 200:  # noqa: PLR2004 - the only status that carries an answer
            return await self._error_answer(response)
        if request.stream:
            return await self._peek_stream(response)
        return await self._whole_answer(response)

    async def _error_answer(self, response: UpstreamResponse) -> Broken:
        self.dog.limit(self._clock.monotonic_s() + ERROR_BODY_S, FaultKind.STALL)
        body = await response.read_body(MAX_ERROR_BYTES)
        fault = self.target.codec.decode_error(
            response.status,
            response.headers,
            b"" if isinstance(body, Fault) else body,
            self._clock.wall_ms(),
            self.target.secret,
        )
        return Broken(fault=fault)

    async def _whole_answer(self, response: UpstreamResponse) -> Opened:
        whole = response.take_all(MAX_ANSWER_BYTES)
        body = await self._whole_body(response) if whole is None else whole
        if isinstance(body, Fault):
            return Broken(fault=body, tally=self.tally)
        completion = self.target.codec.decode_completion(
            body, response.content_type, self.target.secret
        )
        if isinstance(completion, Fault):
            return Broken(fault=completion)
        asked = self._exchange.request.embedding
        if asked is not None:
            fit = await fitted(completion, asked, self._exchange, self.target)
            return Broken(fault=fit, completion=completion) if isinstance(fit, Fault) else fit
        answer = foreign_answer(self._exchange, self.target, completion)
        if isinstance(answer, Fault):
            return Broken(fault=answer)
        self.answer = answer
        return self._gated(completion)

    async def _whole_body(self, response: UpstreamResponse) -> bytes | Fault:
        stall_s, clock_s = self.target.route.timeouts.stall_s, self._clock.monotonic_s
        parts: list[bytes] = []
        size = 0
        while True:
            if not response.is_complete:
                self.dog.limit(clock_s() + stall_s, FaultKind.STALL)
            chunk = await response.read_chunk()
            if isinstance(chunk, Fault):
                return chunk
            if not chunk:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                return Fault(kind=FaultKind.TOO_LARGE, message="answer above its bound")
            parts.append(chunk)

    def _gated(self, completion: Completion) -> Completion | Broken:
        violation = self._find_violation(completion.tool_calls)
        if violation is not None:
            return Broken(fault=violation, completion=completion)
        gate = self._exchange.context.resolved.gate
        if gate.is_open or not gate.applies(stream=False):
            return completion
        rejection = judge(
            gate,
            text=completion.text,
            # What is shown is as little nothing as a call is.
            tool_call_count=completion.tool_call_count + completion.has_media,
            saw_terminal=completion.finish_reason is not None,
            is_refused=completion.finish_reason == REFUSED,
        )
        if rejection is None:
            return completion
        return Broken(
            fault=Fault(kind=FaultKind.GATE, reason=rejection, message="rejected by the gate"),
            completion=completion,
        )

    async def _peek_stream(self, response: UpstreamResponse) -> Opened:
        if not self.target.codec.is_stream(response.content_type):
            return await self._not_a_stream(response)
        decoder = self.target.codec.stream_decoder(self.target.secret)
        if self.heard is not None:
            decoder = ListeningDecoder(decoder, self.heard)
        peek = self._peek = self._new_peek()
        signs_of_life = 0
        while True:
            self.dog.limit(self._peek_bound_s(peek), FaultKind.PEEK)
            chunk = await response.read_chunk()
            if isinstance(chunk, Fault):
                return Broken(fault=chunk, tally=self.tally)
            events = decoder.decode(chunk) if chunk else decoder.flush()
            opened = self._weigh(events, peek, decoder, response, at_end=not chunk)
            if opened is not None:
                return opened
            if not chunk:
                return Broken(fault=peek.close(self._now_ms()).fault, tally=self.tally)
            if decoder.signs_of_life != signs_of_life:
                signs_of_life = decoder.signs_of_life
                peek.touch(self._now_ms())

    def _weigh(
        self,
        events: list[StreamEvent],
        peek: Peek,
        decoder: StreamDecoder,
        response: UpstreamResponse,
        *,
        at_end: bool,
    ) -> OpenStream | Broken | None:
        now_ms = self._now_ms()
        for place, event in enumerate(events):
            self.tally.add(event)
            match peek.feed(event, now_ms):
                case Commit():
                    for later in events[place + 1 :]:
                        self.tally.add(later)
                    held = peek.held + events[place + 1 :]
                    rejection = self._forbidden(held) or self._misused(held)
                    if rejection is not None:
                        return Broken(fault=rejection, tally=self.tally)
                    return OpenStream(response=response, decoder=decoder, held=held, at_end=at_end)
                case Reject(fault=fault):
                    return Broken(fault=fault, tally=self.tally)
                case _:
                    pass
        return None

    def _forbidden(self, held: list[StreamEvent]) -> Fault | None:
        """Judge the peeked text: the rest of a stream cannot be taken back once it is sent."""
        gate = self._exchange.context.resolved.gate
        if not gate.applies(stream=True) or not gate.forbidden_substrings:
            return None
        rejection = judge(
            msgspec.structs.replace(gate, require_terminal=False, min_content_length=0),
            text="".join(event.text for event in held),
            tool_call_count=1,
            saw_terminal=True,
        )
        if rejection is None:
            return None
        return Fault(kind=FaultKind.GATE, reason=rejection, message="rejected by the gate")

    def _misused(self, held: list[StreamEvent]) -> Fault | None:
        """Judge the calls that are complete; with several answers nobody tells whose they are."""
        if not self._checks_calls() or self._exchange.request.choices > 1:
            return None
        return self._find_violation(join_calls(held))

    def _find_violation(self, calls: Sequence[ToolCallDelta]) -> Fault | None:
        return find_violation(self._exchange, calls) if self._checks_calls() else None

    def _checks_calls(self) -> bool:
        exchange = self._exchange
        rails = exchange.runtime.policy.guardrails
        return rails.checks_tool_arguments and exchange.request.wants_tools

    async def _not_a_stream(self, response: UpstreamResponse) -> Broken:
        self.dog.limit(self._clock.monotonic_s() + ERROR_BODY_S, FaultKind.STALL)
        body = await response.read_body(MAX_ERROR_BYTES)
        fault = self.target.codec.decode_not_stream(
            b"" if isinstance(body, Fault) else body, response.content_type, self.target.secret
        )
        return Broken(fault=fault)

    def _new_peek(self) -> Peek:
        gate = self._exchange.context.resolved.gate
        return Peek(
            self._exchange.runtime.policy.peek,
            is_last=self._plan.is_last,
            started_ms=self._now_ms(),
            accept_empty=not (gate.reject_empty and gate.applies(stream=True)),
            choices=self._exchange.request.choices,
        )

    def _peek_bound_s(self, peek: Peek) -> float:
        return peek.next_deadline_ms() / MS_PER_S

    def _timed_out(self) -> Fault:
        kind = self.dog.fired or FaultKind.STALL
        if kind is FaultKind.PEEK and self._peek is not None:
            # The timer may fire a fraction of a millisecond before the machine's own rounding.
            verdict = self._peek.expire(max(self._now_ms(), self._peek.next_deadline_ms()))
            if isinstance(verdict, Reject):
                return verdict.fault
        response = self._response
        if response is not None and response.status != 200:  # noqa: PLR2004
            # The status is known; only its body was slow.
            return self.target.codec.decode_error(
                response.status, response.headers, b"", self._clock.wall_ms(), self.target.secret
            )
        sent = Sent.UNKNOWN if self.dispatched else Sent.NOT_SENT
        if response is not None:
            sent = Sent.SENT
        return Fault(kind=kind, sent=sent, message=f"gave up waiting: {kind.value}")

    def _note_sent(self) -> None:
        self.dispatched = True
        bound_s = self._clock.monotonic_s() + self._headers_wait_s
        self.dog.limit(bound_s, FaultKind.HEADERS_TIMEOUT)

    def _now_ms(self) -> int:
        return round(self._clock.monotonic_s() * MS_PER_S)
