"""Which answers are stored, so that they never take more than they may (`lua/cache/admit`).

The index is told before an entry is written and names those that must be deleted before that. So
whatever stops in between leaves something that is counted and not there, never the reverse.
"""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.store.caller import ScriptCaller
from cluster_gw.store.keys import encode_part

EVERY: Final = "-"
ROUNDS: Final = 64  # each makes room by 128 entries
FLUSH_AT_ONCE: Final = 200
SHARED_BYTES: Final = 16 * 1_048_576
SHARED_PART: Final = 16  # of all that may be stored: it is not counted there


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be stored.

    Attributes:
        max_entries: above 0.
        max_bytes: of all of them in Redis, above 0.
        max_entry_bytes: of one payload, above 0.
    """

    max_entries: int
    max_bytes: int
    max_entry_bytes: int

    @property
    def shared_bytes(self) -> int:
        """Of an answer that others read as it comes, be it stored or not."""
        return max(self.max_entry_bytes, min(SHARED_BYTES, self.max_bytes // SHARED_PART))


class Admitted(StrEnum):
    """What became of the wish to store an entry."""

    OK = "ok"
    FULL = "full"
    TOO_LARGE = "too_large"
    FLUSHED = "flushed"


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored in the cluster, and what it was good for since the index began.

    Attributes:
        entries: stored now.
        doomed: being deleted.
        stored_bytes: of all entries in Redis, those that have ended but are not yet removed too.
        hits: answers that were found.
        misses: lookups that found none.
        saved_prompt_tokens: not sent, since the answer was there.
        saved_completion_tokens: the same of answers.
        stored: entries that were written.
        evicted: that made room for others.
        expired: that came to their end.
        removed: that operators removed.
    """

    entries: int
    doomed: int
    stored_bytes: int
    hits: int
    misses: int
    saved_prompt_tokens: int
    saved_completion_tokens: int
    stored: int
    evicted: int
    expired: int
    removed: int


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is to be stored.

    Attributes:
        member: its key without the prefix.
        size_bytes: that it takes in Redis.
        ttl_ms: its life.
        client: who asked.
        model: what answered.
        begun_ms: when it was begun, by the server's clock; 0 where a flush since does not matter.
    """

    member: str
    size_bytes: int
    ttl_ms: int
    client: str
    model: str
    begun_ms: int = 0


class CacheIndex(ScriptCaller):
    """Counts entries; every method may raise a StoreLostError."""

    async def admit(self, entry: Counted, bounds: Bounds) -> Admitted:
        """Count an entry and make room for it; only after `OK` may it be written."""
        for _ in range(ROUNDS):
            status, code, *victims = await self._call(
                "cache/admit",
                self._keys.cache_index(),
                *(entry.member, entry.size_bytes, entry.ttl_ms),
                *(_word(entry.client), _word(entry.model), entry.begun_ms),
                *(bounds.max_entries, bounds.max_bytes),
            )
            await self._delete([bytes(victim).decode() for victim in victims])
            if status or code != b"full":
                return Admitted(bytes(code).decode())
        return Admitted.FULL

    async def written(self, member: str) -> None:
        """An entry was written: delete it again if it has left the index meanwhile."""
        used, _, _, doomed = self._keys.cache_index()
        reply = await self._client.run(self._scripts["cache/confirm"], [used, doomed], [member])
        if not reply[2]:
            await self._client.call("DEL", self._keys.of_member(member))

    async def touch(self, used: Sequence[tuple[str, int]], sums: tuple[int, int, int, int]) -> None:
        """Book what was found lately.

        Args:
            used: members and how many ms ago each was used; at most 512.
            sums: hits, misses, and tokens that were saved of prompts and of answers.
        """
        pairs = [word for pair in used for word in pair]
        await self._call("cache/touch", self._keys.cache_index()[:2], *sums, *pairs)

    async def stats(self) -> CacheStats:
        """What is stored."""
        _, records, ends, doomed = self._keys.cache_index()
        _, _, *numbers = await self._call("cache/stats", [records, ends, doomed])
        names = CacheStats.__struct_fields__
        return CacheStats(**dict(zip(names, numbers, strict=True)))

    async def flush(self, *, client: str | None = None, model: str | None = None) -> int:
        """Remove the entries of a client, of a model, of both, or all; in pieces.

        Answers that are being fetched are not stored either, except with client and model, where
        none of the client's is.

        Returns:
            How many there were.
        """
        cursor, removed = "0", 0
        whose = EVERY if client is None else _word(client)
        of = EVERY if model is None else _word(model)
        while True:
            _, _, told, count, *victims = await self._call(
                "cache/flush", self._keys.cache_index(), whose, of, cursor, FLUSH_AT_ONCE
            )
            await self._delete([bytes(victim).decode() for victim in victims])
            removed, cursor = removed + int(count), bytes(told).decode()
            if cursor == "0":
                return removed

    async def _delete(self, victims: Sequence[str]) -> None:
        if not victims:
            return
        futures = [self._client.submit("DEL", self._keys.of_member(one)) for one in victims]
        done = await asyncio.gather(*futures, return_exceptions=True)
        gone = [
            one
            for one, fate in zip(victims, done, strict=True)
            if not isinstance(fate, BaseException)
        ]
        if gone:
            used, _, _, doomed = self._keys.cache_index()
            await self._client.run(self._scripts["cache/confirm"], [used, doomed], [EVERY, *gone])
        for fate in done:
            if isinstance(fate, BaseException):
                raise fate


def _word(text: str) -> str:
    """Text as one word that is never taken for "every one"."""
    return "%2D" if text == EVERY else encode_part(text) or "%"
