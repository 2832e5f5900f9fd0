"""One upstream call up to the point where it is an answer or a fault (rooms 7 and 8).

Nothing reaches the client here. A stream is read until its peek commits; a buffered answer to its
end and through the gate. Whatever is no answer is closed at once, so that nobody pays for tokens
that nobody reads.
"""

from collections.abc import Mapping
from typing import Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.outcome.heard import Heard
from cluster_gw.core.outcome.peek import Commit, Peek, Reject
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.mending.stream import MendingDecoder
from cluster_gw.pipeline.alarms import Alarms
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.consoles import post_at
from cluster_gw.pipeline.error_answer import MAX_ERROR_BYTES, error_fault
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.judging import gated, rejection_of
from cluster_gw.pipeline.listening import ListeningDecoder
from cluster_gw.pipeline.mending import (
    FAILED_GENERATION,
    ODD_STARTS,
    committed,
    mend_whole,
    mending_decoder,
    rescued_events,
    rescued_whole,
    with_thoughts,
)
from cluster_gw.pipeline.opened import AnswerBytes, AttemptPlan, Broken, Opened, OpenStream
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.translation import Amended, foreign_answer, headers_with, request_body
from cluster_gw.pipeline.vectors import fitted
from cluster_gw.pipeline.watchdog import CONNECT_TIMEOUT, HEADERS_TIMEOUT, NEVER_S, STALL, Watchdog
from cluster_gw.providers.base import StreamDecoder
from cluster_gw.store.admission import Lease
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import DispatchLate, UpstreamCall, UpstreamClient
from cluster_gw.upstream.connection import COALESCE_BYTES
from cluster_gw.upstream.response import UpstreamResponse

