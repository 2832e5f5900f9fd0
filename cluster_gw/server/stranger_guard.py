"""How many requests without a valid credential one address may send (room 1).

Only they are counted and only they are refused: a client with a good key is served whatever its
neighbours behind the same address do, and costs nothing here. All workers count together; one that
cannot reach Redis counts alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cluster_gw.errors import ErrorBody, StoreLostError
from cluster_gw.server.auth import too_many_strangers
from cluster_gw.server.minute_counts import MinuteCounts
from cluster_gw.server.origin import Network, find_origin, network_of
from cluster_gw.store.strangers import APART, Strangers
from cluster_gw.units import MS_PER_S

NAMED: Final = 5  # networks that one log line names


class StrangerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What strangers may do.

    Attributes:
        rpm: requests of one address a minute that get the plain 401; 0 sets no bound.
        ipv6_prefix: bits of an IPv6 address that make one network.
        trusted_proxies: whose `X-Forwarded-For` is believed.
    """

    rpm: int = 120
    ipv6_prefix: int = 64
    trusted_proxies: tuple[Network, ...] = ()


class StrangerGuard:
    """Answers strangers.

    Args:
        strangers: counts them over all workers.
        monotonic_s: clock of the windows this worker remembers.
    """

    def __init__(self, strangers: Strangers, monotonic_s: Callable[[], float]) -> None:
        self._strangers = strangers
        self._monotonic_s = monotonic_s
        self._barred: dict[str, float] = {}
        self._alone = MinuteCounts(monotonic_s, apart=APART)
        self._news: list[str] = []
        self._news_count = 0

    async def judge(
        self, error: ErrorBody, scope: Mapping[str, Any], policy: StrangerPolicy
    ) -> ErrorBody:
        """Count a request that cannot be authenticated; its error, or a 429 instead of it."""
        if not policy.rpm:
            return error
        peer = scope["client"]
        origin = find_origin(peer[0] if peer else None, scope["headers"], policy.trusted_proxies)
        network = network_of(origin, policy.ipv6_prefix)
        now_s = self._monotonic_s()
        barred_until_s = self._barred.get(network, 0.0)
        if now_s < barred_until_s:
            return too_many_strangers(barred_until_s - now_s)
        try:
            counted = await self._strangers.count(network)
            count, left_s = counted.count, counted.left_ms / MS_PER_S
        except StoreLostError:
            count, left_s = self._alone.count(network)
        if count <= policy.rpm:
            return error
        if self._barred.get(network, 0.0) <= now_s:  # else one that came with it was told already
            self._bar(network, now_s + left_s)
        return too_many_strangers(left_s)

    def take_news(self) -> tuple[int, list[str]]:
        """How many networks came to their bound since the last call, and some of them."""
        news = self._news_count, self._news
        self._news_count, self._news = 0, []
        return news

    def _bar(self, network: str, until_s: float) -> None:
        if len(self._barred) >= APART:
            self._barred.clear()  # they are still counted: Redis says so again
        self._barred[network] = until_s
        self._news_count += 1
        if len(self._news) < NAMED:
            self._news.append(network)
