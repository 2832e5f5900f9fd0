"""Ranges of fields that belong to lower floors, and what patterns mean in words.

Lower floors hold plain values; a configuration is the only way a wrong one could get in.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.cooldown import CooldownPolicy
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.estimate import EstimatePolicy
from cluster_gw.core.limits.key_status import CheckPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.core.limits.probe import ProbePolicy
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.peek import PeekPolicy
from cluster_gw.core.outcome.retry import AttemptPolicy
from cluster_gw.core.routing.headroom import HeadroomPolicy
from cluster_gw.core.routing.presets import PeakHours
from cluster_gw.settings.pool import ModelSettings


class Range(msgspec.Struct, frozen=True):
    """Inclusive bounds of a number; `above` excludes the lower one."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        """Whether `value` lies in the range."""
        if self.low is not None and (value < self.low or (self.above and value == self.low)):
            return False
        return self.high is None or value < self.high or (value == self.high and not self.below)

    def words(self) -> str:
        """Describe the range for a fault: ` from 1 to 65535`, ` above 0`, or nothing."""
        low, high = _plain(self.low), _plain(self.high)
        match (self.low, self.high):
            case (None, None):
                return ""
            case (_, None):
                return f" {'above' if self.above else 'of at least'} {low}"
            case (None, _):
                return f" {'below' if self.below else 'of at most'} {high}"
            case _:
                end = f"below {high}" if self.below else f"at most {high}"
                if not self.above and not self.below:
                    return f" from {low} to {high}"
                return f" {'above' if self.above else 'of at least'} {low} and {end}"


def _plain(number: float | None) -> str:
    """Write a bound without an exponent."""
    return "" if number is None else f"{number:.16g}"


COUNT: Final = Range(0, 10**12)
MS: Final = Range(1, 86_400_000)
SECONDS: Final = Range(0, 31_536_000, above=True)

BOUNDS: Final[Mapping[Any, Mapping[str, Range]]] = MappingProxyType(
    {
        Limits: dict.fromkeys(("rpm", "rpd", "tpm", "tpd", "concurrency"), COUNT),
        Caps: {
            **dict.fromkeys(("rpm", "rpd", "tpd"), COUNT),
            "monthly_tokens": Range(0, 10**15),
        },
        AttemptPolicy: {
            "max": Range(1, 1000),
            "time_budget_ms": Range(0, 86_400_000),
            "max_consecutive_fails": Range(0, 1000),
        },
        EstimatePolicy: {
            "min_ratio": Range(0, 1, above=True),
            "max_ratio": Range(1, 100),
        },
        BreakerPolicy: {"threshold": Range(1, 10**9), "cooldown_ms": MS},
        PenaltyPolicy: {
            "rate_limit": Range(0, 1000),
            "failure": Range(0, 1000),
            "success": Range(-1000, 0),
            "decay_s": SECONDS,
            "max": Range(0, 1000, above=True),
        },
        BenchPolicy: {"failures": Range(1, 100), "within_s": SECONDS, "for_s": SECONDS},
        ProbePolicy: {"per_pass": Range(1, 100)},
        CheckPolicy: {
            "interval_s": Range(1, 86_400),
            "spacing_ms": Range(0, 60_000),
            "concurrency": Range(1, 100),
            "disable_after": Range(1, 1000),
        },
        DegradedPolicy: {
            "healthy_ratio": Range(0, 1),
            "min_providers": Range(1, 1000),
            "entry_s": Range(0, 86_400),
            "exit_s": Range(0, 86_400),
        },
        HeadroomPolicy: dict.fromkeys(("ramp_start", "floor", "minute_ramp_start"), Range(0, 1)),
        PeakHours: {"start_hour": Range(0, 23), "end_hour": Range(0, 23)},
        CooldownPolicy: {"transient_s": Range(0, 86_400), "ceiling_s": Range(60, 86_400)},
        PeekPolicy: {
            "idle_ms": MS,
            "last_idle_ms": MS,
            "max_total_ms": MS,
            "max_blank": Range(0, 1_000_000),
            "max_bytes": Range(1024, 1024**3),
        },
    }
)

TOKEN_FIELDS: Final = frozenset({"tpm", "tpd", "monthly_tokens", "context_window"})
LABELS: Final = frozenset({(ModelSettings, "monthly_tokens")})
"""Fields that take a vendor's label, of which some promise nothing: a hint, never a bound."""

PATTERN_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        r"^[a-z0-9][a-z0-9_-]{0,63}$": (
            "must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"
        ),
        r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$": (
            "must be 1 to 128 of letters, digits and . _ : @ / -, starting with a letter or digit"
        ),
        r"^[A-Za-z0-9_-]{1,32}$": "must be 1 to 32 of letters, digits, _ and -",
        r"^[0-9a-fA-F]{64}$": "must be 64 hexadecimal digits, the SHA-256 of the client's key",
    }
)