ERROR_BODY_S: Final = 5.0  # an error answer has nothing to compute; a slow one is not waited for
MAX_ANSWER_BYTES: Final = 64 * 1_048_576
DISPATCH_WITHIN_S: Final = 1.0  # what the guard bucket of the minute ring covers


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

    # What a class has and its instances hide is found five times later than a slot.
    __slots__ = (
        *("target", "lease", "started_s", "dog", "tally", "answered_s", "answer", "amended"),
        *("heard", "dispatched", "_exchange", "_plan", "_upstream", "_clock", "_headers_wait_s"),
        *("_peek", "_mending", "_again", "_response"),
    )

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
        self.answer: Answer | None = None
        self.amended: Amended | None = None
        self.heard: Heard | None = None
        self.dispatched, self.answered_s = False, 0.0
        self._peek: Peek | None = None
        self._mending: MendingDecoder | None = None
        self._again: tuple[MendingDecoder, Peek] | None = None
        self._response: UpstreamResponse | None = None
        self.target = target
        self.lease = lease
        clock_s = clock.monotonic_s
        self.started_s = clock_s()
        self.dog = Watchdog(alarms)
        self.tally = Tally(exchange.request.choices)
        self._exchange = exchange
        self._plan = plan
        self._upstream = upstream
        self._clock = clock
        first_s, stall_s = target.route.timeouts.first_byte_s, target.route.timeouts.stall_s
        # The first byte of a buffered answer comes when all of it is there.
        is_patient = exchange.request.stream or first_s > stall_s
        self._headers_wait_s = first_s if is_patient else stall_s

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the answer, in lower case; none when there was no answer."""
        return {} if self._response is None else self._response.headers

    async def open(self) -> Opened:
        """Call the upstream and wait for an answer; see `Opened` for what may come back."""
        self._bound()
        # The next bound there will mostly be: its timer is made only once.
        self.dog.limit(self.started_s + self._headers_wait_s, HEADERS_TIMEOUT)
        opened: Opened | None = None
        try:
            with self.dog:
                opened = await self._call()
        finally:
            if self._response is not None and type(opened) is not OpenStream:
                self._response.close()
        if opened is None:
            # Before the head of an answer there was no output that could have been watched.
            return Broken(fault=self._timed_out(), tally=self.tally if self._response else None)
        return opened

    def _bound(self) -> None:
        """Set the caps that hold for the whole attempt."""
        total_at_s = self.started_s + self.target.route.timeouts.total_s
        if self._exchange.deadline_s <= total_at_s:
            self.dog.cap(self._exchange.deadline_s, FaultKind.DEADLINE)
        else:
            self.dog.cap(total_at_s, STALL)
        hedge_at_s = self._plan.hedge_at_s
        if hedge_at_s is not None and hedge_at_s < min(self._exchange.deadline_s, total_at_s):
            self.dog.cap(hedge_at_s, FaultKind.HEDGE)

    async def _call(self) -> Opened:
        target, request, hints = self.target, self._exchange.request, self._exchange.hints
        timeouts = target.route.timeouts
        # Connecting has a bound of its own; the wait for headers starts when the call is sent.
        self.dog.limit(NEVER_S, CONNECT_TIMEOUT)
        body = request_body(self._exchange, target, self.amended)
        if type(body) is Fault:
            return Broken(fault=body)
        is_large = len(body) >= COALESCE_BYTES
        call = UpstreamCall(
            url=target.stream_url if request.stream else target.url,
            headers=headers_with(self._exchange, target) if hints.adds_headers else target.headers,
            body=body,
            connect_timeout_s=timeouts.connect_s,
            dispatch_before_s=self._plan.asked_at_s + DISPATCH_WITHIN_S,
            way=target.way,
            on_sent=self._note_begun if is_large else self._note_sent,
            on_written=self._note_written if is_large else None,
        )
        post, consoles = self._upstream.post, target.consoles
        response = await (post_at(consoles, post, call) if consoles is not None else post(call))
        if type(response) is DispatchLate:
            return response
        if type(response) is Fault:
            return Broken(fault=response)
        self._response = response
        clock_s = self._clock.monotonic_s
        self.answered_s = clock_s()
        if response.status != 200:  # noqa: PLR2004 - the only status that carries an answer
            return await self._error_answer(response)
        if request.stream:
            return await self._peek_stream(response)
        return await self._whole_answer(response)

    async def _error_answer(self, response: UpstreamResponse) -> Opened:
        self.dog.limit(self._clock.monotonic_s() + ERROR_BODY_S, FaultKind.STALL)
        body = await response.read_body(MAX_ERROR_BYTES)
        if isinstance(body, bytes) and FAILED_GENERATION in body:
            rescued = self._rescued(body, response)
            if rescued is not None:
                return rescued
        return Broken(fault=error_fault(response, body, self.target, self._clock.wall_ms()))

    async def _whole_answer(self, response: AnswerBytes) -> Opened:
        whole = response.take_all(MAX_ANSWER_BYTES)
        body = await self._whole_body(response) if whole is None else whole
        if type(body) is Fault:
            return Broken(fault=body, tally=self.tally)
        completion = self.target.codec.decode_completion(
            body, response.content_type, self.target.secret
        )
        if type(completion) is Fault:
            return Broken(fault=completion)
        request = self._exchange.request
        if request.embedding is not None:
            fit = await fitted(completion, request.embedding, self._exchange, self.target)
            return Broken(fault=fit, completion=completion) if isinstance(fit, Fault) else fit
        answer: Answer | Fault | None
        if request.wants_tools or request.wants_format or completion.text[:1] in ODD_STARTS:
            completion, answer = mend_whole(self._exchange, self.target, completion)
        else:
            answer = foreign_answer(self._exchange, self.target, completion)
        if type(answer) is Fault:
            return Broken(fault=answer, completion=completion)
        self.answer = answer
        return gated(self._exchange, completion)

    def _rescued(self, body: bytes, response: AnswerBytes) -> Opened | None:
        """The answer in an error that tells which call the platform could not read."""
        exchange, target = self._exchange, self.target
        if not exchange.request.stream:
            completion, self.answer = rescued_whole(exchange, target, body)
            return gated(exchange, completion) if self.answer is not None else None
        return self._rescued_stream(body, response)

    def _rescued_stream(self, body: bytes, source: AnswerBytes) -> OpenStream | Broken | None:
        events = rescued_events(self._exchange, self.target, body)
        if not events:
            return None
        self._count_anew(events)
        rejection = rejection_of(self._exchange, events)
        if rejection is not None:
            return Broken(fault=rejection, tally=self.tally)
        decoder = self.target.codec.stream_decoder(self.target.secret)
        return OpenStream(response=source, decoder=decoder, held=events, at_end=True, anew=True)

    async def _whole_body(self, response: AnswerBytes) -> bytes | Fault:
        stall_s, clock_s = self.target.route.timeouts.stall_s, self._clock.monotonic_s
        body: bytes | bytearray = b""
        while True:
            if not response.is_complete:
                self.dog.limit(clock_s() + stall_s, FaultKind.STALL)
            chunk = await response.read_chunk()
            if isinstance(chunk, Fault):
                return chunk
            if not chunk:
                return bytes(body)
            # Tiny pieces by themselves would take many times their size; one alone is not copied.
            body = bytearray(body) if body and isinstance(body, bytes) else body
            body += chunk
            if len(body) > MAX_ANSWER_BYTES:
                return Fault(kind=FaultKind.TOO_LARGE, message="answer above its bound")

    async def _peek_stream(self, response: AnswerBytes) -> Opened:
        if not self.target.codec.is_stream(response.content_type):
            return await self._not_a_stream(response)
        decoder = self.target.codec.stream_decoder(self.target.secret)
        if self._exchange.request.wants_tools or self.heard is not None or self.tally.choices > 1:
            decoder = self._looked_after(decoder)
        peek = self._peek = self._new_peek()
        signs_of_life = 0
        while True:
            self.dog.limit(peek.next_deadline_ms() / MS_PER_S, FaultKind.PEEK)
            chunk = await response.read_chunk()
            if isinstance(chunk, Fault):
                return Broken(fault=chunk, tally=self.tally)
            events = decoder.decode(chunk) if chunk else decoder.flush()
            opened = self._weigh(events, peek, decoder, response, at_end=not chunk)
            if opened is not None:
                return opened
            if self._again is not None:
                decoder, peek = self._again
            if not chunk:
                return Broken(fault=peek.close(self._now_ms()).fault, tally=self.tally)
            if decoder.signs_of_life != signs_of_life:
                signs_of_life = decoder.signs_of_life
                peek.touch(self._now_ms())

    def _looked_after(self, decoder: StreamDecoder) -> StreamDecoder:
        """The decoder of a stream that is mended from its start; who listens hears it mended."""
        self._mending = mending_decoder(self._exchange, self.target, decoder)
        if self._mending is not None:
            return self._mending
        return decoder if self.heard is None else ListeningDecoder(decoder, self.heard)

    def _weigh(
        self,
        events: list[StreamEvent],
        peek: Peek,
        decoder: StreamDecoder,
        response: AnswerBytes,
        *,
        at_end: bool,
    ) -> OpenStream | Broken | None:
        now_ms = self._now_ms()
        for place, event in enumerate(events):
            self.tally.add(event)
            match peek.feed(event, now_ms):
                case Commit():
                    later = events[place + 1 :]
                    if self._mending is None and event.text[:1] in ODD_STARTS:
                        mending = with_thoughts(self._exchange, self.target, decoder, event.text)
                        if mending is not None:
                            return self._weigh_again(mending, peek.held + later, response, at_end)
                    for one in later:
                        self.tally.add(one)
                    held = peek.held + later
                    rejection = rejection_of(self._exchange, held)
                    if rejection is not None:
                        return Broken(fault=rejection, tally=self.tally)
                    stream = OpenStream(
                        response=response, decoder=decoder, held=held, at_end=at_end
                    )
                    return stream if self._mending is None else self._go_on(stream, self._mending)
                case Reject(fault=fault):
                    if FAILED_GENERATION in event.raw:
                        rescued = self._rescued_stream(event.raw, response)
                        if rescued is not None:
                            return rescued
                    return Broken(fault=fault, tally=self.tally)
        return None

    def _weigh_again(
        self,
        mending: MendingDecoder,
        events: list[StreamEvent],
        response: AnswerBytes,
        at_end: bool,  # noqa: FBT001
    ) -> OpenStream | Broken | None:
        """Look at a stream from its start again, now that its text may be a thought."""
        peek = self._peek = self._new_peek()
        self._mending, self._again = mending, (mending, peek)
        self.tally = Tally(self._exchange.request.choices)
        told = mending.mended(events) + (mending.mender.end() if at_end else [])
        return self._weigh(told, peek, mending, response, at_end=at_end)

    def _go_on(self, stream: OpenStream, mending: MendingDecoder) -> OpenStream:
        """Commit a stream that is mended."""
        told = committed(self._exchange, self.target, mending, stream.held)
        self._count_anew(told.held)
        decoder = told.decoder
        if self.heard is not None:
            decoder = ListeningDecoder(decoder, self.heard)
        return OpenStream(
            response=stream.response,
            decoder=decoder,
            held=told.held,
            at_end=stream.at_end,
            anew=told.anew,
        )

    def _count_anew(self, events: list[StreamEvent]) -> None:
        """Forget what the stream has said: it says this instead."""
        self.tally = Tally(self._exchange.request.choices)
        for event in events:
            self.tally.add(event)
            if self.heard is not None:
                self.heard.add(event)

    async def _not_a_stream(self, response: AnswerBytes) -> Broken:
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
            return error_fault(response, b"", self.target, self._clock.wall_ms())
        unheard = Sent.UNKNOWN if self.dispatched else Sent.NOT_SENT
        sent = unheard if response is None else Sent.SENT
        return Fault(kind=kind, sent=sent, message=f"gave up waiting: {kind.value}")

    def _note_sent(self) -> None:
        self.dispatched = True
        clock_s = self._clock.monotonic_s
        self.dog.limit(clock_s() + self._headers_wait_s, HEADERS_TIMEOUT)

    def _note_begun(self) -> None:
        """A large request has begun to leave."""
        self.dispatched = True
        until_s = self._clock.monotonic_s() + self.target.route.timeouts.write_s
        self.dog.limit(until_s, FaultKind.WRITE_TIMEOUT)

    def _note_written(self) -> None:
        if self._response is None:  # else it was answered before all of it was read
            self._note_sent()

    def _now_ms(self) -> int:
        return round(self._clock.monotonic_s() * MS_PER_S)
