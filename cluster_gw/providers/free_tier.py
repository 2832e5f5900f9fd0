"""Models that providers give away, or sell first of all: what a preset brings along.

Free tiers change without notice. Names, limits and allowances are what the providers told when this
was written, not measured; tiers and ranks are our opinion, to begin with something. All of it is
replaced by models in the configuration, provider by provider, or by a `catalog` as a whole.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class PresetLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Upper bounds of one scope; None means not limited."""

    rpm: int | None = None
    rpd: int | None = None
    tpm: int | None = None
    tpd: int | None = None


class PresetModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a preset.

    Attributes:
        preset: whose it is.
        model: the upstream's id.
        name: for people.
        tier: coarse class.
        rank: intelligence among all models, 1 is the best.
        limits: of this model on one key.
        monthly_tokens: what one key is given each month; None where nobody knows.
        context_window: tokens, None when unknown.
    """

    preset: str
    model: str
    name: str
    tier: str
    rank: int
    limits: PresetLimits = PresetLimits()
    monthly_tokens: int | None = None
    context_window: int | None = None
    tools: bool = True
    vision: bool = False


def free(
    preset: str,
    model: str,
    name: str,
    opinion: tuple[str, int],
    limits: tuple[int | None, int | None, int | None, int | None],
    **more: int | bool,
) -> PresetModel:
    """One row; `limits` are requests a minute and a day, tokens a minute and a day."""
    rpm, rpd, tpm, tpd = limits
    bounds = PresetLimits(rpm=rpm, rpd=rpd, tpm=tpm, tpd=tpd)
    row = {"preset": preset, "model": model, "name": name, "tier": opinion[0], "rank": opinion[1]}
    return msgspec.convert({**row, "limits": msgspec.to_builtins(bounds), **more}, PresetModel)


M: Final = 1_000_000
NO_LIMITS: Final = (None, None, None, None)

LIST: Final = (
    free(
        *("anthropic", "claude-sonnet-4-5", "Claude Sonnet 4.5", ("Frontier", 3), NO_LIMITS),
        context_window=200_000,
        vision=True,
    ),
    free(
        *("google", "gemini-2.5-flash", "Gemini 2.5 Flash", ("Large", 8)),
        (10, 20, 250_000, None),
        monthly_tokens=3 * M,
        context_window=1_048_576,
        vision=True,
    ),
    free(
        *("groq", "openai/gpt-oss-120b", "GPT-OSS 120B", ("Large", 14)),
        (30, 1000, 8000, 200_000),
        monthly_tokens=6 * M,
        context_window=131_072,
    ),
    free(
        *("cerebras", "gpt-oss-120b", "GPT-OSS 120B", ("Large", 14)),
        (30, None, 60_000, 1_000_000),
        monthly_tokens=30 * M,
        context_window=131_072,
    ),
    free(
        *("ollama", "gpt-oss:120b", "GPT-OSS 120B", ("Large", 14), NO_LIMITS),
        context_window=131_072,
    ),
    free(
        *("cohere", "command-a-03-2025", "Command A", ("Large", 22)),
        (20, 33, None, None),
        monthly_tokens=2 * M,
        context_window=256_000,
    ),
    free(
        *("openai", "gpt-4o-mini", "GPT-4o mini", ("Medium", 30), NO_LIMITS),
        context_window=128_000,
        vision=True,
    ),
    free(
        *("groq", "llama-3.3-70b-versatile", "Llama 3.3 70B", ("Large", 40)),
        (30, 1000, 12_000, 100_000),
        monthly_tokens=15 * M,
        context_window=131_072,
    ),
    free(
        *("nvidia", "meta/llama-3.3-70b-instruct", "Llama 3.3 70B", ("Large", 40)),
        (40, None, None, None),
        context_window=131_072,
    ),
    free(
        *("openrouter", "meta-llama/llama-3.3-70b-instruct:free", "Llama 3.3 70B", ("Large", 40)),
        (20, 200, None, None),
        monthly_tokens=6 * M,
        context_window=131_072,
    ),
    free(
        *("mistral", "mistral-small-latest", "Mistral Small", ("Medium", 45)),
        (2, None, 500_000, None),
        monthly_tokens=50 * M,
        context_window=131_072,
    ),
    free(
        *("cloudflare", "@cf/zai-org/glm-4.7-flash", "GLM 4.7 Flash", ("Medium", 48), NO_LIMITS),
        context_window=131_072,
    ),
    free(
        *("zhipu", "glm-4.5-flash", "GLM 4.5 Flash", ("Medium", 55), NO_LIMITS),
        context_window=131_072,
    ),
    free(
        *("groq", "llama-3.1-8b-instant", "Llama 3.1 8B", ("Small", 120)),
        (30, 14_400, 6000, 500_000),
        monthly_tokens=15 * M,
        context_window=131_072,
    ),
)

FREE_TIER: Final[Mapping[str, tuple[PresetModel, ...]]] = MappingProxyType(
    {
        preset: tuple([model for model in LIST if model.preset == preset])
        for preset in dict.fromkeys(model.preset for model in LIST)
    }
)
"""The models of each preset that brings some; the best first."""
