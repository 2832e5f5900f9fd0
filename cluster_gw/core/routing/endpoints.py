"""Relays: one model behind several addresses of one provider, told apart by a short handle."""

import re
from collections.abc import Iterable
from typing import Final

SCHEME: Final = re.compile(r"^[a-z]+://", re.IGNORECASE)
NOT_OF_A_HANDLE: Final = re.compile(r"[^a-z0-9]+")


def normalised(address: str) -> str:
    """An address as it is compared: without slashes at its end."""
    return address.rstrip("/")


def handle_of(address: str) -> str:
    """Host and path of an address in lower case, the rest a dash: `relay-example-8080-v1`."""
    return NOT_OF_A_HANDLE.sub("-", SCHEME.sub("", address).lower()).strip("-")


def handles_of(addresses: Iterable[str]) -> dict[str, str]:
    """Give each address a handle of its own; it does not depend on their order.

    Addresses of the same handle (such as `http` and `https`) get `-2`, `-3` and so on.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for address in sorted({normalised(address) for address in addresses}):
        handle, number = handle_of(address), 2
        while handle in used:
            handle, number = f"{handle_of(address)}-{number}", number + 1
        used.add(handle)
        found[address] = handle
    return found


def is_at(address: str, endpoint: str, handle: str = "") -> bool:
    """Tell whether an endpoint, an address or a handle, means an address.

    Args:
        address: of a relay, or a provider's own.
        endpoint: what a client wrote.
        handle: what the relay is called, where that is not the handle of its address alone.
    """
    if "://" in endpoint:
        return normalised(endpoint) == normalised(address)
    return endpoint == (handle or handle_of(address))
