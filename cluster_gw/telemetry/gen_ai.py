"""Words of OpenTelemetry's conventions for generative AI: attributes, metrics, names of providers.

Written out here, as the package with the conventions marks them as moved; a test compares both.
Buckets: https://github.com/open-telemetry/semantic-conventions-genai (December 2026).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
SYSTEM: Final = "gen_ai.system"  # what `PROVIDER` was called up to version 1.36 of the conventions
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - a name, no secret
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
METHOD: Final = "http.request.method"
ROUTE: Final = "http.route"
STATUS: Final = "http.response.status_code"
SCHEME: Final = "url.scheme"

CHAT: Final = "chat"
TEXT_COMPLETION: Final = "text_completion"
EMBEDDINGS: Final = "embeddings"
GENERATE_CONTENT: Final = "generate_content"
INPUT: Final = "input"
OUTPUT: Final = "output"

OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST: Final = "gen_ai_latest_experimental"

GATEWAY: Final = "cluster_gw"
"""The provider of the requests that clients send here."""

SECONDS: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
)  # fmt: skip
FIRST_TOKEN_SECONDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0
)  # fmt: skip
TOKEN_SECONDS: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5
)  # fmt: skip
TOKENS: Final = tuple(4**power for power in range(14))


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One histogram of the conventions."""

    name: str
    unit: str
    help: str
    buckets: tuple[float, ...]


CLIENT_DURATION: Final = Measure(
    name="gen_ai.client.operation.duration",
    unit="s",
    help="GenAI operation duration.",
    buckets=SECONDS,
)
CLIENT_TOKENS: Final = Measure(
    name="gen_ai.client.token.usage",
    unit="{token}",
    help="Number of input and output tokens used.",
    buckets=TOKENS,
)
CLIENT_FIRST_CHUNK: Final = Measure(
    name="gen_ai.client.operation.time_to_first_chunk",
    unit="s",
    help="Time to receive the first chunk of a stream.",
    buckets=SECONDS,
)
SERVER_DURATION: Final = Measure(
    name="gen_ai.server.request.duration",
    unit="s",
    help="Request duration up to the last byte.",
    buckets=SECONDS,
)
SERVER_FIRST_TOKEN: Final = Measure(
    name="gen_ai.server.time_to_first_token",
    unit="s",
    help="Time to the first token of a stream.",
    buckets=FIRST_TOKEN_SECONDS,
)
SERVER_TOKEN_TIME: Final = Measure(
    name="gen_ai.server.time_per_output_token",
    unit="s",
    help="Time per output token after the first of a stream.",
    buckets=TOKEN_SECONDS,
)

_GEMINI: Final = "/v1beta/models/{model}"
SURFACES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "chat": (CHAT, "/v1/chat/completions"),
        "completions": (TEXT_COMPLETION, "/v1/completions"),
        "responses": (CHAT, "/v1/responses"),
        "messages": (CHAT, "/v1/messages"),
        "embeddings": (EMBEDDINGS, "/v1/embeddings"),
        "gemini": (GENERATE_CONTENT, f"{_GEMINI}:generateContent"),
        "gemini-embed": (EMBEDDINGS, f"{_GEMINI}:embedContent"),
        "gemini-embed-batch": (EMBEDDINGS, f"{_GEMINI}:batchEmbedContents"),
    }
)
"""What each API is asked for, and the path it is reached by; that of Gemini's streams differs."""
STREAMED: Final[Mapping[str, str]] = MappingProxyType(
    {f"{_GEMINI}:generateContent": f"{_GEMINI}:streamGenerateContent"}
)

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "api.openai.com": "openai",
        "api.anthropic.com": "anthropic",
        "generativelanguage.googleapis.com": "gcp.gemini",
        "aiplatform.googleapis.com": "gcp.vertex_ai",
        "api.groq.com": "groq",
        "api.mistral.ai": "mistral_ai",
        "api.x.ai": "x_ai",
        "api.deepseek.com": "deepseek",
        "api.cohere.com": "cohere",
        "api.cohere.ai": "cohere",
        "api.perplexity.ai": "perplexity",
        "api.moonshot.ai": "moonshot_ai",
    }
)
"""Names that the conventions demand, by the host that is called."""
PROVIDER_ENDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".openai.azure.com": "azure.ai.openai",
        ".services.ai.azure.com": "azure.ai.inference",
        "-aiplatform.googleapis.com": "gcp.vertex_ai",
        ".ml.cloud.ibm.com": "ibm.watsonx.ai",
    }
)


def provider_of(host: str, named: str) -> str:
    """What the conventions call a provider; the configuration's own name where they have none.

    Args:
        host: that is called, in lower case.
        named: in the configuration.
    """
    known = PROVIDERS.get(host)
    if known is not None:
        return known
    if host.startswith("bedrock-runtime.") and host.endswith(".amazonaws.com"):
        return "aws.bedrock"
    return next((name for end, name in PROVIDER_ENDS.items() if host.endswith(end)), named)


def surface_of(kind: str, *, is_stream: bool) -> tuple[str, str]:
    """The operation and the path of a call of one of our APIs."""
    operation, path = SURFACES[kind]
    return operation, STREAMED.get(path, path) if is_stream else path


def wants_latest(opted: str) -> bool:
    """Whether only the latest names are wanted, of which the older ones are left out.

    Args:
        opted: the value of `OTEL_SEMCONV_STABILITY_OPT_IN`: names, separated by commas.
    """
    return LATEST in {one.strip() for one in opted.split(",")}
