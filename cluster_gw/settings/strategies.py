"""Names of strategies and factors by family, and which dialects this version speaks.

A name that is unknown is refused when the configuration is loaded: it never falls back to another
strategy.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STRATEGIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bandit": ("balanced", "smartest", "fastest", "reliable", "custom", "priority"),
        "classic": (
            "priority",
            "round-robin",
            "prefix-affinity",
            "smart",
            "quality",
            "fast",
            "cheap",
            "reliable",
            "weighted",
            "lkgp",
            "p2c",
        ),
    }
)

FACTORS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bandit": ("reliability", "speed", "intelligence"),
        "classic": ("health", "reliability", "latency", "quality", "cache_affinity", "priority"),
    }
)

DEFAULT_STRATEGIES: Final[Mapping[str, str]] = MappingProxyType(
    {"bandit": "balanced", "classic": "priority"}
)

RUNNABLE_DIALECTS: Final = frozenset({"openai", "openai-responses", "anthropic", "gemini"})
