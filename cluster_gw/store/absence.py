"""Whether Redis is away, for each part of it, and when a worker may trust it again.

A part is a key: of one server any key stands for all, of a cluster the key whose slot is meant. A
loss shorter than `GRACE_S` is waited out. After it the part counts as away, nobody waits for it any
more, and only a probe asks. Once one is answered, what was done meanwhile is handed over; for a
moment longer the worker goes on by itself, so that the others can hand over as well before what
they spent is spent again (decision 0033).
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import MissedError
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Scripts

GRACE_S: Final = 0.25  # a lost connection is made anew in 0.02 s, a server restarted in 0.1 s
PROBE_S: Final = 0.05
HAND_OVER_S: Final = 1.0  # the others find Redis within 0.25 s and its pauses, and write at once
PROBE_ARGS: Final = 3
NOBODY: Final = "-"


class Doubt:
    """One part of Redis that did not answer.

    Attributes:
        since_s: when it answered last, as far as is known.
        is_away: the grace is over.
        is_back: a probe was answered since.
    """

    __slots__ = ("is_away", "is_back", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.is_away = False
        self.is_back = False


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
        if not client.is_sharded:
            client.on_change(lambda is_up: None if is_up else self._doubt(whole, 0.0))

    def part_of(self, key: str) -> str:
        """The part that has a key."""
        return key if self._client.is_sharded else self._whole

    def is_away(self, part: str) -> bool:
        """Whether a part is known to be away, or not trusted yet."""
        doubt = self.doubts.get(part)
        if doubt is None:
            return False
        if not doubt.is_away and self._monotonic_s() - doubt.since_s >= GRACE_S:
            doubt.is_away = True
            self._listener.gone(part)
        return doubt.is_away

    def lost_at_s(self, part: str) -> float:
        """When a part that is away answered last."""
        return self.doubts[part].since_s

    def note(self, part: str, fault: StoreLostError) -> None:
        """A call to a part was lost."""
        self._doubt(part, self._client.deadline_s if isinstance(fault, MissedError) else 0.0)

    def note_answer(self, part: str) -> None:
        """A call to a part was answered within the grace: all is well."""
        doubt = self.doubts.get(part)
        if doubt is not None and not doubt.is_away:
            del self.doubts[part]

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
            doubt.is_back = False
        elif not self._closed:
            self.doubts[part] = Doubt(self._monotonic_s() - ago_s)
            if self._watching is None or self._watching.done():
                self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while self.doubts:
            await asyncio.sleep(PROBE_S)
            silent = [part for part, doubt in self.doubts.items() if not doubt.is_back]
            await asyncio.gather(*(self._ask(part) for part in silent))
            for part in list(self.doubts):
                self.is_away(part)  # also where nobody asks

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
        doubt, handing = self.doubts.get(part), self._handing.get(part)
        if doubt is None or (handing is not None and not handing.done()):
            return
        if self.is_away(part):
            doubt.is_back = True
            self._handing[part] = asyncio.get_running_loop().create_task(self._hand(part, doubt))
        else:
            del self.doubts[part]

    async def _hand(self, part: str, doubt: Doubt) -> None:
        """Hand over what was done so far, and a moment later what was done since."""
        try:
            await self._listener.returned(part)
            await asyncio.sleep(self._hand_over_s)
            await self._listener.returned(part)
        except StoreLostError:
            doubt.is_back = False
        if doubt.is_back:
            del self.doubts[part]
            self._listener.trusted(part)
