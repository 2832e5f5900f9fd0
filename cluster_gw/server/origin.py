"""Where a request comes from, as far as it can be believed (room 1).

A proxy writes into `X-Forwarded-For` who connected to it, after whatever the client had written
there itself. So it is read from its end, and only as long as whoever wrote an entry is one of the
configured proxies.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDED: Final = b"x-forwarded-for"
MAPPED_BITS: Final = 96  # of ::ffff:0:0, before the IPv4 address
MAX_HOPS: Final = 16
UNKNOWN: Final = "unknown"


def read_network(text: str) -> Network | None:
    """A network such as `10.0.0.0/8`, or an address alone; None when it is neither.

    One of IPv4 addresses written as IPv6 (`::ffff:10.0.0.0/104`) is that of the IPv4 addresses, as
    which they are read from connections and headers, too.
    """
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return None
    if isinstance(network, ipaddress.IPv4Network) or network.prefixlen < MAPPED_BITS:
        return network
    mapped = network.network_address.ipv4_mapped
    return (
        network
        if mapped is None
        else ipaddress.IPv4Network((mapped, network.prefixlen - MAPPED_BITS))
    )


def find_origin(
    peer: str | None, headers: Iterable[tuple[bytes, bytes]], trusted: Sequence[Network]
) -> Address | None:
    """Tell who sent a request; None when not even the peer has an address.

    Args:
        peer: whose connection it is.
        headers: of the request, names in lower case.
        trusted: proxies whose word is believed.
    """
    origin = _read_address(peer or "")
    if not trusted or not _is_among(origin, trusted):
        return origin
    written = b",".join([value for name, value in headers if name == FORWARDED])
    for hop in reversed(written.decode("latin-1").rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
        before = _read_address(hop.strip())
        if before is None:
            break
        origin = before
        if not _is_among(origin, trusted):
            break
    return origin


def network_of(origin: Address | None, ipv6_prefix: int) -> str:
    """What is counted together: an IPv4 address, or the IPv6 network that one customer has."""
    if origin is None:
        return UNKNOWN
    if isinstance(origin, ipaddress.IPv4Address):
        return str(origin)
    return str(ipaddress.IPv6Network((int(origin), ipv6_prefix), strict=False))


def _read_address(text: str) -> Address | None:
    """An address with or without a port, a zone and brackets."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_among(address: Address | None, networks: Sequence[Network]) -> bool:
    return address is not None and any(address in network for network in networks)
