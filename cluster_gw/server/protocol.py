"""The HTTP/1.1 protocol of the data port: uvicorn's, with a bound on the head and our error shape.

The parser underneath has no limit on headers (a head of 2 MB was accepted), and its own answer to
malformed HTTP is plain text that no SDK can read. And it closes politely: the connection of a
client that never reads would stay, with all that is buffered for it, until that client leaves.
"""

import asyncio
import re
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.units import BYTES_PER_KB

HEAD_END: Final = b"\r\n\r\n"
UPGRADE: Final = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
# We upgrade to nothing, and some clients offer h2c with every POST. The parser underneath would
# drop the body of such a request and read it as the next one, so the offer is renamed first.
HEAD_WITHIN_S: Final = 30.0  # a client that opens a connection and sends no request is let go
UNREAD_WITHIN_S: Final = 120.0  # as long as the longest stall that a provider is allowed


class CloseDelimited(RequestResponseCycle):
    """Answers a client older than HTTP/1.1, which knows no chunks.

    The end of the connection ends a body without length (RFC 9112, 6.3).
    """

    is_unbounded = False

    async def send(self, message: Any) -> None:
        """Send a part of the answer (ASGI)."""
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            self.is_unbounded = b"content-length" not in names
            if self.is_unbounded:
                self.chunked_encoding = False
        elif self.is_unbounded:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class BoundedHead(HttpToolsProtocol):
    """Answers 431 above `max_head_bytes` and 400 to what is not HTTP, both as JSON.

    Aborts the connection of a client that reads nothing of what is buffered for it in
    `unread_within_s`. `uvicorn.Config` builds protocols itself, so the bound of the head is bound
    by `with_head_limit`.
    """

    max_head_bytes = 32 * BYTES_PER_KB
    unread_within_s = UNREAD_WITHIN_S
    head_within_s = HEAD_WITHIN_S

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._in_head = True
        self._head_bytes = 0
        self._partial_head = b""
        self._is_oversized = False
        self._is_deaf = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the wait for the first head."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waits for the head and for a reader."""
        self._stop_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse; a head is kept back until it is complete, at most `max_head_bytes` of it."""
        if self._is_deaf:
            return
        if self._in_head:
            self._start_timer()  # uvicorn's own keep-alive timer ends with the first byte
            data = self._partial_head + data
            self._partial_head = b""
            end = data.find(HEAD_END)
            if end < 0 and data[:1].isalpha():
                self._keep_back(data)
                return
            data = UPGRADE.sub(b"\r\nx-upgrade:", data[:end]) + data[end:]
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A new head begins."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """The next bytes are a head again."""
        self._in_head = True
        super().on_message_complete()

    def on_url(self, url: bytes) -> None:
        """Count the path, which may be the oversized part."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header that arrived together with the rest of its head."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete; what follows is body."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_timer()
        super().on_headers_complete()
        if self.scope["http_version"] != "1.1":
            # uvicorn makes the cycle itself; its task has not run yet.
            self.cycle.__class__ = CloseDelimited
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """The answer is written, which does not mean that it is read."""
        super().on_response_complete()
        self._watch_reader()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_unread_timer()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text is not ours
        """Answer a head that cannot be served and close."""
        if self.transport.is_closing():
            return
        error = oversized_head(self.max_head_bytes) if self._is_oversized else malformed_http()
        body = ChatCompletions().encode_error(error, "")
        self.transport.write(
            b"".join(
                (
                    STATUS_LINE[error.status],
                    b"content-type: application/json\r\n",
                    b"content-length: %d\r\n" % len(body),
                    b"connection: close\r\n\r\n",
                    body,
                )
            )
        )
        self.transport.close()

    def _keep_back(self, data: bytes) -> None:
        if len(data) <= self.max_head_bytes:
            self._partial_head = data
            return
        self._is_oversized = True
        self.send_400_response("")

    def _unsupported_upgrade_warning(self) -> None:
        """A pipelined request asked for an upgrade: what follows it cannot be told apart.

        The parser has ended the message before its body; reading on would take that body for a
        request of its own.
        """
        self._is_deaf = True
        self.cycle.keep_alive = False

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.max_head_bytes:
            self._is_oversized = True
            raise ValueError("head above its bound")  # the parser turns it into a 400

    def _give_up(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()

    def _start_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_within_s, self._give_up)

    def _watch_reader(self) -> None:
        """Look later whether any of what is buffered now has been read."""
        self._stop_unread_timer()
        self._unread_bytes = self.transport.get_write_buffer_size()
        if self._unread_bytes:
            self._unread_timer = self.loop.call_later(self.unread_within_s, self._look_at_reader)

    def _look_at_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._unread_bytes:
            self._watch_reader()
        elif self.flow.write_paused or self.transport.is_closing():
            # Nothing was written since the wait began: this is what was not read.
            self.transport.abort()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def with_head_limit(max_head_bytes: int) -> type[BoundedHead]:
    """Give the protocol class for one bound, in bytes."""
    return type("BoundedHead", (BoundedHead,), {"max_head_bytes": max_head_bytes})


def oversized_head(max_head_bytes: int) -> ErrorBody:
    """The error of a head above the bound."""
    return ErrorBody(
        status=431,
        type="invalid_request_error",
        code="headers_too_large",
        message=f"The request line and headers exceed {max_head_bytes} bytes; send fewer or "
        "shorter headers.",
    )


def malformed_http() -> ErrorBody:
    """The error of bytes that are not HTTP/1.1."""
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="malformed_http",
        message="The request is not valid HTTP/1.1.",
    )
