"""What providers say of their limits, on its way to our counters: `lua/admission/observe`.

Sent in the background, only when it says something new, and lost without harm: the next answer
says it again.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.quota import Observation, QuotaBreadth, QuotaKind, QuotaWindow
from cluster_gw.core.limits.observe import Count, Hint, Noticed, hint_of, notice
from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.plan import NO_LIMIT, SCOPE_KEY, SCOPE_MODEL, Days, Plans
from cluster_gw.store.scripts import Scripts

PLACES: Final = (
    (QuotaWindow.MINUTE, QuotaKind.REQUESTS),
    (QuotaWindow.MINUTE, QuotaKind.TOKENS),
    (QuotaWindow.DAY, QuotaKind.REQUESTS),
    (QuotaWindow.DAY, QuotaKind.TOKENS),
)  # in the order of the script's arguments and replies
SCOPES: Final[Mapping[QuotaBreadth, str]] = MappingProxyType(
    {QuotaBreadth.MODEL: SCOPE_MODEL, QuotaBreadth.KEY: SCOPE_KEY}
)
PLACE_ARGS: Final = 3
NOTHING_SAID: Final = (NO_LIMIT, 0)
BOUNDS_OF_A_WINDOW: Final = 5  # rpm, rpd, tpm, tpd, concurrency


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one reading came to.

    Attributes:
        reading: what the provider said.
        limit: ours, None without one.
        left: how much our own window lets through after it, None without a limit of ours.
        raised: by how much our count was raised.
        noticed: what that says about others.
    """

    reading: Observation
    limit: int | None
    left: int | None
    raised: int
    noticed: Noticed


class Observing:
    """Applies readings to windows.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        clock_ms: wall clock, ms since the epoch; only tells which calendar day it is.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        clock_ms: Callable[[], int],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._script = scripts["admission/observe"]
        self._plans = Plans(keys, scripts)
        self._days = Days()
        self._clock_ms = clock_ms
        self._server_now_ms = server_now_ms

    async def apply(
        self, target: TargetLimits, readings: Sequence[Observation], age_ms: int
    ) -> list[Seen]:
        """Let what a provider said tighten the windows of a target; what it came to.

        Args:
            target: what was called.
            readings: of its answer.
            age_ms: since the head of that answer came.

        Raises:
            StoreLostError: Redis is away; nothing is lost that the next answer does not say.
        """
        plan = self._plans.of(target)
        seen: list[Seen] = []
        for breadth, scope in SCOPES.items():
            if scope in plan.scopes:
                at = plan.scopes.index(scope)
                rpm, rpd, tpm, tpd, _ = plan.limits[BOUNDS_OF_A_WINDOW * at :][:BOUNDS_OF_A_WINDOW]
                own = [one for one in readings if one.breadth is breadth]
                bounds = [None if one == NO_LIMIT else one for one in (rpm, tpm, rpd, tpd)]
                if own:
                    zone = target.day_reset
                    keys = [plan.windows[at], plan.health[scope == SCOPE_KEY]]
                    seen += await self._observe(keys, zone, bounds, own, age_ms)
        return seen

    async def _observe(
        self,
        keys: Sequence[str],
        zone: str,
        bounds: Sequence[int | None],
        readings: Sequence[Observation],
        age_ms: int,
    ) -> list[Seen]:
        by_place = {(one.window, one.kind): one for one in readings}
        said = [by_place.get(place) for place in PLACES]
        hints = [None if one is None else hint_of(one, age_ms) for one in said]
        day = self._days.of(self._clock_ms(), zone)
        status, _, *told = await self._client.run(
            self._script,
            keys,
            [age_ms, day.id, day.end_ms, *observed(bounds, hints), self._server_now_ms()],
        )
        if not status:  # our clock is in another day: so would be what we know of it
            return []
        return [
            _seen(one, hint, bounds[at], told[PLACE_ARGS * at :][:PLACE_ARGS])
            for at, (one, hint) in enumerate(zip(said, hints, strict=True))
            if one is not None and hint is not None
        ]


def observed(bounds: Sequence[int | None], hints: Sequence[Hint | None]) -> list[int]:
    """What the script is told of each limit: ours, what is left there, and for how long."""
    words: list[int] = []
    for bound, hint in zip(bounds, hints, strict=True):
        said = NOTHING_SAID if hint is None else (hint.remaining, hint.hold_ms)
        words += (NO_LIMIT if bound is None else bound, *said)
    return words


def _seen(reading: Observation, hint: Hint, bound: int | None, told: Sequence[int]) -> Seen:
    raised, used, since = told
    count = Count(limit=bound, used=used, since=since)
    return Seen(
        reading=reading,
        limit=bound,
        left=None if bound is None else bound - used - raised,
        raised=raised,
        noticed=notice(hint, count),
    )
