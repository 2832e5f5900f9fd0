"""A copy of what one client is sent, for whoever asks the same again.

Only requests with an idempotency key have one. What the client is sent passes at once; the copy
waits for nobody.
"""

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Any, Final

from cluster_gw.pipeline.reply import AnswerNow, Headers, Send, WriteNow

LENGTH: Final = b"content-length"
OF_THE_ANSWER: Final = frozenset(
    {b"content-type", b"cache-control", b"x-accel-buffering", b"x-gw-warnings"}
)
"""Headers that a copy has too; the others are of one request."""


class Tap:
    """Copies one answer.

    Args:
        extra: headers that the client is sent besides.
        most_bytes: of the body; above it there is no copy.
        ignored: bytes that are no part of the answer: what keeps a connection open.

    Attributes:
        headers: of the answer, once it has begun.
        parts: of its body, one for each write.
        is_stream: it is sent piece by piece.
        is_too_large: its body was above the bound: `parts` is empty.
        finish: why the model ended, told by whoever knows.
        news: set whenever something was added; cleared by who looks.
    """

    def __init__(self, extra: Headers, *, most_bytes: int, ignored: bytes = b"") -> None:
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.parts: list[bytes] = []
        self.is_stream = False
        self.is_too_large = False
        self.finish: str | None = None
        self.news = asyncio.Event()
        self._extra, self._ignored = extra, ignored
        self._left_bytes = most_bytes

    def join(
        self, send: Send, write_now: WriteNow | None, answer_now: AnswerNow | None
    ) -> tuple[Send, WriteNow | None, AnswerNow | None]:
        """What a reply sends through from now on; see `Reply`."""

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._begin(message["headers"])
                message = {**message, "headers": [*message["headers"], *self._extra]}
            else:
                self._add(message["body"])
            await send(message)

        def writing(part: bytes) -> bool:
            if write_now is None or not write_now(part):
                return False
            self._add(part)
            return True

        def answering(status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
            if answer_now is None or not answer_now(status, [*headers, *self._extra], body):
                return False
            self._begin([*headers, (LENGTH, b"%d" % len(body))])
            self._add(body)
            return True

        return sending, writing, answering

    def _begin(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.headers = tuple([one for one in headers if one[0] in OF_THE_ANSWER])
        self.is_stream = all(name != LENGTH for name, _ in headers)
        self.news.set()

    def _add(self, part: bytes) -> None:
        if not part or part == self._ignored or self.is_too_large:
            return
        self._left_bytes -= len(part)
        if self._left_bytes < 0:
            self.is_too_large = True
            self.parts.clear()
        else:
            self.parts.append(part)
        self.news.set()
