"""Each quirk changes what its name says, tells of it where a client would miss it, and no more."""

import msgspec
import pytest

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.codec import ProviderCodec
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.providers.presets import LIST, Preset
from cluster_gw.providers.quirks import Quirk, combine
from cluster_gw.wire.json_codec import read_fields

CODECS = (OpenAIChatProvider, OpenAIResponsesProvider, AnthropicProvider, GeminiProvider)
TURN = '{"role":"user","content":"%s"}'
LONG = '"messages":[' + TURN % ("x" * 40_000) + "," + TURN % "a" + "]"
CASES = [
    ("min_output_16", '"max_tokens":3', '"max_tokens":16', ()),
    ("min_output_16", '"max_tokens":17', '"max_tokens":17', ()),
    ("output_512", '"n":1', '"n":1,"max_tokens":512', ()),
    ("output_512", '"max_completion_tokens":3', '"max_completion_tokens":3', ()),
    ("output_8192", '"max_tokens":null', '"max_tokens":8192', ()),
    ("max_output_400", '"max_tokens":401', '"max_tokens":400', ("max_tokens lowered to 400",)),
    ("three_efforts", '"reasoning_effort":"none"', '"reasoning_effort":"low"',
     ("reasoning_effort is low",)),
    ("three_efforts", '"reasoning_effort":"medium"', '"reasoning_effort":"medium"', ()),
    ("list_of_stops", '"stop":"a"', '"stop":["a"]', ()),
    ("schema_for_object", '"response_format":{"type":"text"}', '"response_format":{"type":"text"}',
     ()),
    ("null_content", '"messages":[{"role":"assistant","content":null}]',
     '"messages":[{"role":"assistant","content":""}]', ()),
    ("flat_content", '"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]',
     '"messages":[{"role":"user","content":"a"}]', ()),
    ("plain_messages", '"messages":[{"role":"assistant","content":"a","reasoning_content":"b"}]',
     '"messages":[{"role":"assistant","content":"a"}]', ()),
    ("plain_schemas", '"tools":[{"function":{"parameters":{"$schema":"s"}}}]',
     '"tools":[{"function":{"parameters":{}}}]', ()),
    ("trimmed_input", LONG, '"messages":[{"role":"user","content":"a"}]',
     ("messages trimmed to 7500 tokens",)),
    ("output_dimension", '"dimensions":8', '"output_dimension":8', ()),
]  # fmt: skip


@pytest.mark.parametrize(("quirk", "asked", "sent", "told"), CASES)
def test_a_quirk_does_what_it_says(
    quirk: str, asked: str, sent: str, told: tuple[str, ...]
) -> None:
    request = asking(asked)
    before = dict(request.fields)
    codec = OpenAIChatProvider([quirk])

    found = codec.encode_noted(request, "m")

    assert found.body == codec.encode_request(request, "m")
    assert found.body.decode() == '{"model":"m",' + sent + "}"
    assert found.changed == told
    assert request.fields == before


@pytest.mark.parametrize("preset", LIST, ids=lambda preset: preset.name)
def test_quirks_of_a_preset_do_not_get_in_each_others_way(preset: Preset) -> None:
    whole = combine(preset.quirks)

    for name in preset.quirks:
        for field, value in msgspec.structs.asdict(combine([name])).items():
            mine = getattr(whole, field)
            if isinstance(value, tuple):
                assert set(value) <= set(mine)
            elif value not in {None, "", False}:
                assert mine == value


def test_no_quirk_is_no_change() -> None:
    assert combine([]) == Quirk()
    assert not OpenAIChatProvider().has_notes


@pytest.mark.parametrize("codec", CODECS)
def test_headers_of_a_quirk_take_the_place_of_ours(codec: type[ProviderCodec]) -> None:
    given = codec(["browser_agent"]).request_headers("s")

    assert dict(given)["user-agent"].startswith("Mozilla/5.0")
    assert len(given) == len(dict(given))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("quirk", "url"),
    [
        ("account_key", "http://h/a/account/key"),
        ("models_above", "http://h/a/models"),
        ("key_info", "http://h/a/v1/key"),
    ],
)
def test_keys_are_checked_where_the_platform_tells_of_them(
    quirk: str, url: str, codec: type[ProviderCodec]
) -> None:
    assert codec([quirk]).check_url("http://h/a/v1") == url


def asking(members: str) -> ChatRequest:
    fields = read_fields(('{"model":"a",' + members + "}").encode())
    return ChatRequest(dialect=Dialect.OPENAI, model="a", stream=False, fields=fields)
