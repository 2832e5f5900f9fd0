"""One request of a connection and its answer, as uvicorn hands it to the application (ASGI).

uvicorn's own cycle writes the head apart from the body and examines every header by itself, which
together cost a tenth of a request. This one writes the head with the first bytes of the body, and
looks once over all of it for a line end that no header may hold. What it writes leaves with the
answers of other connections, once a turn of the loop (0022).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from cluster_gw.server.outbox import Outbox

ANSWER_NOW: Final = "cluster_gw.answer_now"
"""ASGI extension: call it with status, headers but for the length, and body of a whole answer;
False when it would have to wait, so that nothing was written and `send` must be awaited instead."""
READ_NOW: Final = "cluster_gw.read_now"
"""ASGI extension: call it with a number of bytes for the whole body of the request; None when there
is none, not all of it has come or it is longer, so that `receive` must be awaited instead."""
WRITE_NOW: Final = "cluster_gw.write_now"
"""ASGI extension: call it with the next bytes of a body that has begun; False when they would have
to wait, so that nothing was written and `send` must be awaited instead. With a second argument they
need not wait while fewer bytes than that are unread, and with `more=False` they are the last."""
WHEN_LEFT: Final = "cluster_gw.when_left"
"""ASGI extension: call it with a function that is then called once if the client leaves before its
answer is complete; with None when nobody needs to know any more."""
CONNECTION: Final = b"\r\nconnection: "
BODYLESS: Final = frozenset({204, 304})
LAST_CHUNK: Final = b"0\r\n\r\n"
COALESCE_BYTES: Final = 65_536  # above it, copying a body to its head costs more than a write


class Bell:
    """An `asyncio.Event` for one who waits, at a third of the price."""

    __slots__ = ("_is_set", "_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Wake whoever waits, or whoever will."""
        self._is_set = True
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def clear(self) -> None:
        """Wait for the next ring."""
        self._is_set = False

    async def wait(self) -> None:
        """Wait until it has been set; by one task at a time."""
        if not self._is_set:
            self._waiter = self._loop.create_future()
            await self._waiter


