"""Reads what keys have used of their caps; the scripts of admission and settlement write it."""

import asyncio
from collections.abc import Iterable

from cluster_gw.core.limits.caps import UNUSED_CAPS, CapsUse, caps_use_at
from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.client import RedisClient


class CapRecords:
    """Reads records of caps.

    Args:
        client: of this process.
    """

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def look(self, records: Iterable[str], now_ms: int) -> dict[str, CapsUse | None]:
        """Give what is used, by record; None for one that cannot be read.

        Args:
            records: keys of Redis, any number.
            now_ms: ms since the epoch.

        Raises:
            StoreLostError: Redis is away.
        """
        names = list(records)
        found = await asyncio.gather(*(self._look_at(name, now_ms) for name in names))
        return dict(zip(names, found, strict=True))

    async def _look_at(self, name: str, now_ms: int) -> CapsUse | None:
        try:
            text = await self._client.call("HGET", name, "now")
        except RecordUnreadableError:  # the client has told of it
            return None
        if text is None:
            return UNUSED_CAPS
        try:
            return caps_use_at(tuple(map(int, bytes(text).split())), now_ms)
        except ValueError:
            self._client.unreadable.tell(name)
            return None
