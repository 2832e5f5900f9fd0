"""A second connection to the Redis that decides, for what is large and may wait.

An answer of 2 MB would hold up every admission behind it on their one connection. It is opened at
the first use; until it is there, and whenever it is not, calls go along with all others.
"""

from collections.abc import Sequence

from cluster_gw.store.address import Address
from cluster_gw.store.client import RedisClient, Route
from cluster_gw.store.lane import Argument, Lane
from cluster_gw.store.topology import Dialer


class Detour:
    """The connections of a client of its own, or those of another; see `client.Route`.

    Args:
        own: opened when they are first needed.
        other: taken while those are not there.
    """

    def __init__(self, own: Route, other: Route) -> None:
        self._own = own
        self._other = other
        self._is_started = False

    @property
    def is_up(self) -> bool:
        """Whether calls are being sent now."""
        return self._own.is_up or self._other.is_up

    @property
    def is_cut_off(self) -> bool:
        """Whether no server is connected."""
        return self._own.is_cut_off and self._other.is_cut_off

    @property
    def fault(self) -> str:
        """Why a server was lost or could not be reached."""
        return self._own.fault or self._other.fault

    @property
    def calls(self) -> int:
        """Calls sent by way of its own connections."""
        return self._own.calls

    @property
    def flushes(self) -> int:
        """Writes made to those."""
        return self._own.flushes

    @property
    def pending(self) -> int:
        """Calls that wait for a reply there."""
        return self._own.pending

    @property
    def reconnects(self) -> int:
        """How often those were opened again."""
        return self._own.reconnects

    def lane_for(self, args: Sequence[Argument], /) -> Lane | None:
        """The lane a command must take, dead or alive; None when there is none yet."""
        return self._now().lane_for(args)

    def live_lanes(self) -> list[Lane]:
        """All lanes that work: what is loaded on one is on the server."""
        return self._now().live_lanes()

    def start(self) -> None:
        """Begin to connect."""
        self._is_started = True
        self._own.start()

    async def close(self) -> None:
        """Close its own connections."""
        await self._own.close()

    def _now(self) -> Route:
        if not self._is_started:
            self.start()
        return self._own if self._own.is_up else self._other


class SecondClient(RedisClient):
    """Calls the Redis of another client by a connection of its own; see `RedisClient`.

    Args:
        url: where it is, as the other was told.
        first: the other one.
    """

    def __init__(self, url: str, first: RedisClient) -> None:
        self._first = first
        super().__init__(url, prefix=first.prefix)
        self.unreadable = first.unreadable

    def _build(self, address: Address, dialer: Dialer) -> Route:
        own = super()._build(address, dialer)
        return Detour(own, self._first._route)  # noqa: SLF001 - of another one of its class
