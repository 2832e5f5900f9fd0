"""The client's end of an exchange: an ASGI `send`, and whether anything has been sent on it."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

WriteNow = Callable[..., bool]
AnswerNow = Callable[[int, Sequence[tuple[bytes, bytes]], bytes], bool]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


class Reply:
    """Sends one answer, whole or piece by piece.

    Args:
        send: of the request (ASGI).
        write_now: sends a part of the body if that needs no waiting, None when the server has no
            such thing.
        answer_now: the same for a whole answer, whose length it adds to the headers.

    Attributes:
        status: what was sent, 0 while nothing was.
        is_done: nothing more may be sent.
    """

    __slots__ = ("_answer_now", "_send", "_write_now", "is_done", "status")

    def __init__(
        self,
        send: Send,
        write_now: WriteNow | None = None,
        answer_now: AnswerNow | None = None,
    ) -> None:
        self._send = send
        self._write_now = write_now
        self._answer_now = answer_now
        self.status = 0
        self.is_done = False

    def rewire(
        self,
        join: Callable[
            [Send, WriteNow | None, AnswerNow | None],
            tuple[Send, WriteNow | None, AnswerNow | None],
        ],
    ) -> None:
        """Send through something else from now on, which is given what was sent through so far."""
        self._send, self._write_now, self._answer_now = join(
            self._send, self._write_now, self._answer_now
        )

    def whole_now(self, status: int, headers: Headers, body: bytes) -> bool:
        """Send a complete answer without waiting; False when that is not possible now."""
        if self._answer_now is None:
            return False
        if not self._answer_now(status, headers, body):
            return False
        self.status = status
        self.is_done = True
        return True

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete answer; `content-length` is added here."""
        if self.whole_now(status, headers, body):
            return
        self.status = status
        self.is_done = True
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def begin(self, headers: Headers) -> Awaitable[None]:
        """Send status 200 and the headers of a stream; from here on the status is history."""
        self.status = 200
        return self._send({"type": "http.response.start", "status": 200, "headers": headers})

    def piece(self, body: bytes) -> Awaitable[None]:
        """Send a part of the stream; waits while the client's socket is full."""
        return self._send({"type": "http.response.body", "body": body, "more_body": True})

    def piece_now(self, body: bytes) -> bool:
        """Send a part of the stream without waiting; False when that is not possible now."""
        return self._write_now is not None and self._write_now(body)

    def end(self, body: bytes = b"") -> Awaitable[None]:
        """Send the last part of the stream."""
        self.is_done = True
        return self._send({"type": "http.response.body", "body": body})
