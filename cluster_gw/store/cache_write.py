"""Stores an answer: counted first, then written, then made sure that it is still counted."""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.cache_codec import INLINE_BYTES, Entry, EntryCodec, stored_bytes
from cluster_gw.store.cache_index import Admitted, Bounds, CacheIndex, Counted
from cluster_gw.store.cache_look import Lead
from cluster_gw.store.cache_place import Place
from cluster_gw.units import MS_PER_S

JITTER: Final = 0.1
UNSURE_MOST: Final = 32
STORED: Final = "stored"
STALE: Final = "not_stored_stale"
TOO_LARGE: Final = "not_stored_too_large"
LOST: Final = "not_stored_lost"
UNWRITABLE: Final = "not_stored_unwritable"


class Writer:
    """Writes entries.

    Args:
        place: where.
        index: that counts them.
        codec: how.
        bounds: how much may be stored, as configured now.
        draw: gives a number from 0 to below 1.
    """

    def __init__(
        self,
        place: Place,
        index: CacheIndex,
        codec: EntryCodec,
        bounds: Callable[[], Bounds],
        draw: Callable[[], float],
    ) -> None:
        self._place, self._index, self._codec = place, index, codec
        self._bounds, self._draw = bounds, draw
        self._unsure: list[str] = []

    async def store(self, lead: Lead, entry: Entry, ttl_s: float) -> str:
        """Write an entry if its lead still is one; one word for what came of it.

        Raises:
            StoreLostError: Redis is away; it may be stored.
            EntryUnwritableError: it holds what cannot be written.
        """
        bounds, name = self._bounds(), self._place.keys.cached(lead.digest)
        if len(entry.payload) > bounds.max_entry_bytes:
            return TOO_LARGE
        if len(entry.payload) > INLINE_BYTES:
            body = await asyncio.to_thread(self._codec.apart().encode, name, entry)
        else:
            body = self._codec.encode(name, entry)
        jitter = 1 - JITTER + 2 * JITTER * self._draw()
        ttl_ms = max(1, round(ttl_s * jitter * MS_PER_S))
        counted = Counted(
            member=self._place.keys.cached_member(lead.digest),
            size_bytes=stored_bytes(len(body)),
            ttl_ms=ttl_ms,
            client=entry.client,
            model=f"{entry.provider}/{entry.model}",
            begun_ms=lead.token,
        )
        admitted = await self._index.admit(counted, bounds)
        if admitted is not Admitted.OK:
            return f"not_stored_{admitted}"
        try:
            status, *_ = await self._place.run(
                "cache/publish",
                [self._place.keys.cache_lead(lead.digest), name],
                *(self._place.owner, lead.token, self._codec.format, ttl_ms, body),
            )
        except StoreLostError:  # it may still be written
            self._unsure.append(counted.member)
            raise
        if not status:
            return STALE
        await self._index.written(counted.member)
        await self._make_sure()
        return STORED

    async def _make_sure(self) -> None:
        """See to what may have been written after all, and after it had left the index."""
        unsure, self._unsure = self._unsure[:UNSURE_MOST], []
        for member in unsure:
            try:
                await self._index.written(member)
            except StoreLostError:
                self._unsure.append(member)
