"""What a worker has to tell of usage beside its settlements, in the background, each second.

Which keys it used, so that their counts are found when no configuration has them any more; and what
the response cache saved. Savings go in numbered batches, one after the other: one whose outcome is
unknown is told again as it was, and counts once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Final

from cluster_gw.core.usage import OTHER, number_of
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.plan import Plans
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import MS_PER_S

AT_ONCE: Final = 250
AGAIN_S: Final = 0.1
LOOK_EACH: Final = 30
"""Of so many times that it tells, it looks once whether the day of a key is full."""
REST: Final = f"{OTHER} {OTHER}"


class UsageBook:
    """Tells what settlements do not tell.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        plans: of the worker's settlements; what they are of is noted.
        worker_id: names this worker.
        clock_ms: wall clock, ms since the epoch: which day it is, where nobody knows better.

    Attributes:
        full: what the use of a key is counted under, where today's is full: new clients and models
            are not told apart any more.
        is_saved_full: whether the same is so of what the response cache saved today.
        dropped: batches of savings that Redis called wrong, or could not be told before the end.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        plans: Plans,
        *,
        worker_id: str,
        clock_ms: Callable[[], int],
    ) -> None:
        self.full: frozenset[str] = frozenset()
        self.is_saved_full = False
        self.dropped = 0
        self._client = client
        self._scripts = scripts
        self._keys = keys
        self._plans = plans
        self._told_key = keys.usage_told(worker_id)
        self._clock_ms = clock_ms
        self._server_ms: Callable[[], float | None] = lambda: None
        self._noted: set[str] = set()
        self._looks = 0
        self._number = 0
        self._saved: dict[tuple[int, str], list[int]] = {}
        self._batches: deque[tuple[int, int, list[str | int]]] = deque()
        self._is_telling = asyncio.Lock()
        self.turn()

    def follow(self, server_ms: Callable[[], float | None]) -> None:
        """Go by the server's clock where it was heard: those of workers may differ."""
        self._server_ms = server_ms

    def turn(self) -> None:
        """Have settlements count in the present day from now on."""
        day = number_of(self._today())
        if day != self._plans.usage_day:
            self._plans.turn_to(day)
            self._noted.clear()

    def save(self, client: str, model: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        """Note an answer that was given without a call.

        Args:
            client: who got it.
            model: `provider/model`, which gave it first.
            prompt_tokens: that were not used, like the next.
            completion_tokens: of the answer.
        """
        whose = f"{client} {encode_part(model)}"
        row = self._saved.setdefault((number_of(self._today()), whose), [0, 0, 0])
        for at, more in enumerate((1, prompt_tokens, completion_tokens)):
            row[at] += max(0, more)

    async def drain(self, within_s: float) -> tuple[int, int]:
        """Tell what was saved, again and again while Redis is away; for the end of a worker.

        Args:
            within_s: a try begins no later than this.

        Returns:
            Answers that were given, and tokens that were saved, of which Redis is not known to have
            heard; it is not told any more. Nearly always 0 and 0.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        async with self._is_telling:
            self._close_batches()
            while self._batches:
                try:
                    await self._tell()
                except StoreLostError:
                    if loop.time() + AGAIN_S > end_s:
                        return self._give_up()
                    await asyncio.sleep(AGAIN_S)
            return 0, 0

    async def flush(self) -> None:
        """Tell Redis; what it cannot be told is kept."""
        self.turn()
        async with self._is_telling:
            self._close_batches()
            try:
                await self._note()
                await self._tell()
                if self._looks % LOOK_EACH == 0:
                    await self._look()
                self._looks += 1
            except StoreLostError:
                return

    def _today(self) -> date:
        now_ms = self._server_ms() or self._clock_ms()
        return datetime.fromtimestamp(now_ms / MS_PER_S, UTC).date()

    async def _note(self) -> None:
        fresh = self._plans.used - self._noted
        if not fresh:
            return
        words: list[str | int] = [*sorted(fresh), 0]
        await self._client.run(self._scripts["usage/note"], [self._keys.usage_index()], words)
        self._noted |= fresh

    def _close_batches(self) -> None:
        saved, self._saved = self._saved, {}
        by_day: dict[int, list[str | int]] = {}
        for (day, whose), row in saved.items():
            by_day.setdefault(day, []).extend((whose, *row))
        for day, words in by_day.items():
            for at in range(0, len(words), 4 * AT_ONCE):
                self._number += 1
                self._batches.append((self._number, day, words[at : at + 4 * AT_ONCE]))

    def _give_up(self) -> tuple[int, int]:
        rows = [row for _, _, words in self._batches for row in _rows(words)]
        self.dropped += len(self._batches)
        self._batches.clear()
        return sum(row[0] for row in rows), sum(sum(row[1:]) for row in rows)

    async def _tell(self) -> None:
        while self._batches:
            number, day, words = self._batches[0]
            keys = [self._told_key, self._keys.usage_saved(day)]
            try:
                await self._client.run(self._scripts["usage/save"], keys, [number, *words])
            except ScriptContractError:
                self.dropped += 1
            self._batches.popleft()

    async def _look(self) -> None:
        places, day = sorted(self._noted), self._plans.usage_day
        names = [*(self._keys.usage(place, day) for place in places), self._keys.usage_saved(day)]
        found = await asyncio.gather(*(self._client.call("HGET", name, REST) for name in names))
        *rests, saved = (rest is not None for rest in found)
        self.full = frozenset(
            place for place, is_full in zip(places, rests, strict=True) if is_full
        )
        self.is_saved_full = saved


def _rows(words: list[str | int]) -> Iterator[list[int]]:
    """Give answers, prompt tokens and completion tokens of each client and model of a batch."""
    for at in range(0, len(words), 4):
        yield [int(word) for word in words[at + 1 : at + 4]]
