"""What LiteLLM calls things, and what they are called here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PRESET_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai": "openai",
        "text-completion-openai": "openai",
        "anthropic": "anthropic",
        "anthropic_text": "anthropic",
        "gemini": "google",
        "groq": "groq",
        "cerebras": "cerebras",
        "nvidia_nim": "nvidia",
        "mistral": "mistral",
        "openrouter": "openrouter",
        "github": "github",
        "cohere": "cohere",
        "cohere_chat": "cohere",
        "huggingface": "huggingface",
        "deepseek": "deepseek",
        "moonshot": "moonshot",
        "volcengine": "volcengine",
        "zai": "zai",
    }
)
"""Prefixes of models whose provider is known here."""
OPENAI_HOSTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "together_ai": ("https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
        "fireworks_ai": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_AI_API_KEY"),
        "perplexity": ("https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
        "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
        "deepinfra": ("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
        "sambanova": ("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    }
)
"""Prefixes of providers of OpenAI's dialect: their address, and the variable of their key."""
OWN_HOSTS: Final = frozenset(
    {
        *("hosted_vllm", "vllm", "lm_studio", "llamafile", "openai_like", "custom_openai"),
        *(
            "litellm_proxy",
            "ollama",
            "ollama_chat",
            "xinference",
            "infinity",
            "docker_model_runner",
        ),
    }
)
"""Prefixes of servers of one's own that speak OpenAI's dialect."""
OLLAMA: Final = frozenset({"ollama", "ollama_chat"})
OLLAMA_BASE: Final = "http://localhost:11434"
AZURE: Final = frozenset({"azure", "azure_ai"})
FOREIGN: Final = frozenset(
    {
        *("bedrock", "bedrock_converse", "vertex_ai", "vertex_ai_beta", "sagemaker", "watsonx"),
        *("databricks", "snowflake", "oci", "sagemaker_chat", "predibase", "triton", "replicate"),
    }
)
"""Prefixes of providers whose way to sign calls is not spoken here."""
BARE: Final = (
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("chatgpt-", "openai"),
    ("text-embedding-", "openai"),
    ("claude-", "anthropic"),
)
"""How names of models without a prefix begin, and whose they are."""
STRATEGIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "simple-shuffle": "weighted",
        "least-busy": "p2c",
        "usage-based-routing": "p2c",
        "usage-based-routing-v2": "p2c",
        "latency-based-routing": "fast",
        "cost-based-routing": "cheap",
    }
)
NO_COUNTERPART: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drop_params": "what a provider does not take is left out or refused: compatibility.md",
        "modify_params": "requests are fitted to each provider by themselves",
        "enable_pre_call_checks": "what cannot serve a request is left out before it is ranked",
        "callbacks": "logs, metrics and records of requests take their place: see telemetry",
        "success_callback": "logs, metrics and records of requests take their place: see telemetry",
        "failure_callback": "logs, metrics and records of requests take their place: see telemetry",
        "set_verbose": "there is one level of detail; records of requests tell the rest",
        "json_logs": "logs are JSON unless they go to a terminal, or telemetry.log says text",
        "database_url": "there is no database; keys of apps and teams in it have to be made anew: "
        "cluster-gw clients create",
        "store_model_in_db": "changes made while running are kept in Redis by themselves",
        "custom_auth": "clients are known by their keys only",
        "guardrails": "no call leaves for a judge of texts",
        "pass_through_endpoints": "only the APIs that README.md names are served",
        "model_info.id": "a route is called provider/model",
        "redis_host": "one Redis serves all: see redis.url",
        "allowed_fails_policy": "causes are told apart by themselves: see docs/routing.md",
        "retry_policy": "causes are told apart by themselves: see docs/routing.md",
        "context_window_fallbacks": "a prompt that is too long for a model is not sent there: "
        "give models their context_window",
        "content_policy_fallbacks": "an answer that a filter refuses is passed on",
    }
)
"""Why some fields are not carried over; of the others it is only said that they are not."""
