"""The HTTP/1.1 protocol of the data port: uvicorn's, with a bound on the head and our error shape.

The parser underneath has no limit on headers (a head of 2 MB was accepted), and its own answer to
malformed HTTP is plain text that no SDK can read. And it closes politely: the connection of a
client that never reads would stay, with all that is buffered for it, until that client leaves.
"""

import asyncio
import functools
import math
import re
from typing import Any, Final, cast
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, parse_url
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from cluster_gw.errors import ErrorBody
from cluster_gw.server.cycle import CloseDelimited, Cycle
from cluster_gw.server.outbox import Outbox
from cluster_gw.server.runner import Runner
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.units import BYTES_PER_KB

KNOWN_URLS: Final = 64
MODERN: Final = b" HTTP/1.1"
HEAD_END: Final = b"\r\n\r\n"
UPGRADE: Final = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)
# We upgrade to nothing, and some clients offer h2c with every POST. The parser underneath would
# drop the body of such a request and read it as the next one, so the offer is renamed first.
LAST_HEAD_WITHIN_S: Final = 1.0  # many times what a request needs from balancer to gateway
HEAD_WITHIN_S: Final = 30.0  # a client that opens a connection and sends no request is let go
UNREAD_WITHIN_S: Final = 120.0  # as long as the longest stall that a provider is allowed


