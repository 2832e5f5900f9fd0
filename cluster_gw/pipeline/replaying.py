"""An answer that was fetched before, or is being fetched, given to another client.

It takes the very way of a live one: decoder, mending, gate, encoder. Only the upstream is missing.
"""

from typing import Any, Final

from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.exhaustion import stream_interrupted
from cluster_gw.pipeline.answer_bytes import StoredBytes
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.continuing_stream import Audience
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.headers import detail_extensions
from cluster_gw.pipeline.opened import AnswerBytes, AttemptPlan, Broken, Opened, OpenStream
from cluster_gw.pipeline.relay import Relay
from cluster_gw.pipeline.reply import Headers
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.translation import answer_body, request_body
from cluster_gw.pipeline.vendor_headers import headers_of
from cluster_gw.providers.base import ReformingProvider
from cluster_gw.store.cache_codec import Entry, Head
from cluster_gw.store.lease import Lease
from cluster_gw.units import MS_PER_S, LeaseId, RouteId

VIA: Final = b"x-routed-via"
FROM_CACHE: Final = (VIA, b"cache")


class ReplayAttempt(Attempt):
    """Reads bytes that are there as if an upstream had sent them; nothing was admitted."""

    source: AnswerBytes

    async def _call(self) -> Opened:
        exchange, target = self._exchange, self.target
        request = exchange.request
        if request.dialect is not target.dialect or target.noting is not None:
            body = request_body(exchange, target)  # what it could not be told is told to the client
            if isinstance(body, Fault):
                return Broken(fault=body)
        if request.stream:
            return await self._peek_stream(self.source)
        return await self._whole_answer(self.source)


class Replay:
    """Gives one answer to one client.

    Args:
        shell: what the loop acts through.
        exchange: the request.
        audience: the client's end.
        is_kept: it was fetched before; else somebody fetches it now.
    """

    def __init__(
        self, shell: Shell, exchange: Exchange, audience: Audience, *, is_kept: bool
    ) -> None:
        self._shell = shell
        self._exchange = exchange
        self._audience = audience
        self._is_kept = is_kept
        self.code: str | None = None

    async def give(self, target: Target, source: AnswerBytes) -> bool:
        """Answer the client.

        Returns:
            Whether the client has got all that there is: `code` tells the error inside of a stream
            that broke. False when it needs another source: for nothing was sent, or the source of
            a stream is lost in the middle.

        Raises:
            OtherAnswerError: it is not the answer that the client was told the beginning of.
        """
        attempt = self._attempt(target, source)
        if target.recalls is not None or self._exchange.session is not None:
            self._shell.sessions.listen(self._exchange, attempt)
        started_s = self._shell.clock.monotonic_s()
        opened = await attempt.open()
        self._exchange.spent.waiting_s += self._shell.clock.monotonic_s() - started_s
        if isinstance(opened, Completion):
            await self._answer(attempt, opened)
            return True
        if isinstance(opened, OpenStream):
            return await self._relay(attempt, opened)
        return False

    def _attempt(self, target: Target, source: AnswerBytes) -> ReplayAttempt:
        shell, now_s = self._shell, self._shell.clock.monotonic_s()
        attempt = ReplayAttempt(
            self._exchange,
            target,
            Lease(
                id=LeaseId(""),
                target=target.limits,
                estimate_tokens=0,
                prompt_tokens=0,
                admitted_at_s=now_s,
            ),
            AttemptPlan(asked_at_s=now_s, is_last=True, hedge_at_s=None),
            upstream=shell.upstream,
            alarms=shell.alarms,
            clock=shell.clock,
        )
        attempt.source = source
        return attempt

    async def _answer(self, attempt: Attempt, completion: Completion) -> None:
        exchange, reply, target = self._exchange, self._audience.reply, attempt.target
        self._told(attempt, completion.finish_reason, completion)
        headers = self._headers(target, is_stream=False)
        body = answer_body(
            exchange, target, completion, attempt.answer, self._extensions(), self._now_s()
        )
        if not reply.whole_now(200, headers, body):
            await reply.whole(200, headers, body)

    async def _relay(self, attempt: Attempt, stream: OpenStream) -> bool:
        exchange, clock = self._exchange, self._shell.clock
        encoder = self._audience.encoder_of(
            exchange, attempt.target, self._now_s(), anew=stream.anew
        )
        headers = self._headers(attempt.target, is_stream=True)
        relay = Relay(
            exchange, attempt, stream, encoder, clock=clock, extensions=self._extensions()
        )
        reply = self._audience.next_reply()
        try:
            fault = await relay.run(reply, headers)
            if fault is None:
                last = encoder.done()
                self._told(attempt, attempt.tally.finish_reason, None)
            elif fault.kind is FaultKind.CLIENT_GONE:
                exchange.client_gone = self._audience.reply.is_done = True
                return True
            elif fault.kind is FaultKind.CUT:
                return False
            else:
                error = stream_interrupted((), combo=exchange.ranking.combo)
                self.code, last = error.code, encoder.error(error, exchange.id)
        finally:
            stream.response.close()
        if not await relay.finish(reply, last):
            exchange.client_gone = True
        return True

    def _told(self, attempt: Attempt, finish: str | None, completion: Completion | None) -> None:
        """The answer is whole: the next request of this conversation may need some of it."""
        said = attempt.tally if completion is None else completion
        self._shell.accounts.saved(self._exchange, attempt.target, said.usage, said.characters)
        if attempt.heard is not None:
            self._shell.sessions.keep(self._exchange, attempt, completion)
        if self._exchange.tap is not None:
            self._exchange.tap.finish = finish

    def _headers(self, target: Target, *, is_stream: bool) -> Headers:
        exchange, clock = self._exchange, self._shell.clock
        if exchange.cached is not None:
            exchange.cached.route = target.route.id
        exchange.spent.first_byte_s = clock.monotonic_s() - exchange.started_s
        headers = headers_of(exchange, target, clock, is_stream=is_stream)
        if not self._is_kept:
            return headers
        return [FROM_CACHE if name == VIA else (name, value) for name, value in headers]

    def _extensions(self) -> dict[str, Any] | None:
        if not self._exchange.hints.detail:
            return None
        return detail_extensions(self._exchange, None, self._shell.clock.wall_ms())

    def _now_s(self) -> int:
        return self._shell.clock.wall_ms() // MS_PER_S


def target_of(exchange: Exchange, head: Head | Entry) -> Target | None:
    """The route that gave an answer, as it is configured now; None where it is not any more."""
    targets = exchange.runtime.targets.get(RouteId(head.route))
    target = next(iter(targets.values()), None) if targets else None
    return target if target is not None and target.dialect == head.dialect else None


def may_reform(target: Target, *, wants_stream: bool) -> bool:
    """Whether answers of a target have the other form, as far as one can tell beforehand."""
    codec = target.codec
    return isinstance(codec, ReformingProvider) and (codec.tells_whole or not wants_stream)


def in_form(
    payload: bytes, target: Target, content_type: str, *, is_stream: bool, wants_stream: bool
) -> StoredBytes | None:
    """An answer in the form that a client wants; None where it would lose something.

    Args:
        payload: all of it.
        target: gave it.
        content_type: of it.
        is_stream: whether it is a stream.
        wants_stream: whether the client wants one.
    """
    if is_stream is wants_stream:
        return StoredBytes(payload, content_type)
    codec = target.codec
    if not isinstance(codec, ReformingProvider):
        return None
    other = codec.as_stream(payload) if wants_stream else codec.as_whole(payload)
    return None if other is None else StoredBytes(other, "")
