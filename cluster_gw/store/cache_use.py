"""What was found and what was not, booked in the background once a second."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cluster_gw.store.cache_index import CacheIndex
from cluster_gw.store.keys import Keys
from cluster_gw.units import MS_PER_S

BOOK_S: Final = 1.0
AT_ONCE: Final = 256
MOST_TOKENS: Final = 10**9  # of one answer: whatever an upstream said


class Uses:
    """Collects uses.

    Args:
        index: where they are booked.
        keys: builds key names.
        monotonic_s: clock.
        spawn: runs something in the background.
    """

    def __init__(
        self,
        index: CacheIndex,
        keys: Keys,
        monotonic_s: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._index = index
        self._keys = keys
        self._monotonic_s = monotonic_s
        self._spawn = spawn
        self._used: dict[str, float] = {}
        self._sums = [0, 0, 0, 0]
        self._timer: asyncio.TimerHandle | None = None

    def hit(self, digest: str, prompt_tokens: int, completion_tokens: int) -> None:
        """An entry was used."""
        self._used[digest] = self._monotonic_s()
        self._sums[0] += 1
        self._sums[2] += min(max(prompt_tokens, 0), MOST_TOKENS)
        self._sums[3] += min(max(completion_tokens, 0), MOST_TOKENS)
        self._book_soon()
        if len(self._used) >= AT_ONCE:
            self.flush()

    def miss(self) -> None:
        """There was none."""
        self._sums[1] += 1
        self._book_soon()

    def flush(self) -> None:
        """Book now; what is lost on the way is missing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not any(self._sums):
            return
        now_s = self._monotonic_s()
        used = [
            (self._keys.cached_member(digest), max(0, round((now_s - at_s) * MS_PER_S)))
            for digest, at_s in self._used.items()
        ]
        hits, misses, prompt, completion = self._sums
        self._used, self._sums = {}, [0, 0, 0, 0]
        self._spawn(self._index.touch(used, (hits, misses, prompt, completion)))

    def _book_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BOOK_S, self.flush)
