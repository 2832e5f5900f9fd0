"""What went wrong upstream, as facts (`Fault`) and as words for a judgement (`FailureClass`).

A fault carries no judgement: `core/outcome/classify` turns it into a `Verdict`. Codecs and shells
produce faults; they must not know what a fault means for breaker, cooldown or the client.
"""

from enum import StrEnum
from typing import final

import msgspec


class Sent(StrEnum):
    """How much of the request the upstream may have seen; decides what a repeat costs."""

    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"
    SENT = "sent"


class FaultKind(StrEnum):
    """Where and how an attempt ended without a usable answer."""

    CONNECT = "connect"  # no connection was made: nothing was sent
    CONNECT_TIMEOUT = "connect_timeout"
    PROXY = "proxy"  # what stands between did not pass us on: nothing was sent
    ADDRESS = "address"  # the upstream is where none may be: nothing was sent
    WRITE_TIMEOUT = "write_timeout"  # the upstream did not take the request in time
    HEADERS_TIMEOUT = "headers_timeout"  # request written, no status line in time
    STALL = "stall"  # bytes stopped in mid-body
    DISCONNECTED = "disconnected"  # closed after the request was written, before a status line
    CUT = "cut"  # closed in mid-body
    HTTP_STATUS = "http_status"  # an error status with its body
    IN_BAND = "in_band"  # an error object inside a 200 answer or stream
    MALFORMED = "malformed"  # body is not what its dialect says
    CONTENT_TYPE = "content_type"  # a 200 that is not JSON or SSE at all
    TOO_LARGE = "too_large"  # answer above the bound
    NO_TERMINAL = "no_terminal"  # clean end of file without an end marker or finish reason
    GATE = "gate"  # the finished answer was rejected; `reason` holds the gate code
    PEEK = "peek"  # the stream was rejected before commit; `reason` holds the peek code
    HEDGE = "hedge"  # our time budget ran out before the first byte
    DEADLINE = "deadline"  # the client's deadline passed
    CLIENT_GONE = "client_gone"
    CREDENTIAL = "credential"  # our own secret is missing or unreadable


class FailureClass(StrEnum):
    """The nine coarse classes that trails, metrics and clients see."""

    NETWORK = "network"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    INVALID_REQUEST = "invalid_request"
    CONTENT_REJECTED = "content_rejected"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@final
class Fault(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Facts of one failed upstream call.

    Attributes:
        kind: where it ended.
        sent: whether the upstream may have seen the request.
        status: HTTP status of the upstream answer, if there was one.
        type: the `type` of the vendor's error object.
        code: the `code` of the vendor's error object.
        message: the vendor's or the shell's text, redacted, at most 300 characters.
        retry_after_ms: stated wait in milliseconds, 0..86_400_000.
        reason: code of a gate or peek rejection, such as `gate.empty` or `peek.idle`.
        param: what of the request the upstream names, redacted.
    """

    kind: FaultKind
    sent: Sent = Sent.SENT
    status: int | None = None
    type: str | None = None
    code: str | None = None
    message: str = ""
    retry_after_ms: int | None = None
    reason: str | None = None
    param: str | None = None
