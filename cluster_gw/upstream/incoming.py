"""One answer as it comes in: what the connection has received and the reader has not yet taken."""

import asyncio
from typing import Final

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.faults import BROKEN_FRAMING, HEAD_TOO_LARGE

Fields = list[tuple[bytes, bytes]]

MAX_FIELD_BYTES: Final = 65_536
MAX_FIELDS: Final = 256
# Vendors answer with about 20 headers; the bounds only keep a hostile peer from filling memory.

_TELLING: Final = ("content-type", "content-length", "content-encoding", "transfer-encoding")
_TELLING_LENGTHS: Final = frozenset(map(len, _TELLING))


class Incoming:
    """Written by one connection, read by one task.

    Attributes:
        status: of the final head; 0 while there is none.
        fields: names and values of the final head as they came.
        media_type: value of the first `content-type`, with its parameters.
        coding: value of `content-encoding`, all of them; empty when there is none.
        is_framed: the head tells where the body ends; else the end of the connection does.
        parts: pieces of the body that nobody has taken yet, none empty.
        waiting_bytes: sum of `parts`.
        is_complete: the whole body was received.
        is_unsent: the request did not leave, so that nothing will come.
        fault: why no more will come; what is in `parts` came before it.
        waiter: set while the reader has nothing to read.
    """

    __slots__ = (
        "coding",
        "fault",
        "fields",
        "is_complete",
        "is_framed",
        "is_unsent",
        "media_type",
        "parts",
        "status",
        "waiter",
        "waiting_bytes",
    )

    def __init__(self) -> None:
        self.status = 0
        self.fields: Fields = []
        self.media_type = b""
        self.coding = b""
        self.is_framed = False
        self.parts: list[bytes] = []
        self.waiting_bytes = 0
        self.is_complete = self.is_unsent = False
        self.fault: Fault | None = None
        self.waiter: asyncio.Future[None] | None = None

    def accept_head(self, status: int, fields: Fields) -> Fault | None:
        """Takes the final head, or says why it is none."""
        if len(fields) > MAX_FIELDS:
            return HEAD_TOO_LARGE
        is_chunked = False
        for name, value in fields:
            if len(name) not in _TELLING_LENGTHS:
                continue
            match name.lower():
                case b"content-type":
                    self.media_type = self.media_type or value
                case b"content-length":
                    self.is_framed = True
                case b"content-encoding":
                    self.coding = self.coding + b"," + value if self.coding else value
                case b"transfer-encoding":
                    # Any other coding was never asked for, and its end would be anybody's guess.
                    if is_chunked or value.strip(b" \t").lower() != b"chunked":
                        return BROKEN_FRAMING
                    self.is_framed = is_chunked = True
        self.fields = fields
        self.status = status
        return None

    def wake(self) -> None:
        """Lets the reader look again."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def crash(self, bug: Exception) -> None:
        """Let the reader meet an exception of its own."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(bug)
