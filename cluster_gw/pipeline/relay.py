"""From commit to the last byte: upstream events to the client at the client's pace (room 9).

After commit nothing is retried. A stream that breaks ends with the dialect's own in-band error and
no end marker, and the break is what the attempt is booked as.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.opened import OpenStream
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.pipeline.watchdog import NEVER_S
from cluster_gw.surfaces.base import StreamEncoder

KEEPALIVE_S: Final = 15.0
LAST_WORDS_S: Final = 5.0
REUSE_WITHIN_S: Final = 0.25  # the end of the body usually comes with the end marker


class KeepAlive:
    """Writes a comment line when the stream has been quiet for 15 s; one timer, re-armed lazily."""

    def __init__(
        self,
        reply: Reply,
        comment: bytes,
        loop: asyncio.AbstractEventLoop,
        *,
        every_s: float = KEEPALIVE_S,
    ) -> None:
        self._reply = reply
        self._comment = comment
        self._loop = loop
        self._every_s = every_s
        self._quiet_since_s = loop.time()
        self._is_writing = False
        self._task: asyncio.Task[None] | None = None
        self._timer = loop.call_at(self._quiet_since_s + every_s, self._look)

    async def piece(self, body: bytes) -> None:
        """Write a part of the stream; never beside a comment that is still being written."""
        if self._task is not None:
            await self._task
            self._task = None
        self._is_writing = True
        await self._reply.piece(body)
        self._is_writing = False
        self._quiet_since_s = self._loop.time()

    def piece_now(self, body: bytes) -> bool:
        """Write a part without waiting; False when that is not possible now."""
        if self._is_writing or self._task is not None or not self._reply.piece_now(body):
            return False
        self._quiet_since_s = self._loop.time()
        return True

    def stop(self) -> None:
        """Write no more comments, not even one that still waits for the client to read."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def _say(self) -> None:
        await self._reply.piece(self._comment)

    def _look(self) -> None:
        now_s = self._loop.time()
        if now_s >= self._quiet_since_s + self._every_s:
            is_waiting = self._task is not None and not self._task.done()
            if not (self._is_writing or is_waiting):
                self._task = self._loop.create_task(self._say())
            self._quiet_since_s = now_s
        self._timer = self._loop.call_at(self._quiet_since_s + self._every_s, self._look)


class Relay:
    """Relays one committed stream.

    Args:
        exchange: the request.
        attempt: where the stream comes from; its tally already includes the held events, and its
            watchdog goes on bounding.
        stream: the committed stream.
        encoder: writes it for the client; whoever ends the stream goes on using it.
        extensions: members of our own for the frame that ends the answer, or None.
    """

    def __init__(
        self,
        exchange: Exchange,
        attempt: Attempt,
        stream: OpenStream,
        encoder: StreamEncoder,
        *,
        clock: Clock,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self._keepalive = exchange.surface.encode_keepalive()
        self._deadline_s = exchange.deadline_s
        self._timeouts = attempt.target.route.timeouts
        self._stream = stream
        self._tally = attempt.tally
        self._dog = attempt.dog
        self._clock_s = clock.monotonic_s
        self._extensions = extensions

    async def run(self, reply: Reply, headers: Headers) -> Fault | None:
        """Relay to the end; the caller ends the reply.

        Returns:
            None after a whole answer, else what broke it. A fault CLIENT_GONE means the client
            stopped reading.
        """
        fault: Fault | None = None
        keepalive = KeepAlive(reply, self._keepalive, asyncio.get_running_loop())
        self._bound()
        try:
            with self._dog:
                fault = await self._pump(reply, keepalive, headers)
        finally:
            keepalive.stop()
        if self._dog.fired is not None:
            fault = Fault(kind=self._dog.fired, message=f"gave up waiting: {self._dog.fired.value}")
        return self._tally.verdict_at_end(fault)

    async def finish(self, reply: Reply, body: bytes) -> bool:
        """Send the end of the stream; False when the client does not take it in time.

        The bounds of the upstream are over; a client that stays but does not read is not waited
        for longer here than in mid-stream.
        """
        self._dog.cap(NEVER_S, FaultKind.CLIENT_GONE)
        self._limit_client()
        with self._dog:
            await reply.end(body)
        return self._dog.fired is None

    def close(self) -> None:
        """Leave the connection: back to the pool if the body ends soon, else aborted.

        Nobody waits for it: the answer is complete, and from here on the server tells the end of
        the exchange in the same words as a client that left.
        """
        response = self._stream.response
        if self._tally.done and not self._stream.at_end:
            asyncio.get_running_loop().call_later(REUSE_WITHIN_S, response.close)
        else:
            response.close()

    def abort(self) -> None:
        """Drop the upstream connection now."""
        self._stream.response.close()

    def _bound(self) -> None:
        total_at_s = self._clock_s() + self._timeouts.total_s
        if self._deadline_s <= total_at_s:
            self._dog.cap(self._deadline_s, FaultKind.DEADLINE)
        else:
            self._dog.cap(total_at_s, FaultKind.STALL)

    async def _pump(self, reply: Reply, keepalive: KeepAlive, headers: Headers) -> Fault | None:
        stream, tally, response = self._stream, self._tally, self._stream.response
        unsent = b""

        def take(chunk: bytes) -> bool:
            """Relay a chunk at once; False when the client must be waited for, or at the end."""
            nonlocal unsent
            body = self._translate(chunk)
            self._limit_silence()
            if body and not keepalive.piece_now(body):
                unsent = body
                return False
            return not tally.is_ended

        self._limit_client()
        await reply.begin(headers)
        await keepalive.piece(self._encode(stream.held))
        while not (tally.is_ended or stream.at_end):
            self._limit_silence()
            await response.hand_to(take)
            if not (unsent or tally.is_ended):
                chunk = await response.read_chunk()
                if isinstance(chunk, Fault):
                    return chunk
                unsent = self._translate(chunk)
            if unsent:
                self._limit_client()
                body, unsent = unsent, b""
                await keepalive.piece(body)
        return None

    def _translate(self, chunk: bytes) -> bytes:
        """Take the next bytes of the upstream, none at its end, and give those of the client."""
        stream, tally = self._stream, self._tally
        if chunk:
            events = stream.decoder.decode(chunk)
        else:
            stream.at_end = True
            events = stream.decoder.flush()
        for event in events:
            tally.add(event)
        return self._encode(events)

    def _limit_silence(self) -> None:
        """Bound the wait for more.

        A whole answer waits for usage and end marker only; some upstreams never send them.
        """
        wait_s = self._timeouts.stall_s
        if self._tally.is_complete:
            wait_s = min(wait_s, LAST_WORDS_S)
        self._dog.limit(self._clock_s() + wait_s, FaultKind.STALL)

    def _limit_client(self) -> None:
        """Bound the wait for a client that does not read."""
        self._dog.limit(self._clock_s() + self._timeouts.stall_s, FaultKind.CLIENT_GONE)

    def _encode(self, events: list[StreamEvent]) -> bytes:
        """Give the client's bytes of some events; a fault gives none, the caller tells it."""
        encode = self.encoder.encode
        if self._extensions is None:
            if len(events) == 1:
                return encode(events[0])
            return b"".join([encode(e) for e in events if e.fault is None])
        return b"".join(
            [
                encode(e, self._extensions if e.finish_reason else None)
                for e in events
                if e.fault is None
            ]
        )
