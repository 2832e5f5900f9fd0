"""Answers that are none: errors, and an upstream that says where else to ask.

It is never asked there: the key would go to whoever an answer names, and a call that was paid for
once might be paid for again. Where it points to is for whoever mends the address.
"""

from typing import Final
from urllib.parse import urlsplit

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.pipeline.targets import Target
from cluster_gw.upstream.response import UpstreamResponse
from cluster_gw.wire.redact import redact

MAX_ERROR_BYTES: Final = 65_536
FIRST_REDIRECT, LAST_REDIRECT = 300, 399
MAX_HOST_CHARACTERS: Final = 100


def error_fault(
    response: UpstreamResponse, body: bytes | Fault, target: Target, now_ms: int
) -> Fault:
    """The fault of an answer with another status than a good one.

    Args:
        response: its head.
        body: its body, as far as it could be read.
        target: that was called.
        now_ms: ms since the epoch.
    """
    if FIRST_REDIRECT <= response.status <= LAST_REDIRECT:
        return redirect_fault(response, target.secret)
    return target.codec.decode_error(
        response.status,
        response.headers,
        b"" if isinstance(body, Fault) else body,
        now_ms,
        target.secret,
    )


def redirect_fault(response: UpstreamResponse, secret: str | None) -> Fault:
    """The fault of an answer that does; of its `location` no more than the host is told.

    Args:
        response: its body is of no interest.
        secret: the credential of the call, struck out.
    """
    status = response.status
    where = _host_of(response.headers.get("location", ""))
    told = f" to {where}" if where else ""
    lower = None if secret is None else secret.lower()  # as the host is
    return Fault(
        kind=FaultKind.HTTP_STATUS,
        status=status,
        message=redact(f"redirects{told} (status {status}), which is not followed", secret, lower),
    )


def _host_of(location: str) -> str:
    """The host of an address; nothing for a place on the same host, or for what is none."""
    try:
        host = urlsplit(location).hostname or ""
    except ValueError:
        return ""
    is_plain = host.isascii() and host.replace("-", "").replace(".", "").isalnum()
    return host[:MAX_HOST_CHARACTERS] if is_plain else ""
