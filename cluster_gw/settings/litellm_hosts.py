"""Who serves a deployment of a LiteLLM proxy, told by the prefix of its model and its address."""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from cluster_gw.providers.presets import PRESETS
from cluster_gw.settings.litellm_names import (
    AZURE,
    BARE,
    FOREIGN,
    OLLAMA,
    OLLAMA_BASE,
    OPENAI_HOSTS,
    OWN_HOSTS,
    PRESET_OF,
)
from cluster_gw.settings.litellm_reading import Reader

NOT_ID: Final = re.compile(r"[^a-z0-9_-]+")
FIRST_NAMES: Final = 40
DIALECTS: Final[Mapping[str, str]] = MappingProxyType(
    {"anthropic": "anthropic", "gemini": "gemini"}
)


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves a deployment.

    Attributes:
        name: what the provider is to be called.
        settings: of the provider.
        variable: of the environment that usually holds its key; None where it needs none.
        model: what the model is called there.
    """

    name: str
    settings: dict[str, Any]
    variable: str | None
    model: str


def host_of(parameters: Reader) -> Host | None:
    """Tell who serves a deployment; None, with a note, where that cannot be said here."""
    prefix, model = _prefix_of(parameters)
    base = parameters.reference("api_base") or parameters.reference("base_url")
    if base is not None and "@" in base:
        parameters.note("api_base", "holds a credential; write it without, and give an api_key")
        return None
    if prefix in FOREIGN:
        parameters.note("model", f"calls of {prefix} are signed in a way that is not spoken here")
        return None
    if prefix in AZURE:
        return _azure(parameters, model, base)
    if prefix in OWN_HOSTS:
        return _own(parameters, prefix, model, base)
    if base is not None:
        return _at_address(parameters, prefix, model, base)
    return _known(parameters, prefix, model)


def _prefix_of(parameters: Reader) -> tuple[str, str]:
    whole = parameters.text("model") or ""
    own = parameters.text("custom_llm_provider")
    if own is not None:
        return own, whole.removeprefix(f"{own}/")
    prefix, slash, model = whole.partition("/")
    if slash:
        return prefix, model
    return next((who for head, who in BARE if whole.startswith(head)), ""), whole


def _known(parameters: Reader, prefix: str, model: str) -> Host | None:
    if prefix in PRESET_OF:
        preset = PRESET_OF[prefix]
        settings = {"preset": preset}
        return Host(name=preset, settings=settings, variable=PRESETS[preset].env, model=model)
    if prefix in OPENAI_HOSTS:
        url, variable = OPENAI_HOSTS[prefix]
        name = free_id(prefix, ())
        return Host(name=name, settings=_openai(url), variable=variable, model=model)
    whole = f"{prefix}/{model}" if prefix else model
    parameters.note("model", f"'{whole[:FIRST_NAMES]}' is of a provider that is not known here")
    return None


def _at_address(parameters: Reader, prefix: str, model: str, base: str) -> Host:
    """A provider at another address than its own."""
    settings, variable = _openai(base), None
    if prefix in PRESET_OF:
        variable = PRESETS[PRESET_OF[prefix]].env
        if prefix in DIALECTS:
            settings["dialect"] = DIALECTS[prefix]
    elif prefix in OPENAI_HOSTS:
        variable = OPENAI_HOSTS[prefix][1]
    else:
        parameters.note("model", "who serves it is not known; taken for OpenAI's dialect")
        model = f"{prefix}/{model}" if prefix else model
    return Host(name=name_of(base, prefix), settings=settings, variable=variable, model=model)


def _azure(parameters: Reader, model: str, base: str | None) -> Host | None:
    if base is None:
        parameters.note("api_base", "is missing: an Azure deployment has its own address")
        return None
    if parameters.raw("api_version") is not None:
        parameters.note("api_version", "left out: Azure's v1 API is called, which has none")
    url = base.rstrip("/")
    url = url if url.endswith("/v1") else f"{url}/openai/v1"
    name = name_of(base, "azure")
    return Host(name=name, settings=_openai(url), variable="AZURE_API_KEY", model=model)


def _own(parameters: Reader, prefix: str, model: str, base: str | None) -> Host | None:
    if prefix in OLLAMA:
        base = f"{(base or OLLAMA_BASE).rstrip('/').removesuffix('/v1')}/v1"
    if base is None:
        parameters.note("api_base", f"is missing: a server of {prefix} has its own address")
        return None
    return Host(name=name_of(base, prefix), settings=_openai(base), variable=None, model=model)


def _openai(url: str) -> dict[str, Any]:
    return {"dialect": "openai", "base_url": url.rstrip("/")}


def name_of(base: str, prefix: str) -> str:
    """Name a provider by its host, or by its prefix where the host is a reference."""
    host = "" if base.startswith("${") else (urlsplit(base).hostname or "")
    return free_id((host.replace(".", "-") or prefix).lower(), ())


def free_id(text: str, taken: Collection[str]) -> str:
    """Give an id like a text that nothing has yet."""
    name = NOT_ID.sub("-", text).strip("-_")[:FIRST_NAMES] or "one"
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
