"""Reads what was used, day by day and key by key, for who asks."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from itertools import product
from typing import Final
from urllib.parse import unquote

from cluster_gw.core.usage import Counts, Place, number_of
from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys

AT_ONCE: Final = 16
USED: Final = 7  # numbers of a client and a model
SAVED: Final = 3  # of those that the response cache answered
FAMILY: Final = 3  # words of the name of a count of errors
MOST_DIGITS: Final = 16
Tell = Callable[[Place, Counts], None]


class UsageRecords:
    """Reads the records of usage of the cluster.

    Args:
        client: of this process.
        keys: builds key names.
    """

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._is_reading = asyncio.Lock()

    async def read(
        self, days: Sequence[date], known: Iterable[tuple[str, str, str]], tell: Tell
    ) -> list[str]:
        """Tell all that was used on some days.

        One question after the other, in pieces: a long one takes many short turns of the loop.

        Args:
            days: in UTC.
            known: provider, account and key of those that are configured; others are found by the
                index.
            tell: called for each client and model on a key and a day, and for what was saved.

        Returns:
            Names of records of which something cannot be read; the rest of them is told.

        Raises:
            StoreLostError: Redis is away.
        """
        async with self._is_reading:
            places = await self._places(known)
            wanted: list[tuple[str, tuple[tuple[str, str] | None, date]]] = [
                (self._keys.usage(place, number_of(day)), (self._keys.used_key(place), day))
                for place, day in product(places, days)
            ]
            wanted += [(self._keys.usage_saved(number_of(day)), (None, day)) for day in days]
            unreadable: list[str] = []
            for at in range(0, len(wanted), AT_ONCE):
                some = wanted[at : at + AT_ONCE]
                texts = await asyncio.gather(*(self._fields(name) for name, _ in some))
                for (name, (key, day)), fields in zip(some, texts, strict=True):
                    if fields is None or not _tell_all(fields, key, day, tell):
                        self._client.unreadable.tell(name)
                        unreadable.append(name)
            return unreadable

    async def _places(self, known: Iterable[tuple[str, str, str]]) -> list[str]:
        index = await self._client.call("ZRANGE", self._keys.usage_index(), 0, -1)
        noted = {bytes(place).decode(errors="replace") for place in index}
        configured = {
            self._keys.usage_of_key(self._keys.slot(provider, account), key)
            for provider, account, key in known
        }
        return sorted(configured | {place for place in noted if self._keys.is_used_key(place)})

    async def _fields(self, name: str) -> dict[str, str] | None:
        """All fields of a hash; None for something else that stands there."""
        try:
            words = await self._client.call("HGETALL", name)
        except RecordUnreadableError:
            return None
        texts = [bytes(word).decode(errors="replace") for word in words]
        return dict(zip(texts[::2], texts[1::2], strict=True))


def _tell_all(fields: dict[str, str], key: tuple[str, str] | None, day: date, tell: Tell) -> bool:
    """Tell what the fields of a record say; whether all of them could be read.

    Args:
        fields: of the record.
        key: provider and key; None where it is what was saved.
        day: of it.
        tell: told.
    """
    is_good = True
    for name, text in fields.items():
        words = name.split(" ")
        counts = _saved(text) if key is None else _used(words, text)
        if counts is None or not FAMILY - 1 <= len(words) <= FAMILY:
            is_good = False
            continue
        client, model = unquote(words[0]), unquote(words[1])
        if key is None:
            tell(Place(day, client, model, None), counts)
        else:
            tell(Place(day, client, f"{key[0]}/{model}", key[1]), counts)
    return is_good


def _used(words: Sequence[str], text: str) -> Counts | None:
    if len(words) == FAMILY:
        count = _numbers(text, 1)
        return None if count is None else Counts(errors={words[-1]: count[0]})
    numbers = _numbers(text, USED)
    if numbers is None:
        return None
    requests, prompt, completion, cached, reasoning, nano_usd, unpriced = numbers
    return Counts(
        requests=requests,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        nano_usd=nano_usd,
        unpriced_requests=unpriced,
    )


def _saved(text: str) -> Counts | None:
    numbers = _numbers(text, SAVED)
    if numbers is None:
        return None
    hits, prompt, completion = numbers
    return Counts(cache_hits=hits, saved_prompt_tokens=prompt, saved_completion_tokens=completion)


def _numbers(text: str, count: int) -> list[int] | None:
    """So many whole numbers, None for anything else."""
    words = text.split(" ")
    is_good = len(words) == count and all(
        word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS for word in words
    )
    return [int(word) for word in words] if is_good else None
