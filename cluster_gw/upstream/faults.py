"""Names every exception of the HTTP shell as a `Fault`: the one door between sockets and our words.

The phase is told by the place that caught the exception, never guessed from its class: the same
`ConnectionResetError` means "nothing was sent" while connecting and "unknown" after the request
was written. Texts are built from error numbers only, so no host, path or body can leak through
them.
"""

import errno
import socket
import ssl
from typing import Final

from cluster_gw.canonical.failure import Fault, FaultKind, Sent

CONNECT_ERRORS: Final = (OSError, ValueError, RuntimeError)
"""What opening a connection can raise: timeouts, name resolution and TLS are `OSError`s, a host
name that IDNA refuses is a `ValueError`, and uvloop says `RuntimeError` for some sockets."""

UNREADABLE: Final = Fault(kind=FaultKind.MALFORMED, message="answer is not HTTP")
HEAD_TOO_LARGE: Final = Fault(kind=FaultKind.TOO_LARGE, message="answer head above its bound")
SWITCHED: Final = Fault(kind=FaultKind.MALFORMED, message="answer switches protocols")
BROKEN_FRAMING: Final = Fault(kind=FaultKind.MALFORMED, message="answer breaks HTTP framing")
CUT: Final = Fault(kind=FaultKind.CUT, message="answer ended in mid-body")
CLOSED: Final = Fault(kind=FaultKind.CUT, message="answer closed by the gateway")

GONE: Final = Fault(
    kind=FaultKind.CONNECT, sent=Sent.NOT_SENT, message="connect: lost before the request left"
)


def describe(exc: BaseException | None) -> str:
    """The cause in a few words that hold no text of the peer: an errno name or a TLS reason."""
    if isinstance(exc, socket.gaierror):
        return "name not resolved"
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"tls certificate refused: {getattr(exc, 'verify_code', 'unknown')}"
    if isinstance(exc, ssl.SSLError):
        return f"tls failed: {getattr(exc, 'reason', None) or 'handshake'}"
    number = exc.errno if isinstance(exc, OSError) else None
    if number is None:
        return "connection lost"
    return errno.errorcode.get(number, f"errno {number}").lower()


def unsent(kind: FaultKind, message: str) -> Fault:
    """A failure of our own before any byte of the request was written."""
    return Fault(kind=kind, sent=Sent.NOT_SENT, message=message)


def connect_fault(exc: BaseException) -> Fault:
    """A failure while the connection was being opened."""
    if isinstance(exc, TimeoutError) or getattr(exc, "errno", None) == errno.ETIMEDOUT:
        return unsent(FaultKind.CONNECT_TIMEOUT, "connect timed out")
    return unsent(FaultKind.CONNECT, f"connect: {describe(exc)}")


def proxy_fault(exc: BaseException) -> Fault:
    """A failure on the way to a proxy, or while it was being spoken to."""
    return unsent(FaultKind.PROXY, connect_fault(exc).message.replace("connect", "proxy", 1))


def lost_fault(exc: BaseException | None) -> Fault:
    """A close after the request was written and before a whole answer head came back.

    It is UNKNOWN: also on a reused connection that the peer closed just as we wrote, since the
    bytes may have been read before.
    """
    return Fault(
        kind=FaultKind.DISCONNECTED,
        sent=Sent.UNKNOWN,
        message=f"closed before an answer: {describe(exc)}",
    )
