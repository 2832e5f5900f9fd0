"""Words that stand for a way to choose among all models: `auto:smart`, `auto:fast` and so on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

AUTO: Final = "auto"
PREFIX: Final = "auto:"
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto:smart": "smartest",
        "auto:fast": "fastest",
        "auto:cheap": "balanced",
        "auto:reliable": "reliable",
        "auto:balanced": "balanced",
    }
)
"""Strategy of the bandit family by alias."""

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name.removeprefix(PREFIX): name for name in ALIASES},
        "smartest": "auto:smart",
        "intelligence": "auto:smart",
        "fastest": "auto:fast",
        "speed": "auto:fast",
        "cheapest": "auto:cheap",
        "price": "auto:cheap",
        "budget": "auto:cheap",
        "reliability": "auto:reliable",
    }
)
"""Alias by word; in requests their case does not matter."""

RESERVED: Final = frozenset({*WORDS, AUTO, "active", "default"})
"""What no profile may be called: `auto:NAME` would mean something else."""

MAX_PROFILE_CHARACTERS: Final = 20
