"""Steady admissions and settlements while Redis servers fail, and a book of what was granted.

The book counts what callers were told, so it is independent of anything in Redis.
"""

import asyncio
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final, Self

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.errors import StoreLostError
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import DEADLINE_S, RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId, LeaseId
from tests.fakes.redis_nodes import RedisNode
from tests.lua.window_fields import numbers

ACCOUNTS: Final = 6
CALLERS_PER_TARGET: Final = 3
DEMAND: Final = Demand(input_tokens=40, output_tokens=60)
RPM: Final = 40
FREE: Final = "free"
TIGHT: Final = "tight"
LATE_LOOP_S: Final = 0.4
MINUTE_S: Final = 60.0
KEYS: Final = Keys("gw1")


def window(account: int, model: str) -> str:
    """The key of a target's counters."""
    slot = KEYS.slot("p", f"acc{account}")
    return KEYS.model_window(slot, "k", model)


def target(account: int, model: str) -> TargetLimits:
    """One of two models of an account: without a limit, or with a narrow one."""
    return TargetLimits(
        provider="p",
        account=f"acc{account}",
        key=KeyId("k"),
        model=model,
        day_reset="rolling",
        model_limits=Limits() if model == FREE else Limits(rpm=RPM),
        key_limits=Limits(),
    )


class FailoverLoad:
    """Runs until it is left; `async with` starts and ends it and settles everything.

    Args:
        url: for the client.
        master_of: the server that has a key now.

    Attributes:
        granted: leases by window.
        tokens: what was settled, by window.
        longest_call_s: the slowest admission, whatever its outcome.
        lost: admissions whose outcome was unknown or that Redis did not take.
        unsettled: settlements that were not applied in the end.
    """

    def __init__(self, url: str, master_of: Callable[[str], RedisNode]) -> None:
        self.granted: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.longest_call_s = 0.0
        self.lost = 0
        self.unsettled = 0
        self.client = RedisClient(url, prefix="gw1")
        self._master_of = master_of
        self._admissions = Admissions(
            self.client,
            load_scripts(),
            KEYS,
            worker_id="w1",
            clock_ms=lambda: time.time_ns() // 1_000_000,
            monotonic_s=time.monotonic,
        )
        self._served_at_s: dict[str, list[float]] = {}
        self._random = random.Random(7)
        self._ending = asyncio.Event()
        self._number = 0

    async def __aenter__(self) -> Self:
        await self.client.start(5.0)
        self._tasks = [
            asyncio.create_task(self._call(target(account, model), window(account, model)))
            for account in range(ACCOUNTS)
            for model in (FREE, TIGHT)
            for _ in range(CALLERS_PER_TARGET)
        ]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._ending.set()
        await asyncio.gather(*self._tasks)
        self.unsettled = await self._admissions.drain(5.0)
        await self._admissions.close()
        await self.client.close()

    @property
    def longest_gap_s(self) -> float:
        """The longest time in which a target without a limit was not served."""
        gaps = [
            after - before
            for name, times in self._served_at_s.items()
            if name.endswith(FREE)
            for before, after in pairwise(times)
        ]
        return max(gaps)

    def most_in_a_minute(self, name: str) -> int:
        """The most that a window granted in any 60 s."""
        times = self._served_at_s[name]
        return max(bisect_left(times, at_s + MINUTE_S) - n for n, at_s in enumerate(times))

    async def served_often(self, count: int, within_s: float) -> None:
        """Wait until every narrow window has granted so many."""
        async with asyncio.timeout(within_s):
            while min(self._tight().values(), default=0) < count:  # noqa: ASYNC110 - callers have no common event
                await asyncio.sleep(0.005)

    def _tight(self) -> dict[str, int]:
        return {
            window(account, TIGHT): self.granted[window(account, TIGHT)]
            for account in range(ACCOUNTS)
        }

    async def silent(self, for_s: float, within_s: float) -> float:
        """Wait until nothing was granted for so long; give the last time it was (monotonic)."""
        async with asyncio.timeout(within_s):
            while time.monotonic() - (last_s := self._last_s()) < for_s:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        return last_s

    def _last_s(self) -> float:
        return max(times[-1] for times in self._served_at_s.values())

    async def served_anew(self, within_s: float) -> None:
        """Wait until every unlimited target has been served after now."""
        now_s = time.monotonic()
        async with asyncio.timeout(within_s):
            while not all(  # noqa: ASYNC110 - the callers have no common event
                times[-1] > now_s
                for name, times in self._served_at_s.items()
                if name.endswith(FREE)
            ):
                await asyncio.sleep(0.01)

    async def up_again(self, within_s: float) -> None:
        """Wait until every server that is needed is connected."""
        async with asyncio.timeout(within_s):
            while not self.client.is_up:  # noqa: ASYNC110 - on_change cannot be unsubscribed
                await asyncio.sleep(0.01)

    def check(self, *, forgets: bool = False) -> None:
        """What holds after every failover; `forgets` when the last writes may not be there."""
        assert self.longest_gap_s <= 6.0
        assert self.longest_call_s <= DEADLINE_S + LATE_LOOP_S
        assert self.unsettled == 0
        for name, told in self.granted.items():
            if name.endswith(TIGHT):
                most = self.most_in_a_minute(name)
                assert most <= RPM, f"{name}: {most}"
            if forgets:
                assert self.counted(name) <= told, name
            else:
                counts = self._numbers(name)
                assert (counts["hrs"], counts["hts"]) == (told, self.tokens[name]), name

    def counted(self, name: str) -> int:
        """Requests of the day, as the master of a window has them."""
        return self._numbers(name)["hrs"]

    def _numbers(self, name: str) -> dict[str, int]:
        flat = self._master_of(name).call("HGETALL", name)
        return numbers(dict(zip(flat[::2], flat[1::2], strict=True)))

    async def _call(self, wanted: TargetLimits, name: str) -> None:
        while not self._ending.is_set():
            self._number += 1
            lease_id = LeaseId(f"lease-{self._number}")
            began_s = time.monotonic()
            try:
                answer = await self._admissions.reserve(wanted, lease_id, DEMAND, ttl_ms=60_000)
            except StoreLostError:
                self.lost += 1
                answer = None
            self.longest_call_s = max(self.longest_call_s, time.monotonic() - began_s)
            if isinstance(answer, Lease):
                await self._use(answer, name)
            await asyncio.sleep(0.01 + self._random.random() / 50)

    async def _use(self, lease: Lease, name: str) -> None:
        tokens = self._random.randint(1, 300)
        self.granted[name] += 1
        self.tokens[name] += tokens
        self._served_at_s.setdefault(name, []).append(time.monotonic())
        await asyncio.sleep(self._random.random() / 50)
        self._admissions.settle(
            lease, Settlement(counts_request=True, tokens=tokens, outcome="success")
        )
