"""Round-robin cursors that all workers share (`lua/session/advance_cursor`)."""

from collections import Counter
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.alone import Alone, AwayError, Mode
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import DAY_S, MS_PER_S, ComboId

CURSOR_TTL_MS: Final = DAY_S * MS_PER_S  # an unused cursor may as well start anew


class Cursors:
    """Hands out the places of round-robin combos.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        alone: tells whether the worker goes on by itself, each combo at a place of its own; without
            it Redis is needed.
    """

    def __init__(
        self, client: RedisClient, scripts: Scripts, keys: Keys, alone: Alone | None = None
    ) -> None:
        self._client = client
        self._script = scripts["session/advance_cursor"]
        self._keys = keys
        self._alone = alone
        self._own: Counter[ComboId] = Counter()

    async def next(self, combo: ComboId, epoch: str) -> int:
        """Take the next place of a combo, from 1 upwards; with Redis no two calls get the same.

        Args:
            combo: whose.
            epoch: differs where places must be counted anew.

        Raises:
            StoreLostError: Redis is away and nothing is let in without it; a place may be skipped.
        """
        key, alone = self._keys.cursor(combo, epoch), self._alone
        if alone is not None and alone.doubts and alone.has_to_serve(key):
            return self._own_place(combo, alone.mode)
        try:
            reply = await self._client.run(self._script, [key], [CURSOR_TTL_MS])
        except StoreLostError as fault:
            if alone is None:
                raise
            alone.note(key, fault)
            return self._own_place(combo, alone.mode)
        return int(reply[2])

    async def look(self, combo: ComboId, epoch: str) -> int:
        """Tell the place that `next` would take now; takes nothing.

        Raises:
            StoreLostError: Redis is away.
        """
        taken = await self._client.call("GET", self._keys.cursor(combo, epoch))
        return int(taken or 0) + 1

    def _own_place(self, combo: ComboId, mode: Mode) -> int:
        if mode is Mode.CLOSED:
            raise AwayError("redis is away")
        self._own[combo] += 1
        return self._own[combo]
