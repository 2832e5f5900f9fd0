"""Checks keys that rest on our own guess, before their time is over; one worker does it for all.

Every minute it looks at the keys of its configuration and checks a few of those whose rest is ripe
(`core/limits/probe.py`). How far the checks of each key have come is kept in Redis, so that another
worker goes on from there.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from cluster_gw.background.elected import Elected
from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.core.limits.probe import Pace, ProbePolicy, back_off, plan_pass
from cluster_gw.core.outcome.key_check import KeyVerdict
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.rests import KeyRecords, Rests

ROLE: Final = "prober"

KeysToProbe = Mapping[str, tuple[KeyRecords, Target]]
"""By its name: a key's records, and a target it can be checked with."""

OnLifted = Callable[[Target, int], None]


class Prober(Elected):
    """Runs for the role, and while it has it, checks resting keys.

    Args:
        leadership: of the role `prober`.
        rests: where rests are found and ended.
        checks: calls the provider.
        keys: gives all keys that can be checked now.
        policy: of the configuration in force.
        on_lifted: told how many rests of which key ended early.
        chance: gives numbers from 0 to 1.
    """

    def __init__(
        self,
        leadership: Leadership,
        rests: Rests,
        checks: KeyChecks,
        *,
        keys: Callable[[], KeysToProbe],
        policy: Callable[[], ProbePolicy],
        on_lifted: OnLifted,
        chance: Callable[[], float],
    ) -> None:
        super().__init__(leadership)
        self._rests = rests
        self._checks = checks
        self._keys = keys
        self._policy = policy
        self._on_lifted = on_lifted
        self._chance = chance

    async def look(self) -> None:
        """Check what is due, if this worker has the role and checks are on."""
        policy, term = self._policy(), self._leadership.term
        if term is None or not policy.enabled:
            return
        try:
            await self._probe(policy, term.fence)
        except StoreLostError:
            return  # the next look begins anew

    async def _probe(self, policy: ProbePolicy, fence: int) -> None:
        keys = self._keys()
        ripe = await self._rests.list_ripe(records for records, _ in keys.values())
        paces = await self._rests.pace(fence, {})
        if paces is None:
            return
        chances = {name: self._chance() for name in ripe.names}
        plan = plan_pass(paces.known, chances, policy, paces.now_ms)
        changes: dict[str, Pace | None] = {**plan.seen, **dict.fromkeys(plan.forget)}
        known = {**paces.known, **plan.seen}
        # Before the calls: whoever takes over in the middle does not check the same keys at once.
        changes |= {name: back_off(known[name], paces.now_ms) for name in plan.check}
        if not changes or await self._rests.pace(fence, changes) is None:
            return
        lifted = await asyncio.gather(*(self._check(*keys[name]) for name in plan.check))
        if any(lifted):
            done = [name for name, was in zip(plan.check, lifted, strict=True) if was]
            await self._rests.pace(fence, dict.fromkeys(done))

    async def _check(self, records: KeyRecords, target: Target) -> bool:
        """Whether the key was found well, and its ripe rests ended."""
        if await self._checks.check(target) is not KeyVerdict.VALID:
            return False
        lifted = await self._rests.lift(records)
        if lifted:
            self._on_lifted(target, lifted)
        return True
