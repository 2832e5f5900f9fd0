"""Returns what dead workers held; one worker of the cluster does it at a time (decision 0018).

Each dead worker is dealt with twice, a second apart: what it had sent may have reached the server
after the first sweep. What even that misses expires with its lease.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cluster_gw.background.elected import Elected
from cluster_gw.errors import StoreLostError
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.membership import DeadWorker, Membership
from cluster_gw.store.reaping import Reaping

ROLE: Final = "reaper"
LOOK_S: Final = 0.25
VALID_MS: Final = 1000  # how long after a look the dead are still believed dead
AGAIN_S: Final = 1.0

OnReaped = Callable[[Sequence[DeadWorker], int], None]


class Reaper(Elected):
    """Runs for the role, and while it has it, looks after the leases of the dead.

    Args:
        membership: tells who is dead.
        leadership: of the role `reaper`.
        reaping: frees slots.
        targets: gives everything that can be admitted now.
        on_reaped: called after a sweep with whose leases it freed and how many these were, once
            for each dead worker even if there were none.
        monotonic_s: clock between the two sweeps.
    """

    def __init__(
        self,
        membership: Membership,
        leadership: Leadership,
        reaping: Reaping,
        *,
        targets: Callable[[], Iterable[TargetLimits]],
        on_reaped: OnReaped,
        monotonic_s: Callable[[], float],
    ) -> None:
        super().__init__(leadership, lambda: bool(membership.alive))
        self._membership = membership
        self._reaping = reaping
        self._targets = targets
        self._on_reaped = on_reaped
        self._monotonic_s = monotonic_s
        self._swept_at_s: dict[DeadWorker, float] = {}

    async def look(self) -> None:
        """Reap if this worker has the role and somebody is dead."""
        if self._leadership.term is None or not self._due():
            return
        try:
            await self._membership.beat()  # somebody may have been heard since
            await self._reap(self._due())
        except StoreLostError:
            return  # the next look begins anew

    def _due(self) -> list[DeadWorker]:
        """The dead who were not dealt with yet, or a second ago for the first time."""
        dead, now_s = self._membership.dead(), self._monotonic_s()
        self._swept_at_s = {one: at for one, at in self._swept_at_s.items() if one in dead}
        return [
            one
            for one in dead
            if one not in self._swept_at_s or now_s - self._swept_at_s[one] >= AGAIN_S
        ]

    async def _reap(self, dead: list[DeadWorker]) -> None:
        term = self._leadership.term
        if term is None or not dead:
            return
        sweep = await self._reaping.sweep(
            dead,
            self._targets(),
            valid_until_ms=min(term.until_ms, self._membership.seen_ms + VALID_MS),
        )
        first = [one for one in dead if one not in self._swept_at_s]
        if sweep.leases or (first and sweep.is_whole):
            self._on_reaped(dead, sweep.leases)
        if not sweep.is_whole:
            return
        for one in dead:
            if one in first:
                self._swept_at_s[one] = self._monotonic_s()
            else:
                await self._membership.forget(one)
