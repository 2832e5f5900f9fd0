"""Our constants are those of the conventions, as far as their package knows them."""

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as words
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as metrics
from opentelemetry.semconv.attributes import (
    error_attributes,
    http_attributes,
    server_attributes,
    url_attributes,
)

from cluster_gw.server.gemini import UNARY
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.telemetry import gen_ai
from cluster_gw.telemetry.gen_ai import Measure

MADE = {
    gen_ai.CLIENT_DURATION: metrics.create_gen_ai_client_operation_duration,
    gen_ai.CLIENT_TOKENS: metrics.create_gen_ai_client_token_usage,
    gen_ai.CLIENT_FIRST_CHUNK: metrics.create_gen_ai_client_operation_time_to_first_chunk,
    gen_ai.SERVER_DURATION: metrics.create_gen_ai_server_request_duration,
    gen_ai.SERVER_FIRST_TOKEN: metrics.create_gen_ai_server_time_to_first_token,
    gen_ai.SERVER_TOKEN_TIME: metrics.create_gen_ai_server_time_per_output_token,
}


def test_attributes_are_called_as_the_conventions_call_them() -> None:
    ours = {
        gen_ai.OPERATION: words.GEN_AI_OPERATION_NAME,
        gen_ai.PROVIDER: words.GEN_AI_PROVIDER_NAME,
        gen_ai.SYSTEM: words.GEN_AI_SYSTEM,
        gen_ai.REQUEST_MODEL: words.GEN_AI_REQUEST_MODEL,
        gen_ai.REQUEST_STREAM: words.GEN_AI_REQUEST_STREAM,
        gen_ai.RESPONSE_MODEL: words.GEN_AI_RESPONSE_MODEL,
        gen_ai.FIRST_CHUNK: words.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        gen_ai.INPUT_TOKENS: words.GEN_AI_USAGE_INPUT_TOKENS,
        gen_ai.OUTPUT_TOKENS: words.GEN_AI_USAGE_OUTPUT_TOKENS,
        gen_ai.CACHED_TOKENS: words.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        gen_ai.REASONING_TOKENS: words.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        gen_ai.TOKEN_TYPE: words.GEN_AI_TOKEN_TYPE,
        gen_ai.ERROR_TYPE: error_attributes.ERROR_TYPE,
        gen_ai.SERVER_ADDRESS: server_attributes.SERVER_ADDRESS,
        gen_ai.SERVER_PORT: server_attributes.SERVER_PORT,
        gen_ai.METHOD: http_attributes.HTTP_REQUEST_METHOD,
        gen_ai.ROUTE: http_attributes.HTTP_ROUTE,
        gen_ai.STATUS: http_attributes.HTTP_RESPONSE_STATUS_CODE,
        gen_ai.SCHEME: url_attributes.URL_SCHEME,
    }

    assert [(own, theirs) for own, theirs in ours.items() if own != theirs] == []


def test_values_are_among_those_of_the_conventions() -> None:
    operations = {one.value for one in words.GenAiOperationNameValues}
    providers = {one.value for one in words.GenAiProviderNameValues}
    named = {*gen_ai.PROVIDERS.values(), *gen_ai.PROVIDER_ENDS.values(), "aws.bedrock"}

    assert {operation for operation, _ in gen_ai.SURFACES.values()} <= operations
    assert named - providers == {"moonshot_ai"}  # newer than the package
    assert {gen_ai.INPUT, gen_ai.OUTPUT} <= {one.value for one in words.GenAiTokenTypeValues}


@pytest.mark.parametrize("measure", MADE, ids=lambda measure: measure.name)
def test_measures_have_names_and_units_of_the_conventions(measure: Measure) -> None:
    class Meter:
        def create_histogram(self, name: str, unit: str, description: str) -> tuple[str, str]:
            return name, unit

    make: object = MADE[measure]
    assert callable(make)
    assert make(Meter()) == (measure.name, measure.unit)


def test_buckets_of_tokens_are_powers_of_four() -> None:
    assert gen_ai.CLIENT_TOKENS.buckets[0] == 1
    assert gen_ai.CLIENT_TOKENS.buckets[-1] == 67_108_864
    assert len(gen_ai.CLIENT_TOKENS.buckets) == 14


def test_every_api_of_ours_has_its_operation_and_path() -> None:
    served: list[Surface] = [
        *SURFACES.values(),
        GenerateContent(),
        *(u("m") for u in UNARY.values()),
    ]

    assert {surface.kind for surface in served} == gen_ai.SURFACES.keys()
    for path, surface in SURFACES.items():
        assert gen_ai.surface_of(surface.kind, is_stream=False)[1] == path
    assert gen_ai.surface_of("gemini", is_stream=True)[1].endswith(":streamGenerateContent")


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.groq.com", "groq"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("europe-west4-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("mine.openai.azure.com", "azure.ai.openai"),
        ("bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"),
        ("127.0.0.1", "mine"),
        ("", "mine"),
        ("api.groq.com.example.org", "mine"),
    ],
)
def test_a_provider_is_named_by_its_host_or_as_it_is_configured(host: str, name: str) -> None:
    assert gen_ai.provider_of(host, "mine") == name


@pytest.mark.parametrize(
    ("opted", "wanted"),
    [
        ("", False),
        ("http", False),
        ("gen_ai_latest_experimental", True),
        ("http/dup, gen_ai_latest_experimental", True),
    ],
)
def test_the_latest_names_alone_are_wanted_where_somebody_says_so(opted: str, wanted: bool) -> None:
    assert gen_ai.wants_latest(opted) is wanted
