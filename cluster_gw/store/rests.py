"""Rests of keys outside admission: which are ripe, ending them, and what a check of a key leads to.

Typed wrapper over `lua/health/{rests,lift,pace,claim}`. Only background jobs come here.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from cluster_gw.core.limits.probe import Pace, is_ripe
from cluster_gw.store.caller import OwnedCaller
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.unreadable import readable

RESTS: Final = "health/rests"
LOOKED_AT_ONCE: Final = 100  # records in one call
REST_VALUES: Final = 5  # for each record that rests
PACE_VALUES: Final = 3
CLAIMED_MS: Final = 30_000


class KeyRecords(msgspec.Struct, frozen=True, kw_only=True):
    """One key, and where its health and that of its models is recorded.

    Attributes:
        name: provider and key, as in the paces.
        records: those of its models, then the key's own.
        check: who checks it.
    """

    name: str
    records: tuple[str, ...]
    check: str


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A rest as it is recorded; times are ms since the epoch.

    Attributes:
        since_ms: when its incident began.
        until_ms: when it ends.
        source: on whose word.
        reason: why; empty where the record does not say.
    """

    since_ms: int
    until_ms: int
    source: str
    reason: str


class Ripe(msgspec.Struct, frozen=True, kw_only=True):
    """Names of keys with a ripe rest, as of the server's clock."""

    names: tuple[str, ...]
    now_ms: int


class Paces(msgspec.Struct, frozen=True, kw_only=True):
    """Paces of checks by the name of the key, as of the server's clock."""

    known: dict[str, Pace]
    now_ms: int


class Rests(OwnedCaller):
    """Looks at rests and ends them.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker where it checks a key.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Every method raises `StoreLostError` while Redis is away.
    """

    def key_of(self, targets: Sequence[TargetLimits]) -> KeyRecords:
        """Name the records of a key.

        Args:
            targets: all that are called with it, at least one.
        """
        first = targets[0]
        slot = self._keys.slot(first.provider, first.account)
        pairs = [self._keys.health(slot, first.key, target.model) for target in targets]
        return KeyRecords(
            name=self._keys.slot(first.provider, first.key).strip("{}"),
            records=(*(of_target for of_target, _ in pairs), pairs[0][1]),
            check=self._keys.check(slot, first.key),
        )

    async def list_ripe(self, keys: Iterable[KeyRecords]) -> Ripe:
        """Tell which keys have a rest that a check may end."""
        names, clocks_ms = [], [0]
        for key, (ripe, now_ms) in zip(
            known := list(keys), await asyncio.gather(*map(self._look_at, known)), strict=True
        ):
            clocks_ms.append(now_ms)
            if ripe:
                names.append(key.name)
        return Ripe(names=tuple(names), now_ms=max(clocks_ms))

    async def list_rests(self, key: KeyRecords) -> dict[str, Rest]:
        """Tell which records of a key rest now."""
        found: dict[str, Rest] = {}
        for records in chunks(key.records):
            known, reply = await readable(records, partial(self._call, RESTS))
            _, _, _, *values = reply or (0, b"", 0)
            for row in zip(*[iter(values)] * REST_VALUES, strict=True):
                place, set_at, until_ms, source, reason = row
                found[known[place - 1]] = Rest(
                    since_ms=set_at,
                    until_ms=until_ms,
                    source=source.decode(),
                    reason=reason.decode("utf-8", "replace"),
                )
        return found

    async def lift(self, key: KeyRecords) -> int:
        """End the ripe rests of a key; how many these were."""
        lifted = 0
        for records in chunks(key.records):
            _, reply = await readable(records, partial(self._call, "health/lift"))
            lifted += reply[2] if reply else 0
        return lifted

    async def pace(self, fence: int, changes: Mapping[str, Pace | None]) -> Paces | None:
        """Store paces, forget those that are None; give all, or None when another has the role."""
        words: list[str | int] = []
        for name, pace in changes.items():
            words += (name, pace.due_ms, pace.tries) if pace else (name, 0, 0)
        status, _, now_ms, *values = await self._client.run(
            self._scripts["health/pace"],
            [self._keys.probe()],
            [fence, self._server_now_ms(), *words],
        )
        if not status:
            return None
        rows = zip(*[iter(values)] * PACE_VALUES, strict=True)
        known = {name.decode(): Pace(due_ms=due_ms, tries=tries) for name, due_ms, tries in rows}
        return Paces(known=known, now_ms=now_ms)

    async def claim(self, key: KeyRecords) -> bool:
        """Whether this worker may check a key: nobody did within the last 30 s."""
        status, *_ = await self._client.run(
            self._scripts["health/claim"], [key.check], [self._owner, CLAIMED_MS]
        )
        return bool(status)

    async def _look_at(self, key: KeyRecords) -> tuple[bool, int]:
        ripe, now_ms = False, 0
        for records in chunks(key.records):
            _, reply = await readable(records, partial(self._call, RESTS))
            _, _, now_ms, *values = reply or (0, b"", now_ms)
            rows = zip(*[iter(values)] * REST_VALUES, strict=True)
            ripe = ripe or any(
                is_ripe(source.decode(), set_at_ms=set_at, until_ms=until_ms, now_ms=now_ms)
                for _, set_at, until_ms, source, _ in rows
            )
        return ripe, now_ms


def chunks(records: Sequence[str]) -> Iterable[Sequence[str]]:
    """Cut records into what one call looks at."""
    return (
        records[first : first + LOOKED_AT_ONCE] for first in range(0, len(records), LOOKED_AT_ONCE)
    )
