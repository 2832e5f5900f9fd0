"""Whether Redis is away, for each part of it, and when a worker may trust it again.

A part is a key: of one server any key stands for all, of a cluster the key whose slot is meant. A
loss shorter than `GRACE_S` is waited out. After it the part counts as away, nobody waits for it any
more, and only a probe asks (decision 0033). Once it answers again, what was done meanwhile is
handed over, and for a moment longer the worker is cautious: others may still have to hand over what
they spent, also after a loss that this worker itself waited out (decision 0040).
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, Protocol

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import SLOW_S, MissedError
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Scripts

GRACE_S: Final = 0.25  # a lost connection is made anew in 0.02 s, a server restarted in 0.1 s
BLIP_S: Final = 0.1  # a loss as short as this is over for all others before their grace is
STEADY_S: Final = 10.0  # a server that is slow more often than this is slow, not lost
PROBE_S: Final = 0.05
HAND_OVER_S: Final = 1.0  # the others find Redis within 0.25 s and its pauses, and write at once
EVERYWHERE: Final = ""  # of a cluster: some node was lost, and with it parts that nobody asked for
PROBE_ARGS: Final = 3
NOBODY: Final = "-"


class Doubt:
    """One part of Redis that did not answer.

    Attributes:
        since_s: when it answered last, as far as is known.
        is_away: the grace is over.
        is_back: it answered again.
        trusted_at_s: when it is trusted again, once it is back.
        is_told: what was heard before is in the ledger.
    """

    __slots__ = ("is_away", "is_back", "is_told", "since_s", "trusted_at_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.is_away = False
        self.is_back = False
        self.trusted_at_s = 0.0
        self.is_told = False


class Listener(Protocol):
    """Who is told."""

    def gone(self, part: str) -> None:
        """A part is away, the grace is over."""
        ...

    async def returned(self, part: str) -> None:
        """It answers again: hand over what was done.

        Raises:
            StoreLostError: it was lost again.
        """
        ...

    def trusted(self, part: str) -> None:
        """It is used again as before."""
        ...


class Absence:
    """Watches the parts that did not answer; costs nothing while all do.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        whole: a key that stands for all of one server.
        monotonic_s: clock.
        listener: who is told of changes.
        hand_over_s: how long a part that is back is not trusted yet.

    Attributes:
        doubts: by part; empty in good times.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        *,
        whole: str,
        monotonic_s: Callable[[], float],
        listener: Listener,
        hand_over_s: float = HAND_OVER_S,
    ) -> None:
        self.doubts: dict[str, Doubt] = {}
        self._client = client
        self._probe = scripts["admission/reap"]
        self._whole = whole
        self._monotonic_s = monotonic_s
        self._listener = listener
        self._hand_over_s = hand_over_s
        self._watching: asyncio.Task[None] | None = None
        self._handing: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        client.know(self._probe)
        self._down_at_s: float | None = None
        self._connected = asyncio.Event()
        self._slow_at_s = float("-inf")
        client.on_change(self._node_changed if client.is_sharded else self._changed)
        client.on_slow(self._slow)

    def part_of(self, key: str) -> str:
        """The part that has a key."""
        return key if self._client.is_sharded else self._whole

    def is_away(self, part: str) -> bool:
        """Whether a part is known to be away."""
        doubt = self.doubts.get(part)
        if doubt is None or doubt.is_back:
            return False
        if not doubt.is_away and self._lasted_s(doubt) >= GRACE_S:
            doubt.is_away = True
            self._listener.gone(part)
        return doubt.is_away

    def caution(self, part: str) -> Doubt | None:
        """Why a part must be asked with caution once it answers; None when it need not."""
        doubt = self.doubts.get(part) or self.doubts.get(EVERYWHERE)
        if doubt is None or not self._hand_over_s:
            return None
        return doubt if doubt.is_back or self._lasted_s(doubt) >= BLIP_S else None

    def caution_left_s(self, doubt: Doubt) -> float:
        """How much longer a part is not trusted, as far as can be told; never nothing at all."""
        until_s = doubt.trusted_at_s if doubt.is_back else self._monotonic_s() + self._hand_over_s
        return max(PROBE_S, until_s - self._monotonic_s())

    def lost_at_s(self, part: str) -> float:
        """When a part that is away answered last."""
        return self.doubts[part].since_s

    def note(self, part: str, fault: StoreLostError) -> None:
        """A call to a part was lost."""
        self._doubt(part, self._client.deadline_s if isinstance(fault, MissedError) else 0.0)

    def note_answer(self, part: str) -> None:
        """A call to a part was answered."""
        doubt = self.doubts.get(part)
        if doubt is not None and not doubt.is_away:
            self._back_in_time(part, doubt)

    async def close(self) -> None:
        """Stop watching."""
        self._closed = True
        tasks = [*self._handing.values(), *([self._watching] if self._watching else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _doubt(self, part: str, ago_s: float) -> None:
        doubt = self.doubts.get(part)
        if doubt is not None:
            if doubt.is_back and not doubt.is_away:
                doubt.since_s = self._monotonic_s() - ago_s  # another loss, with a grace of its own
            doubt.is_back = False
        elif not self._closed:
            self.doubts[part] = Doubt(self._monotonic_s() - ago_s)
        if not self._closed and (self._watching is None or self._watching.done()):
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while self.doubts:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROBE_S):
                    await self._connected.wait()
            self._connected.clear()
            silent = [part for part, doubt in self.doubts.items() if not doubt.is_back]
            await asyncio.gather(*(self._ask(part) for part in silent))
            for part in list(self.doubts):
                self.is_away(part)  # also where nobody asks

    def _changed(self, is_up: bool) -> None:  # noqa: FBT001 - as the client tells it
        if is_up:
            self._connected.set()
        else:
            self._doubt(self._whole, 0.0)

    def _node_changed(self, is_up: bool) -> None:  # noqa: FBT001 - as the client tells it
        """Beware of parts that only others found to be lost: this worker did not ask for them."""
        now_s = self._monotonic_s()
        since_s, self._down_at_s = self._down_at_s, None if is_up else now_s
        if is_up and since_s is not None and now_s - since_s >= BLIP_S and self._may_beware:
            doubt = self.doubts[EVERYWHERE] = Doubt(since_s)
            self._come_back(EVERYWHERE, doubt)

    async def probe(self, part: str) -> None:
        """Run a script that may write and does nothing: what it is to do is long over.

        Raises:
            StoreLostError: the part is away, or does not take writes.
        """
        template = template_of(self._probe, [part], PROBE_ARGS)
        await self._client.run_packed(template, template.head + bulk(1, NOBODY, 0))

    async def _ask(self, part: str) -> None:
        if not (self._client.is_sharded or self._client.is_up):
            return  # it is being connected; only after that is there anything to ask
        try:
            await self.probe(part)
        except (StoreLostError, ScriptContractError):
            return
        doubt = self.doubts.get(part)
        if doubt is None or doubt.is_back:
            return
        if self.is_away(part):
            self._come_back(part, doubt)
        else:
            self._back_in_time(part, doubt)

    def _back_in_time(self, part: str, doubt: Doubt) -> None:
        """A part answers within its grace; others may have waited longer, unless it was a blip."""
        if doubt.is_back:
            return
        is_blip = self._lasted_s(doubt) < BLIP_S and not doubt.trusted_at_s
        if self._hand_over_s and not is_blip:
            self._come_back(part, doubt)
        else:
            del self.doubts[part]

    def _come_back(self, part: str, doubt: Doubt) -> None:
        doubt.is_back = True
        doubt.trusted_at_s = self._monotonic_s() + self._hand_over_s
        before = self._handing.get(part)
        if before is not None:
            before.cancel()  # it waits for a return that was none; what it handed over is kept
        self._handing[part] = asyncio.get_running_loop().create_task(self._hand(part, doubt))

    async def _hand(self, part: str, doubt: Doubt) -> None:
        """Hand over what was done, then give the others time for theirs."""
        try:
            await self._listener.returned(part)
        except StoreLostError:
            doubt.is_back = False
            return
        doubt.trusted_at_s = self._monotonic_s() + self._hand_over_s
        await asyncio.sleep(self._hand_over_s)
        if doubt.is_back:
            del self.doubts[part]
            self._listener.trusted(part)

    def _slow(self) -> None:
        """Beware: the server may be frozen, and others may have begun to do without it."""
        now_s = self._monotonic_s()
        was_at_s, self._slow_at_s = self._slow_at_s, now_s
        part = EVERYWHERE if self._client.is_sharded else self._whole
        if now_s - was_at_s > STEADY_S and self._may_beware and part not in self.doubts:
            doubt = self.doubts[part] = Doubt(now_s - SLOW_S)
            self._come_back(part, doubt)

    @property
    def _may_beware(self) -> bool:
        return bool(self._hand_over_s) and not self._closed

    def _lasted_s(self, doubt: Doubt) -> float:
        return self._monotonic_s() - doubt.since_s
