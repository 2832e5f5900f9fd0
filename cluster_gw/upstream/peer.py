"""Which addresses a call may reach.

It is decided on the peer that was really connected, since a name may resolve to another address
than the one that was checked.
"""

import asyncio
import ipaddress


def is_public_peer(transport: asyncio.BaseTransport) -> bool:
    """Whether the connected address is on the public internet, not loopback, private or local."""
    peer = transport.get_extra_info("peername")
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