class BoundedHead(HttpToolsProtocol):
    """Answers 431 above `max_head_bytes` and 400 to what is not HTTP, both as JSON.

    Aborts the connection of a client that reads nothing of what is buffered for it in
    `unread_within_s`. `uvicorn.Config` builds protocols itself, so the bound of the head is bound
    by `with_head_limit`.
    """

    max_head_bytes = 32 * BYTES_PER_KB
    unread_within_s = UNREAD_WITHIN_S
    head_within_s = HEAD_WITHIN_S
    last_head_within_s: float = LAST_HEAD_WITHIN_S

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._in_head = True
        self._is_modern = False
        self._has_begun = True  # the first head has its time from the start of the connection
        self._head_bytes = 0
        self._partial_head = b""
        self._is_oversized = False
        self._is_deaf = False
        self._held = b""
        self._answered: RequestResponseCycle | None = None
        self._head_due_s = math.inf
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the wait for the first head."""
        super().connection_made(transport)
        self._outbox = Outbox(self.loop, transport, self._written)
        self._runner = Runner(self.loop, self.app, self.tasks)
        self._expect_head(self.head_within_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waits for the head and for a reader, and tell who answers."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._stop_unread_timer()
        super().connection_lost(exc)
        self._runner.close()
        for cycle in (self._answered, self.cycle, *(cycle for cycle, _ in self.pipeline)):
            if isinstance(cycle, Cycle) and not cycle.response_complete:
                cycle.disconnected = True
                cycle.left()

    def data_received(self, data: bytes) -> None:
        """Parse; a head is kept back until it is complete, at most `max_head_bytes` of it."""
        if self._is_deaf:
            return
        if self.pipeline or self._held:
            self._hold(data)
            return
        if self._in_head:
            if self._partial_head:
                data = self._partial_head + data
                self._partial_head = b""
            end = data.find(HEAD_END)
            if end < 0:
                self._expect_rest_of_head()
                if data[:1].isalpha():
                    self._keep_back(data)
                    return
            # Of this head alone: what asks the parser for the version makes a text of it.
            line_end = data.find(b"\r\n")
            self._is_modern = line_end > 0 and data.endswith(MODERN, 0, line_end)
            if data[:end].lower().find(b"\nupgrade") >= 0:
                data = UPGRADE.sub(b"\r\nx-upgrade:", data[:end]) + data[end:]
        try:
            self.parser.feed_data(data)
        except HttpParserError:
            self.send_400_response("")
        except HttpParserUpgrade:
            self._unsupported_upgrade_warning()

    def on_message_begin(self) -> None:
        """A new head begins."""
        self._in_head = True
        self._head_bytes = 0
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_url(self, url: bytes) -> None:
        """Count the path, which may be the oversized part."""
        self._head_bytes += len(url)
        self.url += url
        if self._head_bytes > self.max_head_bytes:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header that arrived together with the rest of its head."""
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self.max_head_bytes:
            self._refuse_head()
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; what follows is body."""
        self._in_head = False
        self._head_bytes = 0
        self._has_begun = False
        self._head_due_s = math.inf
        is_modern, self._is_modern = self._is_modern, False
        version = "1.1" if is_modern else self.parser.get_http_version()
        is_modern = version == "1.1"
        cycle = (Cycle if is_modern else CloseDelimited)(
            self._scope(version),
            self,
            self._outbox,
            waits_for_continue=self.expect_100_continue,
            keep_alive=is_modern and self.parser.should_keep_alive(),
        )
        before, self.cycle = self.cycle, cycle
        if is_complete(before):
            self._answered = cycle
            self._runner.start(cycle)
        else:
            self.pipeline.appendleft((cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """A piece of the body; reading stops while nobody takes what is there."""
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        """The body is complete; the next bytes are a head again."""
        self._in_head = True
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def _scope(self, version: str) -> dict[str, Any]:
        """What the application is told of a request, once its head is complete (ASGI)."""
        path, raw_path, query = split_url(self.url)
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": {},
        }

    def on_response_complete(self) -> None:
        """The answer is complete: the next may begin."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                cycle = cast("Cycle", self.pipeline.pop()[0])
                self._answered = cycle
                self._runner.start(cycle)
            else:
                self._expect_head(self.timeout_keep_alive)

            if self._held and not self.pipeline:
                self.loop.call_soon(self._go_on)

    def _hold(self, data: bytes) -> None:
        """Keep what follows a request that waits for its turn.

        Reading goes on for a while: a client that leaves is only noticed by who reads.
        """
        self._held += data
        if len(self._held) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def _go_on(self) -> None:
        """Parse what was held back."""
        if self._held and not self.pipeline and not self.transport.is_closing():
            held, self._held = self._held, b""
            self.data_received(held)

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
        self._outbox.add(
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
        self._outbox.close()

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

    def _refuse_head(self) -> None:
        self._is_oversized = True
        raise ValueError("head above its bound")  # the parser turns it into a 400

    def _expect_head(self, within_s: float) -> None:
        """Let the client go unless its next head is complete by then.

        The timer looks when it fires whether it is due, instead of being made anew for each head.
        """
        self._head_due_s = self.loop.time() + within_s
        if self._head_timer is None:
            self._head_timer = self.loop.call_at(self._head_due_s, self._look_for_head)
        elif self._head_timer.when() > self._head_due_s:
            self._head_timer.cancel()
            self._head_timer = self.loop.call_at(self._head_due_s, self._look_for_head)

    def _expect_rest_of_head(self) -> None:
        """A head has begun; bytes that drip in give it no more time."""
        if not self._has_begun:
            self._has_begun = True
            self._expect_head(self.head_within_s)

    def _look_for_head(self) -> None:
        self._head_timer = None
        if self._head_due_s == math.inf or self.transport.is_closing():
            return
        if self.loop.time() < self._head_due_s:
            self._head_timer = self.loop.call_at(self._head_due_s, self._look_for_head)
        elif is_complete(self.cycle):
            self._outbox.close()

    def shutdown(self) -> None:
        """The worker stops: an answer that is complete still leaves, and a request still comes.

        A balancer that was not told of the end may be sending one just now on a connection that it
        keeps. It would be lost, as a POST is not sent again; so there is a moment for it, and its
        answer says that the connection ends.
        """
        self._outbox.leave()
        self.timeout_keep_alive = self.last_head_within_s  # type: ignore[assignment]  # a duration
        if is_complete(self.cycle):
            self._expect_head(self.timeout_keep_alive)

    def _written(self) -> None:
        """Bytes were written, which does not mean that they are read."""
        if self.transport.get_write_buffer_size() and (
            self.transport.is_closing() or (self._unread_timer is None and is_complete(self.cycle))
        ):
            self._watch_reader()

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


@functools.lru_cache(maxsize=KNOWN_URLS)
def split_url(url: bytes) -> tuple[str, bytes, bytes]:
    """Path, path as it was sent, and query of a request target; nearly all are the same few.

    Raises:
        HttpParserInvalidURLError: it is none.
    """
    parts = parse_url(url)
    path = parts.path.decode("ascii")
    return unquote(path) if "%" in path else path, parts.path, parts.query or b""


def is_complete(cycle: RequestResponseCycle | None) -> bool:
    """Whether no answer is under way; there is no cycle before the first request."""
    return cycle is None or cycle.response_complete


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
