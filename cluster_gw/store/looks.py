"""Looks at the windows of this configuration every few seconds, for the time Redis may go away.

What is read is only kept: who needs it, needs it when it cannot be read any more. A look reads the
field `now` of each hash; what has left a minute since the last admission there is in other fields,
so use is told too high rather than too low.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.core.limits.allowance import ClientGate
from cluster_gw.core.limits.usage import UNUSED, use_at
from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Gate
from cluster_gw.store.alone import Alone
from cluster_gw.store.client import RedisClient
from cluster_gw.units import MS_PER_S

LOOK_S: Final = 5.0
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

    async def look(self) -> None:
        """Read everything once, unless something of Redis is in doubt.

        Raises:
            StoreLostError: it went away.
        """
        if self._alone.doubts:
            return
        await self._read(self._windows(), used_of_window)
        await self._read(self._caps(), used_of_caps)
        await self._read(self._clients(), used_of_client)

    async def _read(
        self, keys: Iterable[str], used_of: Callable[[tuple[int, ...], int], dict[str, int]]
    ) -> None:
        wanted = [*dict.fromkeys(keys)]
        for first in range(0, len(wanted), BATCH):
            some, at_s = wanted[first : first + BATCH], self._alone.monotonic_s()
            replies = await asyncio.gather(*(self._client.call("HGET", key, "now") for key in some))
            now_ms = round(self._server_ms() or 0)
            for key, reply in zip(some, replies, strict=True):
                numbers = tuple(int(word) for word in (reply or b"").split())
                self._alone.ledger.learn(key, used_of(numbers, now_ms), at_s)


def used_of_window(numbers: tuple[int, ...], now_ms: int) -> dict[str, int]:
    """How much of each bound of a window is used.

    Args:
        numbers: of its field `now`, see lua/lib/window.lua; none where it was never used.
        now_ms: the server's clock.
    """
    use = use_at(numbers, now_ms) if numbers else UNUSED
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
