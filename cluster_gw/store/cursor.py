"""Round-robin cursors that all workers share (`lua/session/advance_cursor`)."""

from typing import Final

from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import DAY_S, MS_PER_S, ComboId

CURSOR_TTL_MS: Final = DAY_S * MS_PER_S  # an unused cursor may as well start anew


class Cursors:
    """Hands out the places of round-robin combos."""

    def __init__(self, client: RedisClient, scripts: Scripts, keys: Keys) -> None:
        self._client = client
        self._script = scripts["session/advance_cursor"]
        self._keys = keys

    async def next(self, combo: ComboId) -> int:
        """Take the next place of a combo, from 1 upwards; no two calls get the same.

        Raises:
            StoreLostError: Redis is away; a place may be skipped.
        """
        reply = await self._client.run(self._script, [self._keys.cursor(combo)], [CURSOR_TTL_MS])
        return int(reply[2])
