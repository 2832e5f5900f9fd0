"""Requests without a valid credential, counted by network over all workers.

The script is `lua/client/count_stranger`. Memory is bounded: so many networks are counted apart,
all others together.
"""

from typing import Final

import msgspec

from cluster_gw.errors import StoreLostError
from cluster_gw.store.alone import Alone, AwayError
from cluster_gw.store.caller import ScriptCaller

APART: Final = 10_000  # at most 1 MB, and half of that as one worker remembers it


class Counted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many requests there were in this window, and for how long it goes on."""

    count: int
    left_ms: int


class Strangers(ScriptCaller):
    """Counts strangers of all workers in fixed windows of a minute."""

    _alone: Alone | None = None

    def go_on_with(self, alone: Alone) -> None:
        """Ask whether Redis is in doubt before each call; without it every call is waited for."""
        self._alone = alone

    async def count(self, network: str) -> Counted:
        """Count one request from a network.

        Raises:
            AwayError: Redis is in doubt and was not asked.
            StoreLostError: it did not answer; the request may have been counted.
        """
        key = self._keys.strangers()
        if self._alone is not None and self._alone.is_doubted(key):
            raise AwayError("redis is in doubt")
        try:
            reply = await self._call("client/count_stranger", [key], network, APART)
        except StoreLostError as fault:
            if self._alone is not None:
                self._alone.note(key, fault)
            raise
        return Counted(count=int(reply[2]), left_ms=int(reply[3]))
