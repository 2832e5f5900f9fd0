"""The record of how fast routes were: written by the one worker that has the role, read by all."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

import msgspec

from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.caller import OwnedCaller
from cluster_gw.store.keys import encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.leadership import Term
from cluster_gw.store.snapshots import ROLE
from cluster_gw.units import RouteId

WRITTEN_AT: Final = "_written_at"
AT_ONCE: Final = 250  # routes in one call, 0.2 ms
FORGET: Final = 0
WORST: Final = 10


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What stands there.

    Attributes:
        ranks: by route, 1 (fastest) to 10.
        at_ms: when some of it was last written, ms since the epoch; 0 for never.
    """

    ranks: Mapping[RouteId, int] = {}
    at_ms: int = 0


class SpeedRankRecord(OwnedCaller):
    """Reads and writes it.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker, as in its terms.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Every method raises `StoreLostError` while Redis is away.
    """

    async def read(self) -> Written:
        """Give all of it; what is no rank there, or no hash at all, is as if it were not there."""
        try:
            return read_ranks(await self._client.call("HGETALL", self._keys.speed_ranks()))
        except RecordUnreadableError:
            return Written()  # told by the client; nothing that routes needs it

    async def write(self, changes: Mapping[RouteId, int | None], term: Term) -> bool:
        """Write ranks, or forget them.

        Args:
            changes: by route; None forgets.
            term: of the role `snap`.

        Returns:
            Whether all was written; not when the term is over.
        """
        pairs = list(changes.items())
        for first in range(0, len(pairs), AT_ONCE):
            words: list[str | int] = []
            for route, rank in pairs[first : first + AT_ONCE]:
                words += (encode_part(route), FORGET if rank is None else rank)
            status, *_ = await self._call(
                "snapshot/rank",
                [self._keys.lead(ROLE), self._keys.speed_ranks()],
                self._owner,
                term.fence,
                *words,
            )
            if not status:
                return False
        return True


def read_ranks(flat: Reply) -> Written:
    """Read the hash as Redis gives it, names and values in turn."""
    texts = [bytes(text).decode(errors="replace") for text in flat]
    fields = dict(zip(texts[::2], texts[1::2], strict=True))
    at = fields.pop(WRITTEN_AT, "0")
    return Written(
        ranks={
            RouteId(unquote(name)): int(text)
            for name, text in fields.items()
            if text.isdecimal() and 1 <= int(text) <= WORST
        },
        at_ms=int(at) if at.isdecimal() else 0,
    )
