"""Sends a reply at a pace, with those faults that change how its bytes travel."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from cluster_gw.simulator.connection import Channel
from cluster_gw.simulator.content_coding import Encoder, make_encoder
from cluster_gw.simulator.faults import (
    CloseWithoutReply,
    Cut,
    Encoded,
    Fault,
    HangBeforeHeaders,
    HangMidStream,
    RawReply,
    SlowDrip,
)
from cluster_gw.simulator.ledger import Charge
from cluster_gw.simulator.reply import Frame, Headers, Reply

FLUSH_BYTES: Final = 65_536


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Tempo of an answer, in seconds."""

    latency_s: float = 0.0
    ttft_s: float = 0.0
    token_s: float = 0.0

    def head_wait_s(self, *, is_stream: bool, tokens: int) -> float:
        """Time before the head: a buffered answer must be complete by then."""
        if is_stream:
            return self.latency_s
        return self.latency_s + self.ttft_s + self.token_s * max(tokens - 1, 0)


async def preempt(channel: Channel, charge: Charge, faults: Sequence[Fault]) -> bool:
    """Apply faults that come before any response; true when the connection is over."""
    for fault in faults:
        match fault:
            case HangBeforeHeaders(max_s=max_s, then=then):
                await asyncio.sleep(max_s)
                if then == "answer":
                    continue
                charge.close("failed", "hung")
                await channel.end("fin")
            case CloseWithoutReply(mode=mode):
                charge.close("failed", "closed")
                await channel.end(mode)
            case RawReply(data=data, mode=mode):
                charge.close("failed", "garbage")
                channel.write_raw(data.encode("latin-1", "replace"))
                await channel.end(mode)
            case _:
                continue
        return True
    return False


class Delivery:
    """Sends one reply over one channel; the charge learns of every token that was written."""

    def __init__(
        self, channel: Channel, charge: Charge, faults: Sequence[Fault], pace: Pace
    ) -> None:
        self._channel = channel
        self._charge = charge
        self._pace = pace
        self._sent_bytes = 0
        self._tokens = 0
        self._encoding: str | None = None
        self._drip: SlowDrip | None = None
        self._frame_hangs: list[HangMidStream] = []
        self._stops: list[tuple[int, Cut | HangMidStream]] = []
        self._wire_mode = "rst"
        for fault in faults:
            self._prepare(fault)
        self._stops.sort(key=_place)

    async def send(self, reply: Reply, headers: Headers) -> bool:
        """Send the reply; false when a fault ended the connection before its end.

        The charge is closed by then only in the false case.
        """
        encoder = None if self._encoding is None else make_encoder(self._encoding)
        frames, length = reply.frames, None
        if not reply.is_stream:
            frames, encoder = _whole_body(frames, encoder), None
            length = len(frames[0].data)
            self._stop_in_the_middle(length)
        if self._encoding is not None:
            headers = (*headers, ("content-encoding", self._encoding))
        self._channel.write_head(reply.status, reply.content_type, headers, length)
        start_s = asyncio.get_running_loop().time()
        for index, frame in enumerate(frames):
            is_going = (
                await self._wait_for(frame, start_s, is_stream=reply.is_stream)
                and await self._pass_frame_hang(index)
                and await self._send_data(
                    frame.data if encoder is None else encoder.feed(frame.data)
                )
            )
            if not is_going:
                return False
            self._charge.emit(frame.tokens)
            self._tokens += frame.tokens
        if not await self._pass_frame_hang(len(frames), is_last=True):
            return False
        if encoder is not None and not await self._send_data(encoder.finish()):
            return False
        self._channel.write_end()
        return self._channel.flush() or await self._end_wire()

    def _prepare(self, fault: Fault) -> None:
        """Note what a fault means for this delivery."""
        match fault:
            case Encoded(encoding=encoding):
                self._encoding = encoding
            case SlowDrip():
                self._drip = fault
            case Cut(scope="response", at_byte=at, mode=mode):
                self._channel.limit_wire(at)
                self._wire_mode = mode
            case Cut(at_byte=at):
                self._stops.append((at, fault))
            case HangMidStream(at_byte=None):
                self._frame_hangs.append(fault)
            case HangMidStream(at_byte=int(at)):
                self._stops.append((at, fault))
            case _:
                return

    def _stop_in_the_middle(self, length: int) -> None:
        """A whole body has no frames to hang at: hang in the middle of its bytes."""
        self._stops.extend((length // 2, hang) for hang in self._frame_hangs)
        self._stops.sort(key=_place)
        self._frame_hangs.clear()

    async def _wait_for(self, frame: Frame, start_s: float, *, is_stream: bool) -> bool:
        """Wait until the first token of a streamed frame is due."""
        if not is_stream or not frame.tokens:
            return True
        due_s = start_s + self._pace.ttft_s + self._pace.token_s * self._tokens
        left_s = due_s - asyncio.get_running_loop().time()
        if left_s <= 0:
            return True
        if not await self._flush():
            return False
        await asyncio.sleep(left_s)
        return True

    async def _pass_frame_hang(self, index: int, *, is_last: bool = False) -> bool:
        """Hold before frame `index` if a fault says so; without a place, after the first."""
        for fault in self._frame_hangs:
            at = 1 if fault.at_frame is None else fault.at_frame
            is_here = at >= index if is_last else at == index
            if is_here and not await self._hang(fault):
                return False
        return True

    async def _send_data(self, data: bytes) -> bool:
        """Write body bytes up to each stop in turn; false when the connection is over."""
        while self._stops and self._sent_bytes + len(data) >= self._stops[0][0]:
            at, fault = self._stops.pop(0)
            before = data[: at - self._sent_bytes]
            data = data[len(before) :]
            if not await self._write(before):
                return False
            if isinstance(fault, HangMidStream):
                if not await self._hang(fault):
                    return False
                continue
            self._charge.close("failed", "cut")
            await self._channel.end(fault.mode)
            return False
        return await self._write(data)

    async def _write(self, data: bytes) -> bool:
        """Write body bytes, dripping if a fault says so."""
        self._sent_bytes += len(data)
        if self._drip is None:
            self._channel.write_body(data)
            return self._channel.gathered_bytes < FLUSH_BYTES or await self._flush()
        size = self._drip.bytes_per_chunk
        for start in range(0, len(data), size):
            if not await self._flush():
                return False
            await asyncio.sleep(self._drip.delay_ms / 1000)
            self._channel.write_body(data[start : start + size])
        return True

    async def _hang(self, fault: HangMidStream) -> bool:
        """Hold; true when the answer goes on afterwards."""
        if not await self._flush():
            return False
        await asyncio.sleep(fault.max_s)
        if fault.then == "answer":
            return True
        self._charge.close("failed", "hung")
        await self._channel.end("fin")
        return False

    async def _flush(self) -> bool:
        if not self._channel.flush():
            return await self._end_wire()
        await self._channel.drain()
        return True

    async def _end_wire(self) -> bool:
        """The response met its limit of bytes: end the connection."""
        self._charge.close("failed", "cut")
        await self._channel.end(self._wire_mode)
        return False


def _place(stop: tuple[int, Cut | HangMidStream]) -> int:
    return stop[0]


def _whole_body(frames: Sequence[Frame], encoder: Encoder | None) -> tuple[Frame]:
    """A buffered body as the one frame it travels in."""
    data = b"".join(frame.data for frame in frames)
    if encoder is not None:
        data = encoder.feed(data) + encoder.finish()
    return (Frame(data, sum(frame.tokens for frame in frames)),)
