"""A request that waits for the call of another one with the same idempotency key.

A stream is handed on piece by piece; an answer in one piece comes when that call has ended.
Nothing is put together from two calls: where the one that was followed is lost, a stream that has
begun ends with the in-band error, and who has sent nothing yet makes the call itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.exhaustion import exhausted
from cluster_gw.core.outcome.retry import StopReason
from cluster_gw.errors import ClientFault, ErrorBody, UpstreamFault
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.relay import KeepAlive
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.store.repeats import (
    LEASE_MS,
    Answered,
    Conflict,
    Held,
    Kept,
    Taken,
    Ticket,
    Told,
    Unavailable,
)
from cluster_gw.units import MS_PER_S

POLL_S: Final = 0.05
SILENCE_S: Final = LEASE_MS / MS_PER_S


class Ended(msgspec.Struct, frozen=True):
    """The client was answered: by a whole stream, or by one that broke, with the code it got."""

    code: str | None = None


class Follower:
    """Waits for one call.

    Args:
        exchange: the request.
        reply: the client's end.
        headers: of this request, to which those of the answer are added.
        ask: tells what becomes of the call; see `Repeats.ask`.
        ticket: the key, and what is asked.
        clock: of the worker.
    """

    def __init__(
        self,
        exchange: Exchange,
        reply: Reply,
        headers: Headers,
        *,
        ask: Callable[..., Awaitable[Told]],
        ticket: Ticket,
        clock: Clock,
    ) -> None:
        self._exchange, self._reply, self._headers = exchange, reply, headers
        self._ask, self._ticket = ask, ticket
        self._clock = clock
        self._keepalive: KeepAlive | None = None
        self._token = self._known = self._sent_bytes = 0

    async def follow(self, told: Told) -> Taken | Answered | Conflict | Ended:
        """Wait until there is an answer, or the call is to be made here.

        Args:
            told: what was told first.

        Raises:
            UpstreamFault: the client's deadline passed, and nothing has been sent.
            ClientFault: nobody knows any more what became of the call, and nothing has been sent.
        """
        try:
            return await self._follow(told)
        finally:
            if self._keepalive is not None:
                self._keepalive.stop()

    async def _follow(self, told: Told) -> Taken | Answered | Conflict | Ended:
        heard_s = self._clock.monotonic_s()
        while True:
            now_s = self._clock.monotonic_s()
            if not isinstance(told, Unavailable):
                heard_s = now_s
            if isinstance(told, Held):
                if not await self._take(told):
                    return await self._broken()
            elif isinstance(told, Taken | Answered | Conflict) and not self._has_begun:
                return told
            elif isinstance(told, Answered) and told.token == self._token:
                return await self._finished(told.answer)
            elif not isinstance(told, Unavailable):
                return await self._broken()
            elif now_s - heard_s > SILENCE_S:
                return await self._given_up(ClientFault(in_use()))
            left_s = self._exchange.deadline_s - now_s
            if left_s <= 0:
                return await self._given_up(UpstreamFault(self._too_late()))
            await asyncio.sleep(min(POLL_S, left_s))
            told = await self._ask(
                self._ticket,
                may_take=not self._has_begun,
                token=self._token,
                known=self._known if self._exchange.request.stream else None,
            )

    @property
    def _has_begun(self) -> bool:
        return self._keepalive is not None

    async def _take(self, held: Held) -> bool:
        """Send what is new of the stream; False where that is another one than was begun."""
        if held.token != self._token:
            if self._has_begun:
                return False
            self._token, self._known = held.token, 0
        pieces = held.pieces
        self._known += len(pieces)
        if pieces and self._keepalive is None:
            head = msgspec.msgpack.decode(pieces[0], type=Kept)
            await self._reply.begin([*self._headers, *head.headers])
            comment = self._exchange.surface.encode_keepalive()
            self._keepalive = KeepAlive(self._reply, comment, asyncio.get_running_loop())
            self._exchange.spent.first_byte_s = self._clock.monotonic_s() - self._exchange.started_s
            pieces = pieces[1:]
        await self._send(b"".join(pieces))
        return True

    async def _send(self, body: bytes) -> None:
        if body and self._keepalive is not None:
            self._sent_bytes += len(body)
            await self._keepalive.piece(body)

    async def _finished(self, kept: Kept) -> Ended:
        await self._send(kept.body[self._sent_bytes :])
        await self._reply.end()
        return Ended()

    async def _broken(self) -> Ended:
        """End a stream of which the rest will not come."""
        error = lost_midway()
        await self._reply.end(self._exchange.surface.encode_stream_error(error, self._exchange.id))
        return Ended(error.code)

    async def _given_up(self, fault: ClientFault | UpstreamFault) -> Ended:
        if self._has_begun:
            return await self._broken()
        raise fault

    def _too_late(self) -> ErrorBody:
        combo = self._exchange.ranking.combo
        return exhausted(
            (), (), combo=combo, stop=StopReason.DEADLINE, now_ms=self._clock.wall_ms()
        )


def in_use() -> ErrorBody:
    """The error of a key whose call nobody can tell anything of now."""
    return key_error(
        "idempotency_key_in_use",
        "Another request with this Idempotency-Key was under way, and what became of it "
        "cannot be told now; repeat the request.",
        retry_after_ms=MS_PER_S,
    )


def key_error(code: str, message: str, *, retry_after_ms: int | None = None) -> ErrorBody:
    """An error about an idempotency key; `retry_after_ms` where it may be asked for again."""
    known = ERROR_CODES[code]
    return ErrorBody(
        status=known.status,
        type=known.type,
        code=code,
        param="Idempotency-Key",
        message=message,
        retryable=retry_after_ms is not None,
        retry_after_ms=retry_after_ms,
    )


def lost_midway() -> ErrorBody:
    """The error inside a stream whose other half is lost with the call that it followed."""
    known = ERROR_CODES["stream_interrupted"]
    return ErrorBody(
        status=known.status,
        type=known.type,
        code="stream_interrupted",
        message="The call of this Idempotency-Key that was followed ended before its stream was "
        "complete; repeat the request.",
    )
