"""A short, bounded wait for capacity (`routing.queue`, off by default): first come, first served.

What is held back because others may still have to tell Redis what they did without it (decision
0040) is waited for in any case: a second at most.

Requests of this worker that wait for the same targets stand in one line. Only its head asks; when
it is admitted or gives up, the next one does. Whoever comes later stands behind them, although the
capacity may just have come free: it belongs to the head.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from cluster_gw.core.limits.windows import NEVER_BY_WAITING
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Refusal
from cluster_gw.units import MS_PER_S

Refused = tuple[Target, Refusal]


class Line:
    """Who waits for one set of targets.

    Attributes:
        turns: in order of arrival; the first one is the head.
        refused: what the head was told when it asked last.
        opens_at_s: loop time at which the first of the targets may be free again.
    """

    __slots__ = ("accounts", "opens_at_s", "refused", "turns")

    def __init__(self, targets: Sequence[Target]) -> None:
        self.accounts = {(t.limits.provider, t.limits.account) for t in targets}
        self.turns: dict[Turn, asyncio.Event] = {}
        self.refused: Sequence[Refused] = ()
        self.opens_at_s = 0.0

    def ring(self) -> None:
        """Wake the head, and nobody else."""
        for bell in self.turns.values():
            bell.set()
            return


class WaitingRoom:
    """The lines of this worker.

    Attributes:
        depth: requests in all lines.
        lines: by the targets waited for, each a route and a key; clients with a share of these have
            lines of their own.
    """

    def __init__(self, clock: Clock) -> None:
        self.depth = 0
        self.lines: dict[frozenset[tuple[str, str]], Line] = {}
        self.clock = clock

    def ring(self, target: Target) -> None:
        """A lease of this target has ended: whoever is first in line for its account may ask."""
        for line in self.lines.values():
            if (target.limits.provider, target.limits.account) in line.accounts:
                line.ring()


class Turn(msgspec.Struct, eq=False):
    """The place of one request among those that wait for the same targets.

    Attributes:
        room: of this worker.
        exchange: the request.
        targets: all that it may be sent to.
        wanted: these by name, once somebody has to know.
        line: in which it stands; None while it does not wait.
    """

    room: WaitingRoom
    exchange: Exchange
    targets: Sequence[Target]
    wanted: frozenset[tuple[str, str]] = frozenset()
    line: Line | None = None

    async def queue(self) -> Sequence[Refused]:
        """Wait behind those who wait already, if this request may wait at all.

        Returns:
            Nothing when it may ask; else what the head was told, which holds for it as well.
        """
        if self._most_ms() <= 0:
            return ()
        line = self._find()
        if line is None:
            return ()
        if line.opens_at_s > self._until_s() or not self._join(line):
            return line.refused
        return () if await self._stand(line) else line.refused

    async def wait(self, refused: Sequence[Refused]) -> bool:
        """Wait, after every target has refused, until it is time to ask again.

        Returns:
            False at once when waiting is off and nothing is held back, the room is full, or no
            target opens within the wait the client has left.
        """
        held_ms = [r.retry_after_ms for _, r in refused if r.is_held_back]
        if held_ms:
            return await self._wait_for_others(min(held_ms) / MS_PER_S)
        waits_ms = [r.retry_after_ms for _, r in refused if r.gate not in NEVER_BY_WAITING]
        if self._most_ms() <= 0 or not waits_ms:
            return False
        opens_at_s = self.room.clock.monotonic_s() + min(waits_ms) / MS_PER_S
        if opens_at_s > self._until_s():
            return False
        line = self.line or self._find() or Line(self.targets)
        if not self._join(line):
            return False
        if next(iter(line.turns)) is self:
            line.refused, line.opens_at_s = tuple(refused), opens_at_s
        return await self._stand(line)

    async def _wait_for_others(self, held_s: float) -> bool:
        """Sleep until what was held back is free: then it is there for all at once, in no order."""
        exchange, clock_s = self.exchange, self.room.clock.monotonic_s
        begun_s = clock_s()
        if begun_s + held_s > exchange.deadline_s:
            return False
        try:
            await asyncio.sleep(held_s)
        finally:
            exchange.spent.waiting_s += clock_s() - begun_s
        return True

    def leave(self) -> None:
        """Leave the line, admitted or not; the next one may ask. Harmless when in none."""
        line, self.line = self.line, None
        if line is None:
            return
        was_head = next(iter(line.turns)) is self
        del line.turns[self]
        self.room.depth -= 1
        if not line.turns:
            del self.room.lines[self.wanted]
        elif was_head:
            line.ring()

    def _find(self) -> Line | None:
        if not self.wanted:
            self.wanted = frozenset((t.route.id, t.key.id) for t in self.targets)
            share = self.exchange.share
            if share is not None:  # what it waits for may be there for others already
                self.wanted |= {(share.client, "")}
        return self.room.lines.get(self.wanted)

    def _join(self, line: Line) -> bool:
        if self.line is line:
            return True
        if self.room.depth >= self.exchange.runtime.policy.queue.max_depth:
            return False
        self.room.depth += 1
        self.room.lines[self.wanted] = self.line = line
        line.turns[self] = asyncio.Event()
        return True

    async def _stand(self, line: Line) -> bool:
        """Sleep until woken; the head wakes by itself, the others only when their wait is over."""
        is_head = next(iter(line.turns)) is self
        bell, now_s = line.turns[self], self.room.clock.monotonic_s()
        try:
            async with asyncio.timeout((line.opens_at_s if is_head else self._until_s()) - now_s):
                await bell.wait()
            bell.clear()  # not before the wait: it may have rung while this request was asking
        except TimeoutError:
            return is_head
        finally:
            self.exchange.spent.waiting_s += self.room.clock.monotonic_s() - now_s
        return True

    def _most_ms(self) -> int:
        asked_ms = self.exchange.hints.max_wait_ms
        return self.exchange.runtime.policy.queue.max_wait_ms if asked_ms is None else asked_ms

    def _until_s(self) -> float:
        exchange = self.exchange
        return min(exchange.started_s + self._most_ms() / MS_PER_S, exchange.deadline_s)
