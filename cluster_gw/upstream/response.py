"""One upstream answer while its body is being read: chunks as they come, decoded, or a `Fault`."""

from collections.abc import Mapping

from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.faults import EXCHANGE_ERRORS, body_fault
from cluster_gw.wire.content_encoding import ContentDecoder, ContentEncodingError

_CLOSED = Fault(kind=FaultKind.CUT, message="answer closed by the gateway")


def abort(connection: Connection) -> None:
    """Closes the socket now; a polite close would first wait for the peer to read our bytes."""
    protocol = connection.protocol
    if protocol is not None:
        protocol.abort()
    connection.close()


class UpstreamResponse:
    """Status and headers of an answer, and its body as a stream read by one task.

    The connection goes back to the pool by itself when the body has been received to its end,
    even if it was not yet read here. In every other case the owner calls `close`.
    """

    __slots__ = (
        "_connection",
        "_decoder",
        "_fault",
        "_headers",
        "_message",
        "_payload",
        "_protocol",
        "status",
    )

    def __init__(
        self, connection: Connection, message: RawResponseMessage, payload: StreamReader
    ) -> None:
        self.status: int = message.code
        self._connection: Connection | None = connection
        self._protocol = connection.protocol
        self._message = message
        self._payload = payload
        self._headers: dict[str, str] | None = None
        self._fault: Fault | None = None
        encoding = message.headers.get("content-encoding")
        self._decoder = ContentDecoder(encoding) if encoding else None
        payload.on_eof(self._give_back)

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers: lower-case names, the first value of each, bytes read as Latin-1."""
        if self._headers is None:
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in reversed(self._message.raw_headers)
            }
        return self._headers

    @property
    def content_type(self) -> str:
        """The media type in lower case without parameters; "" when the answer names none."""
        value = self._message.headers.get("content-type", "")
        return value.partition(";")[0].strip().lower()

    async def read_chunk(self) -> bytes | Fault:
        """The next decoded bytes, as soon as there are any.

        Returns:
            Non-empty bytes; b"" at the clean end of the body; a fault when the body broke (bytes
            that came before the break are given first). After an end or a fault the same again.
        """
        while self._fault is None:
            try:
                raw = await self._payload.readany()
            except EXCHANGE_ERRORS as exc:
                raw = self._last_bytes(body_fault(exc))
            except BaseException:
                self.close()
                raise
            if not raw:
                return self._finish()
            decoded = raw if self._decoder is None else self._decode(self._decoder, raw)
            if decoded:
                return decoded
        return self._fault

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """The rest of the body in one piece.

        Args:
            max_bytes: bound of the decoded size in bytes; a larger answer is closed and is a
                TOO_LARGE fault.
        """
        first = await self.read_chunk()
        if not first or isinstance(first, Fault):
            return first
        parts = [first]
        size = len(first)
        while size <= max_bytes:
            chunk = await self.read_chunk()
            if isinstance(chunk, Fault):
                return chunk
            if not chunk:
                return b"".join(parts) if len(parts) > 1 else first
            size += len(chunk)
            parts.append(chunk)
        return self._break_off(Fault(kind=FaultKind.TOO_LARGE, message="answer above its bound"))

    def close(self) -> None:
        """Ends the answer; aborts the connection unless the whole body had been received."""
        if self._fault is None:
            self._fault = _CLOSED
        connection = self._connection
        if connection is not None:
            self._connection = None
            abort(connection)

    def _give_back(self) -> None:
        """Returns the connection to the pool; not while our request is still being sent."""
        connection = self._connection
        if connection is None:
            return
        self._connection = None
        transport = connection.transport
        if transport is None or transport.get_write_buffer_size():
            abort(connection)
        else:
            connection.release()

    def _break_off(self, fault: Fault) -> Fault:
        self._fault = fault
        self.close()
        return fault

    def _last_bytes(self, fault: Fault) -> bytes:
        """Notes the fault and gives what was received before it: often the end marker itself."""
        self._break_off(fault)
        # The public readers raise before they look at the buffer, so the last bytes of an answer
        # that was cut would be lost.
        return self._payload._read_nowait(-1)  # noqa: SLF001

    def _finish(self) -> bytes | Fault:
        """The end of the framing: clean only if socket and content coding ended cleanly too."""
        if self._fault is not None:
            return self._fault
        broken = self._protocol.exception() if self._protocol is not None else None
        if isinstance(broken, OSError) and not self._is_framed():
            return self._break_off(body_fault(broken))
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except ContentEncodingError:
                return self._break_off(
                    Fault(kind=FaultKind.CUT, message="content coding ended early")
                )
        return b""

    def _is_framed(self) -> bool:
        return self._message.chunked or "content-length" in self._message.headers

    def _decode(self, decoder: ContentDecoder, raw: bytes) -> bytes:
        try:
            return decoder.feed(raw)
        except ContentEncodingError:
            self._break_off(Fault(kind=FaultKind.MALFORMED, message="content coding is broken"))
            return b""
