"""What operators say of targets, keys and models: that it is forgotten, or that a key rests."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final

from cluster_gw.store.caller import ScriptCaller
from cluster_gw.store.lane import Reply
from cluster_gw.store.model_health import ModelName
from cluster_gw.store.rests import KeyRecords, chunks
from cluster_gw.store.unreadable import readable

TARGET: Final = "target"
MODEL: Final = "model"
PROVIDER: Final = "provider"


class Clearing(ScriptCaller):
    """Typed wrapper over `lua/health/{clear,bench}`.

    Every method raises `StoreLostError` while Redis is away; part of it may be done then.
    """

    async def clear_keys(self, keys: Iterable[KeyRecords]) -> int:
        """Forget rests, ladders and breakers; how many records said something."""
        return sum([await self._clear(TARGET, key.records) for key in keys])

    async def clear_models(self, models: Iterable[ModelName]) -> int:
        """Forget penalties and benches; how many records said something."""
        count = 0
        for _, of_provider in groupby(sorted(set(models)), itemgetter(0)):
            count += await self._clear(MODEL, [self._keys.model(*one) for one in of_provider])
        return count

    async def clear_providers(self, providers: Iterable[str]) -> int:
        """Forget breakers of whole providers; how many records said something."""
        names = sorted(set(providers))
        return sum([await self._clear(PROVIDER, [self._keys.outage(one)]) for one in names])

    async def bench_key(self, key: KeyRecords, wait_ms: int) -> int:
        """Have a key rest on all its models; until when it does, ms since the epoch.

        Args:
            key: which.
            wait_ms: how long, up to 24 h.
        """
        reply = await self._call("health/bench", [key.records[-1]], wait_ms)
        return int(reply[2])

    async def _clear(self, kind: str, records: Sequence[str]) -> int:
        count = 0
        for some in chunks(records):
            _, reply = await readable(some, partial(self._run, kind))
            count += reply[2] if reply else 0
        return count

    async def _run(self, kind: str, records: Sequence[str]) -> list[Reply]:
        return await self._call("health/clear", records, kind)
