import errno
import socket
import ssl

import pytest
from httptools import HttpParserError, HttpParserUpgrade
from httptools.parser import errors

from cluster_gw.canonical.failure import FaultKind, Sent
from cluster_gw.upstream.faults import CONNECT_ERRORS, connect_fault, describe, lost_fault

CERTIFICATE = ssl.SSLCertVerificationError(1, "secret")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_exception_of_the_parser_is_caught(name: str) -> None:
    assert issubclass(getattr(errors, name), HttpParserError | HttpParserUpgrade)


@pytest.mark.parametrize(
    "kind",
    [
        TimeoutError,
        ConnectionRefusedError,
        socket.gaierror,
        ssl.SSLError,
        ssl.SSLCertVerificationError,
        ssl.CertificateError,
        UnicodeError,
        RuntimeError,
    ],
)
def test_every_way_to_fail_a_connect_is_caught_and_unsent(kind: type[Exception]) -> None:
    assert issubclass(kind, CONNECT_ERRORS)
    assert connect_fault(kind()).sent is Sent.NOT_SENT


@pytest.mark.parametrize(
    ("exc", "kind", "message"),
    [
        (OSError(errno.ECONNREFUSED, "secret"), FaultKind.CONNECT, "connect: econnrefused"),
        (OSError(errno.ETIMEDOUT, "secret"), FaultKind.CONNECT_TIMEOUT, "connect timed out"),
        (socket.gaierror(-2, "secret"), FaultKind.CONNECT, "connect: name not resolved"),
        (TimeoutError(), FaultKind.CONNECT_TIMEOUT, "connect timed out"),
        (ssl.SSLError(1, "secret"), FaultKind.CONNECT, "connect: tls failed: handshake"),
        (CERTIFICATE, FaultKind.CONNECT, "connect: tls certificate refused: unknown"),
        (UnicodeError("secret"), FaultKind.CONNECT, "connect: connection lost"),
        (RuntimeError("secret"), FaultKind.CONNECT, "connect: connection lost"),
    ],
)
def test_connect_failure_is_named_without_a_foreign_text(
    exc: Exception, kind: FaultKind, message: str
) -> None:
    fault = connect_fault(exc)

    assert (fault.kind, fault.message) == (kind, message)


def test_reset_before_the_head_names_its_errno() -> None:
    fault = lost_fault(OSError(errno.ECONNRESET, "secret"))

    assert (fault.kind, fault.sent) == (FaultKind.DISCONNECTED, Sent.UNKNOWN)
    assert fault.message == "closed before an answer: econnreset"


def test_polite_close_before_the_head_is_named() -> None:
    assert lost_fault(None).message == "closed before an answer: connection lost"


def test_description_of_an_unknown_errno_is_a_number() -> None:
    assert describe(OSError(99_999, "secret")) == "errno 99999"
