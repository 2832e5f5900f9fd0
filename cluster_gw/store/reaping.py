"""Giving back what dead workers hold: slots and trials of their leases (`lua/admission/reap`), and
trials of whole providers (`lua/health/free`).

The holds of clients are written like leases, so that the same script frees their slots.

Nothing else is given back: request and tokens stay until the lease expires, as the provider has
most likely seen them, and a worker that was only slow still settles them exactly.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.admission import server_clock
from cluster_gw.store.caller import ScriptCaller
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.membership import DeadWorker
from cluster_gw.store.plan import SCOPE_CLIENT, Plans
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ClientId

BATCH: Final = 50  # windows asked about in one write


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What one walk over all windows did.

    Attributes:
        leases: leases whose slot was freed.
        is_whole: every window was looked at; otherwise the time was over before.
    """

    leases: int
    is_whole: bool


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window, and of a model's window the health records of target and key; or a provider.

    Attributes:
        key: the hash of the window, or the provider's record.
        is_provider: it is the latter.
    """

    key: str
    health: tuple[str, ...] = ()
    is_provider: bool = False


class Reaping(ScriptCaller):
    """Walks over the windows of targets and clients and frees what dead workers hold there.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        clients: gives the clients that may hold something now.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        clients: Callable[[], Iterable[ClientId]] = tuple,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        super().__init__(client, scripts, keys, server_now_ms=server_now_ms)
        self._clients = clients
        self._plans = Plans(keys, scripts)

    async def sweep(
        self,
        dead: Sequence[DeadWorker],
        targets: Iterable[TargetLimits],
        *,
        valid_until_ms: int,
    ) -> Sweep:
        """Free the slots of dead workers in every window of `targets`.

        Args:
            dead: whose leases lose their slots, at least one.
            targets: what was or may have been admitted; as a client's share of one beside it.
            valid_until_ms: the server does nothing after this instant, ms since the epoch.

        Raises:
            StoreLostError: Redis is away; sweep again.
        """
        leases, is_whole = 0, True
        windows = self._windows(targets)
        for first in range(0, len(windows), BATCH):
            swept = await asyncio.gather(
                *(
                    self._sweep_window(window, dead, valid_until_ms)
                    for window in windows[first : first + BATCH]
                )
            )
            leases += sum(one.leases for one in swept)
            is_whole = is_whole and all(one.is_whole for one in swept)
        return Sweep(leases=leases, is_whole=is_whole)

    async def _sweep_window(
        self, window: Window, dead: Sequence[DeadWorker], valid_until_ms: int
    ) -> Sweep:
        names = [worker.id for worker in dead]
        try:
            status, _, freed = await self._call(
                "health/free" if window.is_provider else "admission/reap",
                [window.key, *window.health],
                valid_until_ms,
                *names,
            )
        except RecordUnreadableError:  # there is nothing to free before it is mended
            return Sweep(leases=0, is_whole=True)
        # Each lease is in one model window: there it is counted.
        return Sweep(leases=freed if window.health else 0, is_whole=status != 0)

    def _windows(self, targets: Iterable[TargetLimits]) -> list[Window]:
        found: dict[Window, None] = {}
        for target in targets:
            if target.share is not None:  # one for each client: too many to keep plans of
                windows = self._plans.windows_of(target)
                found.update((Window(key=k), None) for s, k, _ in windows if s == SCOPE_CLIENT)
                continue
            plan = self._plans.of(target)
            of_model, *others = plan.windows
            found[Window(key=of_model, health=plan.health)] = None
            found.update((Window(key=key), None) for key in others)
            found[Window(key=self._keys.outage(target.host), is_provider=True)] = None
        for client in self._clients():
            found[Window(key=self._keys.client(client)[1])] = None
        return list(found)
