"""Names become addresses: asked once for all who wait, remembered for a short while."""

import asyncio
import ipaddress
import socket
from typing import Final

import msgspec

AddrInfo = tuple[
    int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]
"""What `getaddrinfo` gives: family, type, protocol, canonical name, address."""

TTL_S: Final = 30.0
# The system's answer has no TTL. A name that moved is also forgotten when connecting fails.
MAX_NAMES: Final = 1_024


class _Known(msgspec.Struct):
    addresses: list[AddrInfo]
    until_s: float


class Resolver:
    """Resolves with the system's resolver, in its threads.

    Args:
        loop: the running loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._known: dict[tuple[str, int], _Known] = {}
        self._lookups: dict[tuple[str, int], asyncio.Task[list[AddrInfo]]] = {}

    async def resolve(self, host: str, port: int) -> list[AddrInfo]:
        """All addresses of a host, never none; each call begins with another one.

        Raises:
            OSError: the name has no address.
            ValueError: the name cannot be a name.
        """
        if _is_address(host):
            return _numeric(host, port)
        key = (host, port)
        known = self._known.get(key)
        if known is not None and known.until_s > self._loop.time():
            first, *rest = known.addresses
            known.addresses = [*rest, first]
            return known.addresses
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = self._loop.create_task(self._look_up(host, port))
            lookup.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(lookup)

    def forget(self, host: str, port: int) -> None:
        """Asks anew next time: none of the addresses could be reached."""
        self._known.pop((host, port), None)

    async def close(self) -> None:
        """Ends what is being asked."""
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    async def _look_up(self, host: str, port: int) -> list[AddrInfo]:
        found = await self._loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        return list(found)

    def _keep(self, key: tuple[str, int], lookup: asyncio.Task[list[AddrInfo]]) -> None:
        del self._lookups[key]
        # Asking for the exception also marks it as seen, in case every waiter has left.
        if lookup.cancelled() or lookup.exception() is not None:
            return
        if len(self._known) >= MAX_NAMES:
            self._known.clear()
        self._known[key] = _Known(lookup.result(), self._loop.time() + TTL_S)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _numeric(host: str, port: int) -> list[AddrInfo]:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
