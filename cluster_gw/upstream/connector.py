"""The connection pool: aiohttp's connector with two of its silences made audible.

A body whose framing breaks raises nothing in a reader that is already waiting (aiohttp 3.14 tells
only the connection); here it does. Which addresses a call may reach is decided on the peer that
was really connected, since a name may resolve to another address than the one that was checked.
"""

import functools
import ipaddress
import ssl

from aiohttp import ClientPayloadError, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

_DNS_TTL_S = 30


class AudibleProtocol(ResponseHandler):
    """Hands a framing error on to the task that waits for the body."""

    def data_received(self, data: bytes) -> None:
        """Parses what came; see the class."""
        super().data_received(data)
        payload = self._payload
        if self._exception is None or payload is None or payload.is_eof():
            return
        if payload.exception() is None:
            payload.set_exception(ClientPayloadError("framing"), self._exception)


class PooledConnector(TCPConnector):
    """A pool without a bound: admission has already decided how many calls may run.

    Args:
        keepalive_s: seconds an idle connection stays usable.
        tls: context for https; None is the platform's default with full verification.
    """

    def __init__(self, keepalive_s: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            limit=0,
            keepalive_timeout=keepalive_s,
            ttl_dns_cache=_DNS_TTL_S,
            ssl=tls if tls is not None else True,
        )
        # The connector has no public place for it; `partial` is invariant, hence the ignore.
        self._factory = functools.partial(AudibleProtocol, loop=self._loop)  # type: ignore[assignment]


def is_public_peer(connection: Connection) -> bool:
    """Whether the connected address is on the public internet, not loopback, private or local."""
    transport = connection.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    if not isinstance(peer, tuple) or not peer:
        return False
    return is_public_address(str(peer[0]))


def is_public_address(text: str) -> bool:
    """Whether an address in text form is globally reachable; False for anything else."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast
