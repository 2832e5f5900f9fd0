"""How much each factor counts: the strategies' own weights, and what shifts them.

One table for all families and one normaliser. What depends on the configuration only is worked out
once per combo (`Scoring`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from cluster_gw.units import MS_PER_S

RELIABILITY: Final = "reliability"
SPEED: Final = "speed"
INTELLIGENCE: Final = "intelligence"
HEALTH: Final = "health"
LATENCY: Final = "latency"
QUALITY: Final = "quality"
CACHE_AFFINITY: Final = "cache_affinity"
PRIORITY: Final = "priority"
FACTORS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bandit": (RELIABILITY, SPEED, INTELLIGENCE),
        "classic": (HEALTH, RELIABILITY, LATENCY, QUALITY, CACHE_AFFINITY, PRIORITY),
    }
)


def _classic(*weights: float) -> Mapping[str, float]:
    return MappingProxyType(dict(zip(FACTORS["classic"], weights, strict=True)))


_BALANCED: Final = MappingProxyType({RELIABILITY: 0.50, SPEED: 0.25, INTELLIGENCE: 0.25})
PRESETS: Final[Mapping[tuple[str, str], Mapping[str, float]]] = MappingProxyType(
    {
        ("bandit", "balanced"): _BALANCED,
        ("bandit", "smartest"): MappingProxyType(
            {RELIABILITY: 0.35, SPEED: 0.10, INTELLIGENCE: 0.55}
        ),
        ("bandit", "fastest"): MappingProxyType(
            {RELIABILITY: 0.35, SPEED: 0.55, INTELLIGENCE: 0.10}
        ),
        ("bandit", "reliable"): MappingProxyType(
            {RELIABILITY: 0.70, SPEED: 0.15, INTELLIGENCE: 0.15}
        ),
        ("bandit", "custom"): _BALANCED,  # until somebody gives weights
        ("classic", "smart"): _classic(30, 20, 15, 15, 15, 5),
        ("classic", "quality"): _classic(20, 25, 5, 35, 10, 5),
        ("classic", "fast"): _classic(25, 20, 40, 0, 10, 5),
        ("classic", "reliable"): _classic(30, 40, 10, 0, 15, 5),
        ("classic", "cheap"): _classic(30, 20, 10, 0, 5, 35),
        ("classic", "weighted"): MappingProxyType({}),  # all the same, until somebody gives weights
    }
)
"""Raw weights by family and strategy; a strategy without a row does not score."""

SHIFTED: Final = frozenset({("bandit", "balanced"), ("bandit", "smartest")})
"""Strategies whose weights follow the hour and the task; of the others they are a promise."""

PEAK_SHARE: Final = 0.6


class Task(StrEnum):
    """What kind of work a request is; `auto` is none in particular."""

    AUTO = "auto"
    CODE = "code"
    CHAT = "chat"


class PeakHours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours in which speed counts less; the start is inclusive, the end exclusive.

    Attributes:
        enabled: whether there are such hours.
        start_hour: first hour of them, 0 to 23.
        end_hour: first hour after them, 0 to 23; smaller than the start, they pass midnight; equal
            to it, there are none.
        timezone: zone the hours are in.
    """

    enabled: bool = False
    start_hour: int = 18
    end_hour: int = 6
    timezone: str = "UTC"

    def holds(self, now_ms: float) -> bool:
        """Whether an instant, ms since the epoch, is in these hours."""
        if not self.enabled:
            return False
        moment = datetime.fromtimestamp(now_ms / MS_PER_S, UTC)
        hour = moment.astimezone(ZoneInfo(self.timezone)).hour
        if self.start_hour <= self.end_hour:
            return self.start_hour <= hour < self.end_hour
        return hour >= self.start_hour or hour < self.end_hour


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """How a combo scores.

    Attributes:
        plain: weight of each factor of the family, in its order; their sum is 1.
        peak: the same in peak hours; None where the hour changes nothing.
        task_share: how much the kind of task shifts them, 0 to 1; 0 where it changes nothing.
        peak_hours: when `peak` holds.
        explore_unmeasured: share of requests that try a route of which little is known, 0 to 1.
        exploration: share of requests that try any other than the best, 0 to 1; classic only.
        lkgp_boost: what the route that answered last gets on top, 0 to 1; classic only.
        is_fnv: prompts are mapped to routes as the first generation did.
        shifts: `plain` and `peak` by task.
    """

    plain: tuple[float, ...] = ()
    peak: tuple[float, ...] | None = None
    task_share: float = 0.0
    peak_hours: PeakHours = PeakHours()
    explore_unmeasured: float = 0.0
    exploration: float = 0.0
    lkgp_boost: float = 0.0
    is_fnv: bool = False
    shifts: Mapping[tuple[bool, Task], tuple[float, ...]] = {}

    def weights(self, task: Task, *, is_peak: bool) -> tuple[float, ...]:
        """Give the weights of a request, by its task and the hour."""
        return self.shifts[is_peak, task] if self.shifts else self.plain


NOT_SCORED: Final = Scoring()


def normalise(weights: Mapping[str, float], factors: tuple[str, ...]) -> tuple[float, ...]:
    """Give weights that sum to 1, in the order of `factors`.

    Missing and negative ones count as 0, those of other factors not at all; when nothing is left
    all factors count the same.
    """
    raw = [max(weights.get(name, 0.0), 0.0) for name in factors]
    total = sum(raw)
    if not total > 0:
        return (1.0 / len(factors),) * len(factors)
    return tuple(weight / total for weight in raw)


def shift(weights: tuple[float, ...], source: int, target: int, share: float) -> tuple[float, ...]:
    """Move a share of one weight to another; their sum stays."""
    moved = list(weights)
    moved[source] -= weights[source] * share
    moved[target] += weights[source] * share
    return tuple(moved)


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator sets of scoring, besides the strategy and its weights.

    Attributes:
        peak_hours: see `Scoring`, like all others.
        task_share: see there.
        explore_unmeasured: see there.
        exploration: see there.
        lkgp_boost: see there.
        is_fnv: see there.
    """

    peak_hours: PeakHours = PeakHours()
    task_share: float = 0.0
    explore_unmeasured: float = 0.0
    exploration: float = 0.0
    lkgp_boost: float = 0.0
    is_fnv: bool = False


def build_scoring(
    family: str, strategy: str, weights: Mapping[str, float], tuning: Tuning
) -> Scoring:
    """Work out how a combo scores.

    Args:
        family: of the combo.
        strategy: of the combo, known in that family.
        weights: the operator's own. In the bandit family they stand for the strategy's, in the
            classic one each takes the place of the strategy's raw weight.
        tuning: what else the operator has set.
    """
    preset = PRESETS.get((family, strategy))
    if preset is None:
        return Scoring(is_fnv=tuning.is_fnv)
    factors = FACTORS[family]
    if family == "classic":
        return Scoring(
            plain=normalise({**preset, **weights}, factors),
            exploration=tuning.exploration,
            lkgp_boost=tuning.lkgp_boost,
            is_fnv=tuning.is_fnv,
        )
    plain = normalise(weights or preset, factors)
    explore = tuning.explore_unmeasured
    if (family, strategy) not in SHIFTED:
        return Scoring(plain=plain, explore_unmeasured=explore)
    peak_hours = tuning.peak_hours
    speed, reliability = factors.index(SPEED), factors.index(RELIABILITY)
    peak = shift(plain, speed, reliability, PEAK_SHARE) if peak_hours.enabled else None
    return Scoring(
        plain=plain,
        peak=peak,
        task_share=tuning.task_share,
        peak_hours=peak_hours,
        explore_unmeasured=explore,
        shifts=MappingProxyType(
            {
                (is_peak, task): _for_task(base, factors, task, tuning.task_share)
                for is_peak, base in ((False, plain), (True, peak or plain))
                for task in Task
            }
        ),
    )


def _for_task(
    weights: tuple[float, ...], factors: tuple[str, ...], task: Task, share: float
) -> tuple[float, ...]:
    speed, intelligence = factors.index(SPEED), factors.index(INTELLIGENCE)
    match task:
        case Task.CODE:
            return shift(weights, speed, intelligence, share)
        case Task.CHAT:
            return shift(weights, intelligence, speed, share)
        case Task.AUTO:
            return weights
