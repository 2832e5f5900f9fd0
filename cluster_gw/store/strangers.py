"""Requests without a valid credential, counted by network over all workers.

The script is `lua/client/count_stranger`. Memory is bounded: so many networks are counted apart,
all others together.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.errors import StoreLostError
from cluster_gw.store.admission import server_clock
from cluster_gw.store.alone import Alone, AwayError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts

APART: Final = 10_000  # at most 1 MB, and half of that as one worker remembers it


class Counted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many requests there were in this window, and for how long it goes on."""

    count: int
    left_ms: int


class Strangers:
    """Counts strangers of all workers in fixed windows of a minute.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
        alone: tells whether Redis is in doubt, and is told when it does not answer; without it
            every call is waited for.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        server_now_ms: Callable[[], int] = server_clock,
        alone: Alone | None = None,
    ) -> None:
        self._client = client
        self._script = scripts["client/count_stranger"]
        self._key = keys.strangers()
        self._server_now_ms = server_now_ms
        self._alone = alone

    async def count(self, network: str) -> Counted:
        """Count one request from a network.

        Raises:
            AwayError: Redis is in doubt and was not asked.
            StoreLostError: it did not answer; the request may have been counted.
        """
        if self._alone is not None and self._alone.is_doubted(self._key):
            raise AwayError("redis is in doubt")
        try:
            reply = await self._client.run(
                self._script, [self._key], [network, APART, self._server_now_ms()]
            )
        except StoreLostError as fault:
            if self._alone is not None:
                self._alone.note(self._key, fault)
            raise
        return Counted(count=int(reply[2]), left_ms=int(reply[3]))
