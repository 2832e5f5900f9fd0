"""Names every exception of the HTTP shell as a `Fault`: the one door between aiohttp and our words.

The phase is told by the place that caught the exception, never guessed from its class: the same
`ClientOSError` means "nothing was sent" while connecting and "unknown" after the request was
written. Texts are built from error numbers only, so no host, path or body can leak through them.
"""

import errno
import ssl
from typing import Final

from aiohttp import ClientConnectorDNSError, ClientError, ServerFingerprintMismatch
from aiohttp.http_exceptions import (
    ContentLengthError,
    HttpProcessingError,
    LineTooLong,
    TransferEncodingError,
)
from aiohttp.streams import EofStream

from cluster_gw.canonical.failure import Fault, FaultKind, Sent

CONNECT_ERRORS: Final = (ClientError, OSError, ValueError)
"""What opening a connection can raise: `TimeoutError` and TLS errors are `OSError`s, a host name
that IDNA refuses is a `ValueError`."""

EXCHANGE_ERRORS: Final = (ClientError, HttpProcessingError, EofStream, OSError, RuntimeError)
"""What reading an answer can raise. `RuntimeError` is aiohttp's word for a read on a connection
that is gone."""


def describe(exc: BaseException) -> str:
    """The cause in a few words that hold no text of the peer: an errno name or a TLS reason."""
    if isinstance(exc, ClientConnectorDNSError):
        return "name not resolved"
    if isinstance(exc, ServerFingerprintMismatch):
        return "tls fingerprint refused"
    cause = _cause(exc)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls certificate refused: {getattr(cause, 'verify_code', 'unknown')}"
    if isinstance(cause, ssl.SSLError):
        return f"tls failed: {getattr(cause, 'reason', None) or 'handshake'}"
    number = cause.errno if isinstance(cause, OSError) else None
    if number is None:
        return "connection lost"
    return errno.errorcode.get(number, f"errno {number}").lower()


def connect_fault(exc: BaseException) -> Fault:
    """A failure before any byte of the request was written."""
    if isinstance(exc, TimeoutError) or getattr(exc, "errno", None) == errno.ETIMEDOUT:
        return Fault(
            kind=FaultKind.CONNECT_TIMEOUT, sent=Sent.NOT_SENT, message="connect timed out"
        )
    return Fault(kind=FaultKind.CONNECT, sent=Sent.NOT_SENT, message=f"connect: {describe(exc)}")


def head_fault(exc: BaseException) -> Fault:
    """A failure after the request was written and before a whole answer head came back.

    A close without an answer is UNKNOWN: also on a reused connection that the peer closed just as
    we wrote, since the bytes may have been read before.
    """
    if isinstance(exc, HttpProcessingError):
        return _unreadable_head(exc)
    return Fault(
        kind=FaultKind.DISCONNECTED,
        sent=Sent.UNKNOWN,
        message=f"closed before an answer: {describe(exc)}",
    )


def body_fault(exc: BaseException) -> Fault:
    """A failure in the middle of the answer's body."""
    cause = exc.__cause__
    framing = isinstance(exc, HttpProcessingError) or isinstance(cause, HttpProcessingError)
    if framing and not isinstance(cause, ContentLengthError | TransferEncodingError):
        return Fault(kind=FaultKind.MALFORMED, message="answer breaks HTTP framing")
    return Fault(kind=FaultKind.CUT, message="answer ended in mid-body")


def _unreadable_head(exc: HttpProcessingError) -> Fault:
    if isinstance(exc.__cause__ or exc, LineTooLong):
        return Fault(kind=FaultKind.TOO_LARGE, message="answer head above its bound")
    return Fault(kind=FaultKind.MALFORMED, message="answer is not HTTP")


def _cause(exc: BaseException) -> BaseException:
    """The error inside aiohttp's wrapper; its TLS wrappers lack the fields of what they wrap."""
    for name in ("certificate_error", "os_error"):
        inner = getattr(exc, name, None)
        if isinstance(inner, BaseException):
            return inner
    return exc
