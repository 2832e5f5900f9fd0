"""The table of platforms is usable as it stands."""

from typing import NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec
import pytest

from cluster_gw.canonical.request import Dialect
from cluster_gw.providers import provider_for
from cluster_gw.providers.free_tier import FREE_TIER
from cluster_gw.providers.presets import LIST, PRESETS, ROLLING, Preset, PresetCaps
from cluster_gw.providers.quirks import QUIRKS
from cluster_gw.settings import build_catalog, load_bytes


@pytest.mark.parametrize("preset", LIST, ids=lambda preset: preset.name)
def test_a_preset_names_only_what_exists(preset: Preset) -> None:
    url = urlsplit(preset.base_url)

    assert url.scheme == "https"
    assert url.hostname
    assert not preset.base_url.endswith(("/", "/chat/completions"))
    assert preset.quirks <= QUIRKS.keys()
    assert preset.env.isupper()
    assert preset.day_reset == ROLLING or ZoneInfo(preset.day_reset).key
    models = FREE_TIER.get(preset.name, ())
    assert len({model.model for model in models}) == len(models)


def test_names_are_unique() -> None:
    assert len(PRESETS) == len(LIST)
    assert len({preset.env for preset in LIST}) == len(LIST)


CAPS = {
    "openrouter": PresetCaps(rpd=1000),
    "modelscope": PresetCaps(rpd=1800),
    "requesty": PresetCaps(rpd=180),
    "navy": PresetCaps(tpd=150_000),
    "nvidia": PresetCaps(rpm=40),
}
"""What platforms cap over all models of one key, as the router of the first generation had it."""


def test_caps_over_all_models_are_those_of_the_table() -> None:
    assert {preset.name: preset.caps for preset in LIST if preset.caps != PresetCaps()} == CAPS


def test_only_a_platform_with_a_cap_of_tokens_weighs_them() -> None:
    assert [preset.name for preset in LIST if preset.weighs_tokens] == ["navy"]
    assert PRESETS["navy"].caps.tpd is not None


def test_googles_day_ends_in_california() -> None:
    assert PRESETS["google"].day_reset == "America/Los_Angeles"


class Row(NamedTuple):
    """One platform of the first generation's table."""

    base_url: str
    first_byte_s: float = 60.0
    quirks: frozenset[str] = frozenset()
    keyless: bool = False
    dialect: Dialect = Dialect.OPENAI


def bent(*names: str) -> frozenset[str]:
    return frozenset(names)


TABLE = {
    "google": Row("https://generativelanguage.googleapis.com/v1beta", dialect=Dialect.GEMINI),
    "groq": Row("https://api.groq.com/openai/v1", quirks=bent("no_logprobs", "requests_by_day")),
    "cerebras": Row("https://api.cerebras.ai/v1"),
    "nvidia": Row("https://integrate.api.nvidia.com/v1", 180.0, bent("serial_tools")),
    "mistral": Row(
        "https://api.mistral.ai/v1",
        quirks=bent(
            *("random_seed", "max_tokens_name", "no_stream_options", "no_reasoning_effort"),
            *("plain_messages", "output_dimension"),
        ),
    ),
    "openrouter": Row("https://openrouter.ai/api/v1", quirks=bent("attribution", "key_info")),
    "github": Row(
        "https://models.github.ai/inference",
        quirks=bent("max_output_400", "trimmed_input", "three_efforts"),
    ),
    "cohere": Row(
        "https://api.cohere.ai/compatibility/v1", 15.0, bent("flat_content", "plain_schemas")
    ),
    "cloudflare": Row(
        "https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
        quirks=bent("account_in_key", "null_content", "output_8192", "models_search"),
    ),
    "zhipu": Row("https://open.bigmodel.cn/api/paas/v4", quirks=bent("two_consoles")),
    "zai": Row("https://api.z.ai/api/paas/v4"),
    "huggingface": Row("https://router.huggingface.co/v1"),
    "ollama": Row("https://ollama.com/v1", 120.0),
    "kilo": Row(
        "https://api.kilo.ai/api/gateway/v1",
        quirks=bent("no_response_format", "models_above", "verdicts"),
        keyless=True,
    ),
    "pollinations": Row("https://gen.pollinations.ai/v1", quirks=bent("account_key")),
    "aihorde": Row(
        "https://oai.aihorde.net/v1",
        120.0,
        bent(
            *("anonymous_zeros", "min_output_16", "output_512", "list_of_stops", "no_tools"),
            "no_stream",
        ),
        keyless=True,
    ),
    "modelscope": Row("https://api-inference.modelscope.cn/v1", 90.0, bent("metered_checks")),
    "opencode": Row("https://opencode.ai/zen/v1", quirks=bent("reasoning_echo", "reasoning_blank")),
    "reka": Row("https://api.reka.ai/v1", quirks=bent("schema_for_object")),
    "requesty": Row("https://router.requesty.ai/v1"),
    "navy": Row("https://api.navy/v1"),
    "routeway": Row("https://api.routeway.ai/v1", quirks=bent("browser_agent")),
    "bai": Row("https://api.b.ai/v1"),
    "anyapi": Row("https://api.anyapi.ai/v1"),
    "llm7": Row("https://api.llm7.io/v1"),
    "ovh": Row("https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", keyless=True),
    "agnes": Row("https://apihub.agnes-ai.com/v1"),
    "siliconflow": Row("https://api.siliconflow.cn/v1"),
    "bazaarlink": Row("https://bazaarlink.ai/api/v1", quirks=bent("key_info")),
    "ainative": Row("https://api.ainative.studio/api/v1"),
    "aion": Row("https://api.aionlabs.ai/v1"),
    "nara": Row("https://router.bynara.id/v1"),
    "sealion": Row("https://api.sea-lion.ai/v1"),
    "orcarouter": Row("https://api.orcarouter.ai/v1"),
    "qianfan": Row("https://qianfan.baidubce.com/v2"),
    "volcengine": Row("https://ark.cn-beijing.volces.com/api/v3"),
    "longcat": Row("https://api.longcat.chat/openai/v1"),
    "xfyun": Row("https://spark-api-open.xf-yun.com/v1"),
}
"""Every platform of the first generation, as it called, waited for and bent to each."""


@pytest.mark.parametrize("name", TABLE)
def test_every_platform_of_the_first_generation_is_there(name: str) -> None:
    preset = PRESETS[name]

    assert TABLE[name] == Row(
        base_url=preset.base_url,
        first_byte_s=preset.first_byte_s,
        quirks=preset.quirks,
        keyless=preset.keyless,
        dialect=preset.dialect,
    )


def test_there_are_a_few_more() -> None:
    assert set(PRESETS) - set(TABLE) == {"openai", "anthropic", "deepseek", "moonshot"}


@pytest.mark.parametrize("preset", LIST, ids=lambda preset: preset.name)
def test_a_preset_alone_makes_a_configuration(preset: Preset) -> None:
    settings = load_bytes(
        msgspec.json.encode(
            {
                "providers": {"p": {"preset": preset.name}},
                "keys": [{"id": "k", "provider": "p", "secret": "account:token"}],
                "models": [{"provider": "p", "model": "m"}],
                "auth": {"mode": "none"},
            }
        ),
        {},
    ).settings

    (route,) = build_catalog(settings, 1).routes.values()
    codec = provider_for(route)
    assert (route.base_url, codec.dialect) == (preset.base_url, preset.dialect)
    assert codec.url(route.base_url, "m").startswith(preset.base_url)
