"""One HTTP/1.1 connection: writes a request, parses the answer, and knows whether it may be reused.

The parser (llhttp) is strict about framing and knows no sizes, so every bound is counted here. The
connection gives itself back when an answer ended as it should and nothing came after it; anything
else, one byte too many included, closes it: what is left in it could be read as somebody's answer.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.faults import (
    BROKEN_FRAMING,
    CUT,
    GONE,
    HEAD_TOO_LARGE,
    SWITCHED,
    UNREADABLE,
    lost_fault,
)
from cluster_gw.upstream.incoming import MAX_FIELD_BYTES, Fields, Incoming
from cluster_gw.upstream.origin import Place

MAX_LINE_BYTES: Final = 16_384
MAX_HEAD_BYTES: Final = MAX_LINE_BYTES + MAX_FIELD_BYTES  # interim heads count as well

MAX_BARREN_BYTES: Final = 65_536
# Trailers and chunk extensions give the reader nothing, so nobody else would notice their size.

HIGH_WATER_BYTES: Final = 262_144
# A reader this far behind stops the connection; a socket gives up to as much again at once.

JOIN_BYTES: Final = 8192  # above, one write of two pieces beats copying them together
COALESCE_BYTES: Final = 65_536
# Below this size head and body leave in one write; above it the copy would cost more than a call.

PIECE_BYTES: Final = 262_144
# A large body is handed over in pieces as the socket takes them: TLS and asyncio would copy it all.

_FIRST_STATUS: Final = 100
_SWITCHING_PROTOCOLS: Final = 101
_FIRST_FINAL_STATUS: Final = 200


class RefusedError(Exception):
    """Stops the parser; the reason is in the connection, since the parser would hide it."""


class Connection(asyncio.Protocol):
    """Carries one exchange at a time.

    Args:
        place: where it leads.
        loop: the running loop.
        on_idle: called when an exchange has ended and the next may begin.

    Attributes:
        born_s: loop time from which its age counts: it began to be opened then, or later, see
            `Dialer`.
        idle_since_s: loop time of the last end of an exchange.
        uses: exchanges so far.
    """

    __slots__ = (
        "_barren_bytes",
        "_head_bytes",
        "_incoming",
        "_is_choked",
        "_is_leaving",
        "_is_paused",
        "_is_spoiled",
        "_keeps_alive",
        "_line_bytes",
        "_new_fields",
        "_on_idle",
        "_on_written",
        "_parser",
        "_refusal",
        "_transport",
        "_unwritten",
        "born_s",
        "idle_since_s",
        "loop",
        "place",
        "uses",
    )

    def __init__(
        self,
        place: Place,
        loop: asyncio.AbstractEventLoop,
        on_idle: Callable[["Connection"], None],
    ) -> None:
        self.place = place
        self.loop = loop
        self.born_s, self.idle_since_s = loop.time(), 0.0
        self.uses = 0
        self._on_idle = on_idle
        self._on_written: Callable[[], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._new_fields: Fields = []
        self._refusal: Fault | None = None
        self._unwritten: memoryview | None = None
        self._head_bytes = self._line_bytes = self._barren_bytes = 0
        self._keeps_alive = self._is_spoiled = False
        self._is_paused = self._is_choked = self._is_leaving = False

    @property
    def is_usable(self) -> bool:
        """Whether a request can be written: connected, and nothing came unasked."""
        transport = self._transport
        return transport is not None and not transport.is_closing()

    def when_written(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once the socket has taken nearly all of the next large body."""
        self._on_written = tell

    def send(
        self, incoming: Incoming, head: bytes, body: bytes, may_leave: Callable[[], bool]
    ) -> None:
        """Writes one request; its answer goes to `incoming`. Only while `is_usable`.

        The bytes leave in the next turn of the loop, beside those of other connections: to wake a
        peer that sleeps costs more than they do (0022).

        Args:
            incoming: where the answer goes; `is_unsent` tells that there will be none.
            head: request line and headers.
            body: all of it.
            may_leave: asked just before the first byte goes; after a no the connection is free.
        """
        self._incoming = incoming
        self._head_bytes = self._barren_bytes = 0
        self._is_leaving = True
        self.loop.call_soon(self._leave, incoming, head, body, may_leave)

    def _leave(
        self, incoming: Incoming, head: bytes, body: bytes, may_leave: Callable[[], bool]
    ) -> None:
        """Hands a request to the socket, unless it was given up meanwhile."""
        if incoming is not self._incoming:
            return
        try:
            is_allowed = may_leave()
        except Exception as bug:  # noqa: BLE001 - it belongs to the caller, not to the loop
            self._incoming = None
            self.abort()
            incoming.crash(bug)
            return
        transport = cast("asyncio.Transport", self._transport)
        if transport.is_closing():
            self._unsend()
            return
        self._is_leaving = False
        if not is_allowed:
            self._incoming = None
            incoming.is_unsent = True
            self._on_idle(self)
            incoming.wake()
        elif len(body) < JOIN_BYTES:
            transport.write(head + body)
        elif len(body) < COALESCE_BYTES:
            transport.writelines((head, body))
        else:
            transport.write(head)
            self._unwritten = memoryview(body)
            self._write_on()

    def abort(self) -> None:
        """Closes the socket now; a polite close would first wait for the peer to read our bytes."""
        self._incoming = self._unwritten = self._on_written = None
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Reads on after a pause."""
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop: TCP, and TLS if it is spoken, are up."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = HttpResponseParser(self)
        # Some servers pad chunk sizes with blanks; it changes nothing about where a body ends.
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        if self._is_spoiled:  # a tunnel's upstream spoke before it was made
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Called by the loop: parses what came and wakes the reader at most once."""
        incoming = self._incoming
        if (
            incoming is None or self._is_leaving
        ):  # nobody has asked: whatever it is, it answers no one
            self._unsend()
            return
        waiting_bytes = incoming.waiting_bytes
        was_in_head = not incoming.status
        if was_in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._is_spoiled = True
        if incoming.is_complete:
            self._end(incoming)
        elif self._is_spoiled:
            self._fail(
                incoming, self._refusal or (BROKEN_FRAMING if incoming.status else UNREADABLE)
            )
        elif not incoming.status:
            if self._head_bytes > MAX_HEAD_BYTES:
                self._fail(incoming, HEAD_TOO_LARGE)
        elif incoming.waiting_bytes > HIGH_WATER_BYTES:
            self._pause()
            incoming.wake()
        elif was_in_head or incoming.waiting_bytes != waiting_bytes:
            self._barren_bytes = 0
            incoming.wake()
        else:
            self._count_barren(incoming, len(data))

    def eof_received(self) -> None:
        """Called by the loop: the peer will send no more, so neither do we."""
        self._lose(None)
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop: the socket is closed."""
        self._lose(exc)
        if self._transport is None:  # lost before it was made
            return
        self._transport = None
        # The parser holds methods of this object: without this only the collector would free both.
        del self._parser

    def pause_writing(self) -> None:
        """Called by the loop: the socket takes no more for now."""
        self._is_choked = True

    def resume_writing(self) -> None:
        """Called by the loop: the socket takes bytes again."""
        self._is_choked = False
        self._write_on()

    def on_message_begin(self) -> None:
        """Called by the parser: a head begins, final or not; after an answer none may."""
        incoming = self._incoming
        if incoming is None or incoming.is_complete:
            raise RefusedError
        self._new_fields = []
        self._line_bytes = 0

    def on_status(self, part: bytes) -> None:
        """Called by the parser: a piece of the reason phrase, which nobody reads."""
        self._line_bytes += len(part)
        if self._line_bytes > MAX_LINE_BYTES:
            self._refuse(HEAD_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser: one field of a head or a trailer."""
        self._new_fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Called by the parser: judges a head; interim ones are skipped."""
        status = self._parser.get_status_code()
        if status < _FIRST_STATUS:
            self._refuse(UNREADABLE)
        if status == _SWITCHING_PROTOCOLS:
            self._refuse(SWITCHED)
        fields = self._new_fields
        if self._head_bytes > MAX_LINE_BYTES and _size(fields) > MAX_FIELD_BYTES:
            self._refuse(HEAD_TOO_LARGE)
        if status >= _FIRST_FINAL_STATUS and self._incoming is not None:
            self._new_fields = []  # what still comes are trailers
            refusal = self._incoming.accept_head(status, fields)
            if refusal is not None:
                self._refuse(refusal)

    def on_body(self, part: bytes) -> None:
        """Called by the parser: a piece of the body, its framing taken off."""
        incoming = self._incoming
        if incoming is not None:
            incoming.parts.append(part)
            incoming.waiting_bytes += len(part)

    def on_message_complete(self) -> None:
        """Called by the parser: an answer ended, or an interim one."""
        incoming = self._incoming
        if incoming is not None and incoming.status:
            incoming.is_complete = True
            self._keeps_alive = self._parser.should_keep_alive()

    def _refuse(self, fault: Fault) -> None:
        self._refusal = fault
        raise RefusedError

    def _end(self, incoming: Incoming) -> None:
        """The body is complete: the connection is free, if our request left it and nothing follows.

        An answer may come before the request was read to its end, and be a good answer.
        """
        self._incoming = None
        transport = self._transport
        if (
            self._keeps_alive
            and not self._is_spoiled
            and transport is not None
            and self._unwritten is None
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        ):
            self.resume()
            self._on_idle(self)
        else:
            self.abort()
        incoming.wake()

    def _unsend(self) -> None:
        """The connection is no good any more, and no request had left it."""
        incoming, self._incoming = self._incoming, None
        self._is_leaving = False
        self._is_spoiled = True
        self.abort()
        if incoming is not None:
            incoming.is_unsent = True
            incoming.fault = GONE
            incoming.wake()

    def _fail(self, incoming: Incoming, fault: Fault) -> None:
        incoming.fault = fault
        self.abort()
        incoming.wake()

    def _lose(self, exc: Exception | None) -> None:
        """The peer has closed: what that means for the answer that was coming."""
        if self._is_leaving:
            self._unsend()
        incoming, self._incoming = self._incoming, None
        if incoming is None:
            return
        if not incoming.status:
            incoming.fault = lost_fault(exc)
        elif exc is None and not incoming.is_framed:
            incoming.is_complete = True
        else:
            incoming.fault = CUT
        incoming.wake()

    def _write_on(self) -> None:
        """Hands over the rest of a body until the socket is full."""
        while self._unwritten is not None and not self._is_choked and self._transport is not None:
            piece, rest = self._unwritten[:PIECE_BYTES], self._unwritten[PIECE_BYTES:]
            # First what is left: writing may end the connection, or choke it.
            self._unwritten = rest or None
            self._transport.write(piece)
        tell = self._on_written
        if tell is not None and self._unwritten is None and not self._is_choked:
            self._on_written = None
            tell()

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _count_barren(self, incoming: Incoming, size: int) -> None:
        self._barren_bytes += size
        if self._barren_bytes > MAX_BARREN_BYTES:
            self._fail(incoming, BROKEN_FRAMING)


def _size(fields: Fields) -> int:
    return sum(len(name) + len(value) for name, value in fields)
