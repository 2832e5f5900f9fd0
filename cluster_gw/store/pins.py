"""Which routes runs and sessions stay on, as operators see it: found by a walk over all keys.

No index is kept, since no request would need it. A walk takes the server some milliseconds for each
10,000 keys, in small steps; it ends early when it has found enough or takes too long.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Lane, Reply, pack

STEP: Final = 1000  # keys that the server looks at in one call: some 0.2 ms
WITHIN_S: Final = 8.0
FIRST: Final = b"0"


class WhichPins(msgspec.Struct, frozen=True, kw_only=True):
    """Pins that are meant; None for any.

    Attributes:
        combo: whose.
        scope: `run` or `session`.
        key: the hash that stands for a run or session.
    """

    combo: str | None = None
    scope: str | None = None
    key: str | None = None


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run or a session stays.

    Attributes:
        combo: whose route it is.
        epoch: of that combo; a pin of another than its present one is not found any more.
        scope: `run` or `session`.
        key: a hash that stands for it; never a client's text.
        route: where.
        requests: how many asked since the pin was made.
        expires_in_ms: unless it is used before.
    """

    combo: str
    epoch: str
    scope: str
    key: str
    route: str
    requests: int
    expires_in_ms: int


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk came to.

    Attributes:
        pins: in order of combo, scope and key.
        is_complete: there are no others.
    """

    pins: tuple[Pin, ...]
    is_complete: bool


class Pins:
    """Lists and removes pins.

    Args:
        client: the worker's Redis client.
        keys: builds key names.
        monotonic_s: clock of a walk's end.

    Every method raises `StoreLostError` while Redis is away.
    """

    def __init__(
        self, client: RedisClient, keys: Keys, *, monotonic_s: Callable[[], float]
    ) -> None:
        self._client, self._keys, self._monotonic_s = client, keys, monotonic_s

    async def find(self, which: WhichPins, most: int) -> Found:
        """List pins.

        Args:
            which: of them.
            most: how many, at most.
        """
        pins: dict[str, Pin] = {}
        async for names, is_last in self._walk(which):
            for pin in await asyncio.gather(*map(self._read, names)):
                if pin is not None:
                    pins[self._keys.pin(pin.combo, pin.epoch, pin.scope, pin.key)] = pin
            if len(pins) > most:
                return _found(pins, most, is_complete=False)
            if is_last:
                return _found(pins, most, is_complete=True)
        return _found(pins, most, is_complete=False)

    async def remove(self, which: WhichPins) -> tuple[int, bool]:
        """Remove pins.

        Returns:
            How many, and whether that are all that there were when it began.
        """
        removed = 0
        async for names, is_last in self._walk(which):
            for name in names:
                removed += await self._client.call("DEL", name)
            if is_last:
                return removed, True
        return removed, False

    async def _read(self, name: str) -> Pin | None:
        """Read one; None where it has ended meanwhile, or is none."""
        parts = self._keys.pin_parts(name)
        try:
            (route, turn), left_ms = await asyncio.gather(
                self._client.call("HMGET", name, "route", "turn"), self._client.call("PTTL", name)
            )
        except (RecordUnreadableError, ScriptContractError):  # somebody else wrote it
            return None
        if parts is None or route is None or not (turn or b"0").isdigit():
            return None
        combo, epoch, scope, key = parts
        return Pin(
            combo=combo,
            epoch=epoch,
            scope=scope,
            key=key,
            route=route.decode("utf-8", "replace"),
            requests=int(turn or 0),
            expires_in_ms=max(0, left_ms),
        )

    async def _walk(self, which: WhichPins) -> AsyncIterator[tuple[list[str], bool]]:
        """Give names of pins as they are found, and whether they are the last; some come twice."""
        until_s = self._monotonic_s() + WITHIN_S
        pattern = self._keys.pins(which.combo, which.scope, which.key)
        lanes = self._client.live_lanes()
        if not lanes:
            raise StoreLostError("redis is away")
        for number, lane in enumerate(lanes, 1):
            cursor = FIRST
            while True:
                cursor, names = await _step(lane, cursor, pattern)
                is_over = cursor == FIRST
                yield [name.decode() for name in names], is_over and number == len(lanes)
                if is_over:
                    break
                if self._monotonic_s() > until_s:
                    return


async def _step(lane: Lane, cursor: bytes, pattern: str) -> Reply:
    return await lane.submit(pack(("SCAN", cursor, "MATCH", pattern, "COUNT", STEP)))


def _found(pins: dict[str, Pin], most: int, *, is_complete: bool) -> Found:
    ordered = sorted(pins.values(), key=lambda pin: (pin.combo, pin.scope, pin.key, pin.epoch))
    return Found(pins=tuple(ordered[:most]), is_complete=is_complete)
