"""Providers known by name: where they are, how they bend the format, what their free tier allows.

Free tiers change without notice: caps and day resets here are starting values that were not
measured against the providers, and an operator overrides any of them. Models are in `free_tier`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.request import Dialect

ROLLING: Final = "rolling"


class PresetCaps(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider caps over all models of one key; days are UTC's, None means not capped.

    Attributes:
        rpm: requests in any 60 s.
        rpd: requests a day.
        tpd: tokens a day, each model's by its weight.
    """

    rpm: int | None = None
    rpd: int | None = None
    tpd: int | None = None


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One provider.

    Attributes:
        name: how configuration calls it.
        base_url: up to, not including, `/chat/completions`, or `/models/…` of Gemini.
        env: environment variable that usually holds the key.
        first_byte_s: bound of the wait for the first byte.
        quirks: names out of `quirks.QUIRKS`.
        keyless: usable without a key.
        caps: of one key over all models.
        slow_models: models whose first byte takes longer, each with its own bound in seconds.
        weighs_tokens: whether a model's own tokens a day are the whole cap at the model's weight.
        day_reset: `rolling`, or the zone whose midnight ends the day of a model's limits.
    """

    name: str
    base_url: str
    env: str
    dialect: Dialect = Dialect.OPENAI
    first_byte_s: float = 60.0
    quirks: frozenset[str] = frozenset()
    keyless: bool = False
    caps: PresetCaps = PresetCaps()
    slow_models: tuple[tuple[str, float], ...] = ()
    weighs_tokens: bool = False
    day_reset: str = ROLLING


def quirks(*names: str) -> frozenset[str]:
    """Quirks of a preset."""
    return frozenset(names)


SPECIAL: Final = (
    Preset(
        name="openai",
        base_url="https://api.openai.com/v1",
        env="OPENAI_API_KEY",
    ),
    Preset(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        env="ANTHROPIC_API_KEY",
        dialect=Dialect.ANTHROPIC,
    ),
    Preset(
        name="google",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        env="GEMINI_API_KEY",
        dialect=Dialect.GEMINI,
        day_reset="America/Los_Angeles",
    ),
    Preset(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        env="GROQ_API_KEY",
        quirks=quirks("no_logprobs", "requests_by_day"),
    ),
    Preset(
        name="cerebras",
        base_url="https://api.cerebras.ai/v1",
        env="CEREBRAS_API_KEY",
    ),
    Preset(
        name="nvidia",
        base_url="https://integrate.api.nvidia.com/v1",
        env="NVIDIA_API_KEY",
        first_byte_s=180.0,
        quirks=quirks("serial_tools"),
        caps=PresetCaps(rpm=40),
    ),
    Preset(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        env="MISTRAL_API_KEY",
        quirks=quirks(
            *("random_seed", "max_tokens_name", "no_stream_options", "no_reasoning_effort"),
            *("plain_messages", "output_dimension"),
        ),
    ),
    Preset(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        env="OPENROUTER_API_KEY",
        quirks=quirks("attribution", "key_info"),
        caps=PresetCaps(rpd=1000),
    ),
    Preset(
        name="github",
        base_url="https://models.github.ai/inference",
        env="GITHUB_TOKEN",
        quirks=quirks("max_output_400", "trimmed_input", "three_efforts"),
    ),
    Preset(
        name="cohere",
        base_url="https://api.cohere.ai/compatibility/v1",
        env="COHERE_API_KEY",
        quirks=quirks("flat_content", "plain_schemas"),
        first_byte_s=15.0,
    ),
    Preset(
        name="zhipu",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        env="ZHIPU_API_KEY",
        quirks=quirks("two_consoles"),
    ),
    Preset(
        name="huggingface",
        base_url="https://router.huggingface.co/v1",
        env="HF_TOKEN",
    ),
    Preset(
        name="ollama",
        base_url="https://ollama.com/v1",
        env="OLLAMA_API_KEY",
        first_byte_s=120.0,
    ),
    Preset(
        name="kilo",
        base_url="https://api.kilo.ai/api/gateway/v1",
        env="KILO_API_KEY",
        quirks=quirks("no_response_format", "models_above", "verdicts"),
        keyless=True,
    ),
    Preset(
        name="pollinations",
        base_url="https://gen.pollinations.ai/v1",
        env="POLLINATIONS_API_KEY",
        quirks=quirks("account_key"),
    ),
    Preset(
        name="modelscope",
        base_url="https://api-inference.modelscope.cn/v1",
        env="MODELSCOPE_API_KEY",
        quirks=quirks("metered_checks"),
        first_byte_s=90.0,
        caps=PresetCaps(rpd=1800),
    ),
    Preset(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        env="DEEPSEEK_API_KEY",
        quirks=quirks("reasoning_echo"),
    ),
    Preset(
        name="moonshot",
        base_url="https://api.moonshot.ai/v1",
        env="MOONSHOT_API_KEY",
        quirks=quirks("reasoning_echo"),
    ),
    Preset(
        name="opencode",
        base_url="https://opencode.ai/zen/v1",
        env="OPENCODE_API_KEY",
        quirks=quirks("reasoning_echo", "reasoning_blank"),
    ),
    Preset(
        name="reka",
        base_url="https://api.reka.ai/v1",
        env="REKA_API_KEY",
        quirks=quirks("schema_for_object"),
    ),
    Preset(
        name="requesty",
        base_url="https://router.requesty.ai/v1",
        env="REQUESTY_API_KEY",
        caps=PresetCaps(rpd=180),
    ),
    Preset(
        name="navy",
        base_url="https://api.navy/v1",
        env="NAVY_API_KEY",
        caps=PresetCaps(tpd=150_000),
        weighs_tokens=True,
    ),
    Preset(
        name="routeway",
        base_url="https://api.routeway.ai/v1",
        env="ROUTEWAY_API_KEY",
        quirks=quirks("browser_agent"),
    ),
    Preset(
        name="ovh",
        base_url="https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
        env="OVH_AI_ENDPOINTS_ACCESS_TOKEN",
        keyless=True,
    ),
    Preset(
        name="cloudflare",
        base_url="https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
        env="CLOUDFLARE_API_KEY",
        quirks=quirks("account_in_key", "null_content", "output_8192", "models_search"),
        slow_models=(("@cf/zai-org/glm-4.7-flash", 200.0),),
    ),
    Preset(
        name="aihorde",
        base_url="https://oai.aihorde.net/v1",
        env="AIHORDE_API_KEY",
        first_byte_s=120.0,
        keyless=True,
        quirks=quirks(
            *("anonymous_zeros", "min_output_16", "output_512", "list_of_stops", "no_tools"),
            "no_stream",
        ),
    ),
    Preset(
        name="bazaarlink",
        base_url="https://bazaarlink.ai/api/v1",
        env="BAZAARLINK_API_KEY",
        quirks=quirks("key_info"),
    ),
)

PLAIN: Final = (
    ("agnes", "https://apihub.agnes-ai.com/v1"),
    ("ainative", "https://api.ainative.studio/api/v1"),
    ("aion", "https://api.aionlabs.ai/v1"),
    ("anyapi", "https://api.anyapi.ai/v1"),
    ("bai", "https://api.b.ai/v1"),
    ("llm7", "https://api.llm7.io/v1"),
    ("longcat", "https://api.longcat.chat/openai/v1"),
    ("nara", "https://router.bynara.id/v1"),
    ("orcarouter", "https://api.orcarouter.ai/v1"),
    ("qianfan", "https://qianfan.baidubce.com/v2"),
    ("sealion", "https://api.sea-lion.ai/v1"),
    ("siliconflow", "https://api.siliconflow.cn/v1"),
    ("volcengine", "https://ark.cn-beijing.volces.com/api/v3"),
    ("xfyun", "https://spark-api-open.xf-yun.com/v1"),
    ("zai", "https://api.z.ai/api/paas/v4"),  # the same service as zhipu, with keys of its own
)
"""Providers that do nothing differently: a name and an address are all there is to them."""

LIST: Final = (
    *SPECIAL,
    *(Preset(name=name, base_url=at, env=f"{name.upper()}_API_KEY") for name, at in PLAIN),
)

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType({preset.name: preset for preset in LIST})
