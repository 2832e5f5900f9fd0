"""Keeps what is used of every limit in mind, for the time Redis may go away.

Most of it comes with each snapshot. What that does not tell is read here: what clients and caps
used, windows nobody used lately, and everything after a return of Redis. A look reads the field
`now` of each hash; what has left a minute since the last admission there is in other fields, so use
is told too high rather than too low.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.core.limits.allowance import ClientGate
from cluster_gw.core.limits.usage import UNUSED, WindowUse, use_at
from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Gate
from cluster_gw.core.routing.snapshot import Snapshot
from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.alone import Alone
from cluster_gw.store.client import RedisClient
from cluster_gw.units import MS_PER_S

LOOK_S: Final = 5.0
TOLD_S: Final = 8.0  # the next snapshot should have told of it by then
IDLE_S: Final = 30.0  # what is used meanwhile is in a snapshot
BATCH: Final = 50


class Looks:
    """Keeps the ledger informed.

    Args:
        client: the worker's Redis client.
        alone: whose ledger it is.
        windows: the keys of all windows that may be admitted against.
        caps: those of what keys used of their caps.
        clients: those of all clients that have limits.
        server_ms: the server's clock, None while it is not known.
    """

    def __init__(
        self,
        client: RedisClient,
        alone: Alone,
        *,
        windows: Callable[[], Iterable[str]],
        caps: Callable[[], Iterable[str]],
        clients: Callable[[], Iterable[str]],
        server_ms: Callable[[], float | None],
    ) -> None:
        self._client = client
        self._alone = alone
        self._windows = windows
        self._caps = caps
        self._clients = clients
        self._server_ms = server_ms
        self._due_at_s: dict[str, float] = {}

    def take_over(self, snapshot: Snapshot, at_s: float) -> None:
        """Keep what a snapshot tells of windows.

        Args:
            snapshot: a new one.
            at_s: when its building began, by the worker's monotonic clock.
        """
        if self._alone.doubts:
            return
        due_at_s = self._alone.monotonic_s() + TOLD_S
        for window, use in snapshot.windows.items():
            self._alone.ledger.learn(window, gates_of(use), at_s)
            self._due_at_s[window] = due_at_s

    def forget(self) -> None:
        """Nothing that was read counts any more."""
        self._due_at_s.clear()

    async def look(self) -> None:
        """Read what nobody told of, unless something of Redis is in doubt.

        Raises:
            StoreLostError: it went away.
        """
        if self._alone.doubts:
            return
        await self._read(self._due(), used_of_window)
        await self._read(self._caps(), used_of_caps)
        await self._read(self._clients(), used_of_client)

    def _due(self) -> list[str]:
        """The windows to look at now; those of an older configuration are forgotten."""
        now_s, known = self._alone.monotonic_s(), self._due_at_s
        self._due_at_s = {window: known.get(window, now_s) for window in self._windows()}
        return [window for window, at_s in self._due_at_s.items() if at_s <= now_s]

    async def _read(
        self, keys: Iterable[str], used_of: Callable[[tuple[int, ...], int], dict[str, int]]
    ) -> None:
        wanted = [*dict.fromkeys(keys)]
        for first in range(0, len(wanted), BATCH):
            some, at_s = wanted[first : first + BATCH], self._alone.monotonic_s()
            await asyncio.gather(*(self._learn(key, used_of, at_s) for key in some))

    async def _learn(
        self, key: str, used_of: Callable[[tuple[int, ...], int], dict[str, int]], at_s: float
    ) -> None:
        """Read one record; of one that cannot be read nothing is known."""
        try:
            reply = await self._client.call("HGET", key, "now")
            numbers = tuple(int(word) for word in (reply or b"").split())
            used = used_of(numbers, round(self._server_ms() or 0))
        except RecordUnreadableError:
            return
        except ValueError:
            self._client.unreadable.tell(key)
            return
        self._alone.ledger.learn(key, used, at_s)
        if key in self._due_at_s:
            self._due_at_s[key] = at_s + (LOOK_S if numbers else IDLE_S)


def used_of_window(numbers: tuple[int, ...], now_ms: int) -> dict[str, int]:
    """How much of each bound of a window is used.

    Args:
        numbers: of its field `now`, see lua/lib/window.lua; none where it was never used.
        now_ms: the server's clock.
    """
    return gates_of(use_at(numbers, now_ms) if numbers else UNUSED)


def gates_of(use: WindowUse) -> dict[str, int]:
    """How much of each bound of a window is used."""
    return {
        Gate.RPM.value: use.requests_minute,
        Gate.PROVIDER_MINUTE_CAP.value: use.requests_minute,
        Gate.TPM.value: use.tokens_minute,
        Gate.RPD.value: use.requests_day,
        Gate.TPD.value: use.tokens_day,
        Gate.CONCURRENCY.value: use.in_flight,
    }


def used_of_caps(numbers: tuple[int, ...], now_ms: int) -> dict[str, int]:
    """How much of each cap of a key is used; arguments as in `used_of_window`."""
    _, day_ends_ms, requests, weighted, _, month_ends_ms, tokens, *_ = numbers or (0,) * 8
    if now_ms >= day_ends_ms:
        requests = weighted = 0
    return {
        Gate.PROVIDER_DAILY_CAP.value: requests,
        Gate.PROVIDER_DAILY_TOKEN_CAP.value: weighted,
        Gate.MONTHLY_BUDGET_CAP.value: 0 if now_ms >= month_ends_ms else tokens,
    }


def used_of_client(numbers: tuple[int, ...], now_ms: int) -> dict[str, int]:
    """How much of each bound of a client is used; arguments as in `used_of_window`."""
    second, _, _, requests, tokens, _, ends_ms, month_tokens, month_usd, count, *_ = (
        numbers or (0,) * 11
    )
    if now_ms // MS_PER_S - second >= MINUTE_BUCKETS:
        requests = tokens = 0
    if now_ms >= ends_ms:
        month_tokens = month_usd = 0
    return {
        ClientGate.RPM.value: requests,
        ClientGate.TPM.value: tokens,
        ClientGate.CONCURRENCY.value: count,
        ClientGate.MONTHLY_TOKENS.value: month_tokens,
        ClientGate.MONTHLY_USD.value: month_usd,
    }