class Cycle(RequestResponseCycle):
    """One request and its answer.

    Args:
        scope: of the request (ASGI); our extensions are added.
        connection: what carries it.
        outbox: where the bytes for it go.
        waits_for_continue: the client sends its body when it is told to.
        keep_alive: the connection may carry another request after this one.
    """

    def __init__(
        self,
        scope: Any,
        connection: HttpToolsProtocol,
        outbox: Outbox,
        *,
        waits_for_continue: bool,
        keep_alive: bool,
    ) -> None:
        # All that the base class sets; its own way of doing so costs more than the rest.
        self.scope = scope
        self.transport = connection.transport
        self._outbox = outbox
        self.flow = connection.flow
        self.logger = connection.logger
        self.default_headers = connection.server_state.default_headers
        self.message_event = Bell(connection.loop)  # type: ignore[assignment] # what is used of it
        self.on_response = connection.on_response_complete
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = waits_for_continue
        # Not a bytearray: what came in one piece is then handed on without a copy.
        self.body = b""  # type: ignore[assignment]
        self.more_body = True
        self.response_started = self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0
        self._extensions = {
            WHEN_LEFT: self.when_left,
            WRITE_NOW: self.write_now,
            ANSWER_NOW: self.answer_now,
            READ_NOW: self.read_now,
        }
        scope["extensions"] = self._extensions
        self._head = b""
        self._on_left: Callable[[], None] | None = None

    async def ended(self, fault: BaseException | None) -> None:
        """The application has ended without a whole answer, or with a fault: a bug."""
        if fault is not None:
            self.logger.error("Exception in ASGI application\n", exc_info=fault)
        elif self.disconnected:
            return
        else:
            self.logger.error("the application returned before its answer was complete")
        if self.response_started:
            self.transport.close()
        else:
            await self.send_500_response()

    def forget(self) -> None:
        """The application has ended: nothing of the connection is held any more."""
        self.on_response = lambda: None

    def when_left(self, callback: Callable[[], None] | None) -> None:
        """See `WHEN_LEFT`; calls at once when the client has left already."""
        self._on_left = callback
        if self.disconnected:
            self.left()

    def left(self) -> None:
        """The connection is gone."""
        callback, self._on_left = self._on_left, None
        if callback is not None:
            self._extensions.clear()  # they lead back here: only the collector would free both
            callback()

    def answer_now(self, status: int, headers: Any, body: bytes) -> bool:
        """See `ANSWER_NOW`."""
        if self.flow.write_paused or self.disconnected or self.response_started:
            return False
        self.response_started = True
        self.waiting_for_100_continue = False
        head = self._usual_head(status, headers, len(body))
        if head is None:
            length = (b"content-length", b"%d" % len(body))
            self._head = self._encode_head(status, (*headers, length))
            self._write_body(body, more=False)
            return True
        if len(body) > COALESCE_BYTES:
            self._outbox.add(head)
            self._outbox.add(body)
        else:
            self._outbox.add(head + body)
        self._complete()
        return True

    def read_now(self, most_bytes: int) -> bytes | None:
        """See `READ_NOW`."""
        body: bytes = self.body  # type: ignore[assignment] # see `__init__`
        if self.more_body or self.disconnected or not 0 < len(body) <= most_bytes:
            return None
        self.body = b""  # type: ignore[assignment]
        self.message_event.clear()
        self.flow.resume_reading()
        return body

    def write_now(self, part: bytes, most_bytes: int = 0, *, more: bool = True) -> bool:
        """See `WRITE_NOW`."""
        if self.flow.write_paused and not self._has_room(most_bytes):
            return False
        if self.disconnected or not self.response_started:
            return False
        if self.response_complete:
            raise RuntimeError("bytes after the end of an answer")
        self._write_body(part, more=more)
        return True

    def _has_room(self, most_bytes: int) -> bool:
        """Whether fewer bytes than that wait for the client to read them."""
        return most_bytes > 0 and int(self.transport.get_write_buffer_size()) < most_bytes

    async def send(self, message: Any) -> None:
        """Send a part of the answer (ASGI); waits while the client's socket is full."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if not self.response_started and kind == "http.response.start":
            self.response_started = True
            self.waiting_for_100_continue = False
            self._head = self._encode_head(message["status"], message.get("headers", ()))
        elif kind == "http.response.body" and self.response_started and not self.response_complete:
            self._write_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{kind} is not what comes next in an answer")

    def _usual_head(self, status: int, headers: Any, length: int) -> bytes | None:
        """The head of a whole answer on a connection that stays; None where more must be looked at.

        Half the price of `_encode_head`, for nearly all answers.
        """
        if self.default_headers or not self.keep_alive or self.scope["method"] == "HEAD":
            return None
        head = STATUS_LINE[status]
        for name, value in headers:
            head += name + b": " + value + b"\r\n"
        if CONNECTION in head or status in BODYLESS:
            return None
        if len(head.splitlines()) != len(headers) + 1 or b"\0" in head:
            raise RuntimeError("a header of the answer holds a line end")
        return head + b"content-length: %d\r\n\r\n" % length

    def _encode_head(self, status: int, headers: Any) -> bytes:
        lines = [STATUS_LINE[status]]
        says_close = False
        for name, value in (*self.default_headers, *headers) if self.default_headers else headers:
            lines.append(name + b": " + value + b"\r\n")
            if name == b"content-length":
                self.chunked_encoding = False
                self.expected_content_length = int(value)
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
                says_close = True
        if not (self.keep_alive or says_close):
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None:
            self.chunked_encoding = self._may_chunk(status)
            if self.chunked_encoding:
                lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise RuntimeError("a header of the answer holds a line end")
        return head

    def _may_chunk(self, status: int) -> bool:
        return self.scope["method"] != "HEAD" and status not in BODYLESS

    def _write_body(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                body += LAST_CHUNK
        else:
            self._count(len(body), more=more)
        head, self._head = self._head, b""
        if len(body) > COALESCE_BYTES and head:
            self._outbox.add(head)
            self._outbox.add(body)
        elif head or body:
            # Pieces of a stream come one by one: each would cost the loop a turn of its own.
            self._outbox.add(head + body, at_once=more or not head)
        if not more:
            self._complete()

    def _count(self, size: int, *, more: bool) -> None:
        """Hold a body against its announced length."""
        self.expected_content_length -= size
        if self.expected_content_length < 0 or (self.expected_content_length and not more):
            raise RuntimeError("the body of the answer is not as long as announced")

    def _complete(self) -> None:
        self.response_complete = True
        self._extensions.clear()
        self._on_left = None
        self.message_event.set()
        if not self.keep_alive:
            self._outbox.close()
        self.on_response()


class CloseDelimited(Cycle):
    """Answers a client older than HTTP/1.1, which knows no chunks.

    The end of the connection ends a body without length (RFC 9112, 6.3).
    """

    _is_unbounded = False

    def _may_chunk(self, status: int) -> bool:  # noqa: ARG002 - never, whatever the status
        self._is_unbounded = True
        return False

    def _count(self, size: int, *, more: bool) -> None:
        if not self._is_unbounded:
            super()._count(size, more=more)
