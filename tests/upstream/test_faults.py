import errno
import inspect
import ssl

import aiohttp
import pytest
from aiohttp import client_exceptions, http_exceptions
from aiohttp.client_reqrep import ConnectionKey

from cluster_gw.canonical.failure import FaultKind, Sent
from cluster_gw.upstream.faults import (
    CONNECT_ERRORS,
    EXCHANGE_ERRORS,
    body_fault,
    connect_fault,
    describe,
    head_fault,
)

KEY = ConnectionKey("secret-host", 1, False, True, None, None, None)
FOREIGN = [
    kind
    for module in (client_exceptions, http_exceptions)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Exception) and not issubclass(kind, Warning)
]
NOT_OURS = {
    "WSMessageTypeError",  # websockets only
    "UnionType",
}


def bare(kind: type[Exception]) -> Exception:
    """An instance without running its constructor: only class and args matter to the mapping."""
    return kind.__new__(kind)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_exception_of_the_library_is_caught_somewhere(kind: type[Exception]) -> None:
    if kind.__name__ in NOT_OURS:
        return

    assert issubclass(kind, CONNECT_ERRORS + EXCHANGE_ERRORS)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_phase_decides_what_was_sent(kind: type[Exception]) -> None:
    exc = bare(kind)

    assert connect_fault(exc).sent is Sent.NOT_SENT
    assert head_fault(exc).sent in {Sent.UNKNOWN, Sent.SENT}
    assert body_fault(exc).sent is Sent.SENT


@pytest.mark.parametrize(
    ("exc", "kind", "message"),
    [
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "secret")),
            FaultKind.CONNECT,
            "connect: econnrefused",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ETIMEDOUT, "secret")),
            FaultKind.CONNECT_TIMEOUT,
            "connect timed out",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "secret")),
            FaultKind.CONNECT,
            "connect: name not resolved",
        ),
        (TimeoutError(), FaultKind.CONNECT_TIMEOUT, "connect timed out"),
        (aiohttp.ConnectionTimeoutError(), FaultKind.CONNECT_TIMEOUT, "connect timed out"),
        (ssl.SSLError(1, "secret"), FaultKind.CONNECT, "connect: tls failed: handshake"),
        (UnicodeError("secret"), FaultKind.CONNECT, "connect: connection lost"),
        (aiohttp.ClientConnectionError("secret"), FaultKind.CONNECT, "connect: connection lost"),
    ],
)
def test_connect_failure_is_named_without_a_foreign_text(
    exc: Exception, kind: FaultKind, message: str
) -> None:
    fault = connect_fault(exc)

    assert (fault.kind, fault.message) == (kind, message)


def test_reset_before_the_head_names_its_errno() -> None:
    fault = head_fault(aiohttp.ClientOSError(errno.ECONNRESET, "secret"))

    assert fault.kind is FaultKind.DISCONNECTED
    assert fault.message == "closed before an answer: econnreset"


def test_description_of_an_unknown_errno_is_a_number() -> None:
    assert describe(OSError(99_999, "secret")) == "errno 99999"
